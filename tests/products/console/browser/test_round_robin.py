"""The whole console in Chromium behind a balancer that gives each request to the next gate."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.support.chromium import Window
from products.console.support.console_place import PASSPHRASE
from products.console.support.query_page import editor, run_line
from products.console.support.question_card import click_allow
from products.console.support.round_robin import RoundRobin, round_robin
from support.eventually import HANG_S, wait_until
from support.gate_pair import KINDS
from tidegate.identity.pairing import challenge_of, make_verifier

UPDATE = "UPDATE notes SET body = 'changed' WHERE id = 2"
MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000000)"
    " SELECT max(i) AS m FROM n"
)


@pytest.fixture(scope="module", params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RoundRobin]:
    with round_robin(request.param, tmp_path_factory.mktemp("robin")) as found:
        yield found


@pytest.fixture
def page(place: RoundRobin, window: Window) -> Page:
    return sign_in(place, window)


def sign_in(place: RoundRobin, window: Window) -> Page:
    window.expected = ["401"]
    page = window.tab(f"{place.address}/console")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".live.on")).to_be_visible()
    return page


def front(page: Page) -> Locator:
    return page.locator(".tab-panel:not([hidden])")


def press(button: Locator) -> None:
    """Press a button, which takes no key while its dialog is busy."""
    expect(button).to_be_enabled()
    button.press("Enter")


def bodies(place: RoundRobin) -> list[Any]:
    return [row[0] for row in place.ask("SELECT body FROM notes ORDER BY id")]


def sees_a_question(place: RoundRobin, page: Page) -> None:
    """A question of a call at one, which is allowed and goes on at the other; and undo."""
    client = place.pair.client(at=2)
    assert "approval" in client.call(2, "query", source="data", sql=UPDATE)
    expect(page.locator("#card-title")).to_contain_text("wants to change 1 row of notes")
    click_allow(page)
    expect(page.locator(".steps")).to_contain_text("Allowed by ada")
    client.call(1, "query", source="data", sql=UPDATE)
    expect(page.locator(".steps")).to_contain_text("Done: 1 row")
    assert bodies(place) == ["one", "changed", "three"]
    page.get_by_role("button", name="Put these rows back").click()
    page.get_by_role("dialog").get_by_role("button", name="Put these rows back").click()
    expect(page.locator(".steps")).to_contain_text("The rows were put back")
    assert bodies(place) == ["one", "two", "three"]


def sees_calls(place: RoundRobin, page: Page) -> None:
    """Calls of both under Now, one of which is cancelled, and in Activity."""
    page.get_by_role("link", name="Now", exact=True).click()
    expect(page.get_by_text("No call is under way.")).to_be_visible()
    for at in (1, 2):
        client, said = place.pair.client(at=at), list[str]()

        def call(client: Any = client, at: int = at, said: list[str] = said) -> None:
            said.append(client.call(at, "query", source="shop", sql=SLOW))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        running = page.locator(".running-call")
        expect(running).to_contain_text("WITH RECURSIVE")
        running.get_by_role("button", name="Cancel").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel the call").click()
        expect(page.get_by_text("No call is under way.")).to_be_visible()
        thread.join()
        assert "An operator cancelled the call" in said[0]
    page.get_by_role("link", name="Activity").click()
    page.get_by_role("button", name="Calls", exact=True).click()
    page.get_by_label("Outcome").select_option("cancelled")
    lines = page.locator(".line", has_text="WITH RECURSIVE")

    def has_both() -> bool:  # a gate may be late on a busy machine
        page.reload()
        expect(lines.first).to_be_visible()
        return lines.count() == 2

    wait_until(has_both, "the lines of both gates")
    lines.first.click()
    expect(page.locator(".panel .proof-line")).not_to_be_empty()

    def saved_both() -> bool:
        with page.expect_download() as saved:
            page.get_by_role("button", name="Export as JSON lines").click()
        found = [json.loads(each) for each in Path(saved.value.path()).read_text().splitlines()]
        return [each["outcome"] for each in found] == ["cancelled"] * 2

    wait_until(saved_both, "the lines of both gates in a file")


def reads_rows(place: RoundRobin, page: Page) -> None:
    """A table by pages, and saved."""
    page.get_by_role("link", name="Data").click()
    expect(page.locator(".tree-row").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#tree-search")).to_be_focused()
    page.keyboard.type("lines")
    page.locator(".is-match", has_text="lines").first.click()
    expect(front(page).locator(".status-line")).to_contain_text("rows so far")
    front(page).locator(".grid-box").focus()
    while ", all" not in front(page).locator(".status-line").inner_text():
        page.keyboard.press("Control+End")
        page.evaluate("new Promise(requestAnimationFrame)")
    expect(front(page).locator(".status-line")).to_contain_text("3,000 rows, all")
    front(page).get_by_role("button", name="Export").click()
    with page.expect_download() as saved:
        front(page).get_by_role("button", name="JSON lines").click()
    assert len(Path(saved.value.path()).read_text().splitlines()) == 3_000


def runs_statements(place: RoundRobin, page: Page) -> None:
    """A result is scrolled, is there after loading, and saved; a statement is cancelled."""
    page.get_by_role("button", name="New query").click()
    page.locator("#new-query").get_by_role("button", name="shop", exact=True).click()
    editor(page).fill(MANY)
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("5,000 rows")
    for load in (False, True):
        if load:
            page.reload()
            expect(run_line(page)).to_contain_text("5,000 rows")
        for _ in range(3):
            front(page).locator(".run-panel .grid-box").focus()
            page.keyboard.press("Control+End")
            expect(front(page).locator(".run-panel .grid-row").last).to_contain_text("5000")
            page.keyboard.press("Control+Home")
            expect(front(page).locator(".run-panel .grid-row").first).to_contain_text("1")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the rows as CSV", exact=True).click()
    assert len(Path(saved.value.path()).read_text().splitlines()) == 5_001
    editor(page).fill(SLOW)
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    page.keyboard.press("Escape")
    expect(run_line(page)).to_contain_text("Cancelled")


def stages_an_edit(page: Page) -> Locator:
    """A row that is to be changed; what counts such rows."""
    page.get_by_role("searchbox").fill("notes")
    page.keyboard.press("Enter")
    expect(front(page).locator(".table-title h2")).to_have_text(re.compile(r"\bnotes$"))
    expect(front(page).locator(".status-line")).to_contain_text("3 rows, all")
    grid = page.locator(".grid-box:visible")
    expect(grid.locator(".grid-row").first).to_be_visible()
    bar = page.locator(".edit-bar:visible")
    expect(bar).to_contain_text("F2")
    grid.focus()
    for key in ("Control+Home", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.type("edited")
    page.keyboard.press("Enter")
    expect(bar).to_contain_text("1 changed")
    expect(bar).not_to_contain_text("Keeping")
    return bar


def edits_rows(place: RoundRobin, page: Page) -> None:
    """Rows are staged, asked for, written once and put back."""
    bar = stages_an_edit(page)
    page.reload()
    expect(bar).to_contain_text("1 changed")
    writes_the_edit(place, page)
    press(page.get_by_role("button", name="Put these rows back"))
    press(page.get_by_role("dialog").get_by_role("button", name="Put these rows back"))
    expect(page.locator(".edit-part")).to_contain_text("The rows were put back")
    assert bodies(place) == ["one", "two", "three"]


def writes_the_edit(place: RoundRobin, page: Page) -> None:
    """What is staged is asked for, and written."""
    page.locator(".grid-box:visible").focus()
    page.keyboard.press("Control+s")
    press(page.get_by_role("button", name="Submit", exact=True))
    once = page.locator(".edit-part .question").get_by_role("button", name="Allow once")
    expect(once).not_to_have_attribute("aria-disabled", "true")
    press(once)
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 1 changed")
    assert bodies(place) == ["edited", "two", "three"]


def types_a_transaction(place: RoundRobin, page: Page) -> None:
    """Statements of one transaction, in a terminal."""
    press(page.get_by_role("button", name="New tab of another kind"))
    page.get_by_label("Kind", exact=True).select_option("terminal")
    page.get_by_label("Source", exact=True).select_option("data")
    press(page.get_by_role("button", name="Open"))
    for prompt, text in (
        ("data=>", "BEGIN READ ONLY;"), ("data*>", "SELECT count(*) AS n FROM lines;"),
        ("data*>", "SELECT max(id) AS m FROM lines;"), ("data*>", "ROLLBACK;"),
    ):  # fmt: skip
        expect(page.get_by_label(prompt)).to_be_visible()
        page.get_by_label(prompt).focus()
        expect(page.get_by_role("status").filter(has_text="Ready")).to_be_visible()
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    expect(page.get_by_label("data=>")).to_be_visible()
    expect(page.locator(".terminal .entry.out").last).to_contain_text("3000")


def imports_a_file(place: RoundRobin, page: Page) -> None:
    """A file of several parts goes into a table."""
    text = "id,word\n" + "".join([f"{n},{'x' * 900}\n" for n in range(3_000)])
    page.keyboard.press("Control+k")
    page.keyboard.type("import a file")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Import a file")
    dialog.locator("#import-file").set_input_files(
        {"name": "added.csv", "mimeType": "text/csv", "buffer": text.encode()}
    )
    expect(dialog.get_by_label("Table", exact=True)).to_be_visible()
    dialog.get_by_label("Table", exact=True).select_option("added")
    expect(dialog.get_by_label("Column for word")).to_have_value("word")
    press(dialog.get_by_role("button", name="Check"))
    expect(dialog).to_contain_text("3,000 rows can be added to added")
    press(dialog.get_by_role("button", name="Import 3,000 rows"))
    once = dialog.get_by_role("button", name="Allow once")
    expect(once).not_to_have_attribute("aria-disabled", "true")
    press(once)
    expect(dialog).to_contain_text("3,000 rows added to added")
    page.keyboard.press("Escape")
    assert place.ask("SELECT count(*), count(DISTINCT id) FROM added") == [(3_000, 3_000)]


def changes_access(place: RoundRobin, page: Page) -> None:
    """A token that is asked for and one that is made, a budget, and a source."""
    page.get_by_role("link", name="Access").click()
    verifier = make_verifier()
    body: dict[str, Any] = {"client": "laptop", "sources": ["shop"]}
    body["code_challenge"] = challenge_of(verifier)
    asked = httpx.post(f"{place.address}/v1/integrations/pair", json=body).json()
    request = page.locator(".request")
    page.get_by_role("button", name="Approve … laptop").click()
    approve(page, "Approve")
    expect(request).to_have_count(0)
    body = {"code": asked["code"], "code_verifier": verifier}
    answer = httpx.post(f"{place.address}/v1/integrations/exchange", json=body)
    assert answer.status_code == 200, answer.text

    page.get_by_role("button", name="Make a token").click()
    page.get_by_label("Name, such as the client's").fill("robin")
    page.get_by_label("All sources, also those to come").check()
    approve(page, "Make the token")
    shown = page.get_by_role("dialog", name="The token")
    expect(shown.get_by_label("Shown once")).not_to_be_empty()
    shown.get_by_role("button", name="Done").click()

    page.get_by_role("button", name="Set a budget").click()
    page.get_by_label("How much").fill("20k")
    page.get_by_label("Of", exact=True).select_option("rows")
    page.get_by_label("For the token").select_option("robin")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.locator(".records tr", has_text="20,000 rows")).to_contain_text("robin")

    page.goto(f"{place.address}/console#/access/sources")
    page.get_by_role("button", name="Add a source").click()
    page.get_by_label("Name", exact=True).fill("more")
    page.get_by_label("URL", exact=True).fill(f"sqlite:///{place.pair.folder}/shop.db")
    page.get_by_role("button", name="Try it").click()
    approve(page, "Open it")
    expect(page.locator(".tried")).to_contain_text("It opens: 1 table")
    page.get_by_role("button", name="Look at what changes").click()
    approve(page, "Add it")
    expect(page.locator(".records tr", has_text="more")).to_be_visible()


def approve(page: Page, name: str) -> None:
    """Type the passphrase, and press the button of that name."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your passphrase").fill(PASSPHRASE)
    dialog.get_by_role("button", name=name, exact=True).click()


def test_a_page_goes_on_at_another_gate_when_its_own_is_killed(
    tmp_path: Path, window: Window
) -> None:
    """What was typed and staged is there, and is written once; what the gate held is said to be
    gone."""
    with round_robin("gates", tmp_path) as place:
        page = sign_in(place, window)
        window.expected += ["410", "421", "503", "ERR_"]
        reads_rows(place, page)
        page.get_by_role("button", name="New query").click()
        page.locator("#new-query").get_by_role("button", name="shop", exact=True).click()
        editor(page).fill(MANY)
        page.keyboard.press("Control+Enter")
        expect(run_line(page)).to_contain_text("5,000 rows")
        edit = stages_an_edit(page)
        (home,) = [
            each["value"] for each in window.context.cookies() if each["name"].endswith("_gate")
        ]
        at = next(at for at in (1, 2) if place.pair.gate_id(at) == home)
        place.pair.served[at - 1].process.kill()
        expect(page.locator(".live.on")).to_have_count(0)
        expect(page.locator(".live.on")).to_be_visible(timeout=HANG_S * 1000)
        expect(edit).to_contain_text("1 changed")
        writes_the_edit(place, page)
        page.get_by_role("tab", name=re.compile("WITH RECURSIVE")).click()
        front(page).locator(".run-panel .grid-box").focus()
        page.keyboard.press("Control+End")
        expect(front(page)).to_contain_text("The server no longer holds these rows.")
        press(front(page).get_by_role("button", name="Run again"))
        expect(run_line(page)).to_contain_text("5,000 rows")
        expect(front(page).locator(".run-panel .grid-row").first).to_contain_text("1")


def test_a_page_works_whichever_gate_its_requests_come_to(
    place: RoundRobin, window: Window, page: Page
) -> None:
    sent_on: list[str] = []
    page.on("response", lambda found: sent_on.append(found.url) if found.status == 307 else None)
    sees_a_question(place, page)
    sees_calls(place, page)
    reads_rows(place, page)
    runs_statements(place, page)
    edits_rows(place, page)
    types_a_transaction(place, page)
    imports_a_file(place, page)
    changes_access(place, page)
    assert bool(sent_on) == (place.pair.kind == "gates")
    with place.visitor() as other:
        page.get_by_role("button", name="ada").click()
        page.get_by_role("button", name="Sign out everywhere").click()
        expect(page.get_by_label("Passphrase")).to_be_visible()
        for at in (1, 2):
            wait_until(lambda: other.get("access").status_code == 401, f"the end at {at}")
