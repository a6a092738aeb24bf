"""The Inbox in Chromium: what waits, the card, and the answers, by mouse and by keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import NARROW, Window
from products.console.support.console_site import Site
from products.console.support.question_card import allow_button, click_allow, ready


def title(page: Page) -> Locator:
    return page.locator("#card-title")


def focus_is_on_allow(page: Page) -> bool:
    return page.evaluate("document.activeElement.classList.contains('allow')")


def test_a_question_is_read_and_allowed_once_by_mouse(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    expect(title(page)).to_have_text("claude-code wants to change 3 rows of orders on shop (1)")
    expect(page.get_by_text("The agent says: The parcels left")).to_be_visible()
    expect(page.locator("td.change")).to_have_count(3)
    expect(page.locator("td.change").first).to_have_text("open → shipped")
    click_allow(page)
    expect(page.locator(".steps")).to_contain_text("Allowed by ann")
    assert site.posted("inbox/ask-1/allow") == [{"digest": "digest-1"}]
    expect(allow_button(page)).to_have_count(0)
    assert page.title() == "Inbox – Tidegate"


def test_keys_alone_go_through_the_questions_and_allow_one(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1), canned.card(2), canned.card(3))
    page = window.tab(url)
    expect(title(page)).to_contain_text("(1)")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(title(page)).to_contain_text("(3)")
    page.keyboard.press("k")
    expect(title(page)).to_contain_text("(2)")
    ready(page)
    page.keyboard.press("a")
    expect(page.locator(".hint.armed")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    assert site.cards["ask-2"]["state"] == "pending"
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("Allowed by ann")
    assert [path for path, _ in site.posts if path.startswith("inbox")] == ["inbox/ask-2/allow"]
    expect(page.locator(".card-scroll")).to_be_focused()


def test_the_focus_is_never_on_allow_and_enter_alone_allows_nothing(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1), canned.card(2))
    page = window.tab(url)
    ready(page)
    assert not focus_is_on_allow(page)
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    ready(page)
    page.keyboard.press("Enter")
    site.put({**site.cards["ask-2"], "sentence": "another sentence"})
    expect(title(page)).to_have_text("another sentence")
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    assert not focus_is_on_allow(page)
    assert all(card["state"] == "pending" for card in site.cards.values())


def test_allow_is_dead_for_half_a_second_after_a_card_appears_or_changes(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1), canned.card(2))
    page = window.tab()
    page.clock.install()
    page.goto(url)
    expect(title(page)).to_contain_text("(1)")
    expect(page.locator(".live.on")).to_be_visible()

    def is_dead_until_half_a_second_has_passed() -> None:
        page.clock.run_for(450)
        expect(allow_button(page)).to_have_attribute("aria-disabled", "true")
        allow_button(page).click(force=True)
        page.keyboard.press("a")
        page.keyboard.press("Enter")
        page.clock.run_for(100)
        expect(allow_button(page)).to_have_attribute("aria-disabled", "false")

    page.clock.pause_at(page.evaluate("Date.now()") + 5_000)
    page.keyboard.press("j")
    expect(title(page)).to_contain_text("(2)")
    is_dead_until_half_a_second_has_passed()
    site.put({**site.cards["ask-2"], "agent_reason": "Something else."})
    expect(page.get_by_text("Something else.")).to_be_visible()
    is_dead_until_half_a_second_has_passed()
    # The button moves: a bar appears above, or the window gets another size.
    page.set_viewport_size({"width": 1100, "height": 640})
    allow_button(page).click(force=True)
    is_dead_until_half_a_second_has_passed()
    assert site.posts == [("session", {})]


def test_a_yes_binds_what_was_shown(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    window.expected = ["409"]
    ready(page)
    # The page has not learned of the change yet.
    site.add(canned.card(1, digest="another", sentence="claude-code wants to delete all of it"))
    allow_button(page).click()
    expect(page.get_by_role("alert")).to_contain_text("has changed or was answered")
    expect(title(page)).to_have_text("claude-code wants to delete all of it")
    assert site.cards["ask-1"]["state"] == "pending"


def test_two_approvers_race_and_the_second_learns_of_it(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    window.expected = ["409"]
    ready(page)
    site.add({**site.cards["ask-1"], "state": "denied", "decided_by": "bob", "decided_at": 1e9})
    click_allow(page)
    expect(page.locator(".steps")).to_contain_text("Denied by bob")
    expect(allow_button(page)).to_have_count(0)


def test_a_question_is_denied_with_a_word_by_keys(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    expect(title(page)).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_label("A word to the agent")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("d")
    page.keyboard.type("Use the archive, a d j k ?")
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("Denied by ann")
    expect(page.locator(".word")).to_contain_text("Use the archive")
    (body,) = site.posted("inbox/ask-1/deny")
    assert body == {"digest": "digest-1", "reason": "Use the archive, a d j k ?"}


def test_a_passphrase_is_asked_for_until_it_is_right(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1, irreversible=True, may=canned.may(passphrase=True)))
    page = window.tab(url)
    window.expected = ["403"]
    ready(page)
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your passphrase")).to_be_focused()
    expect(page.get_by_role("dialog")).to_contain_text("cannot be taken back")
    page.keyboard.type("a guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The passphrase is wrong.")
    assert site.cards["ask-1"]["state"] == "pending"
    page.get_by_label("Your passphrase").fill(site.passphrase)
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("Allowed by ann")


def test_a_passphrase_dialog_ends_when_its_card_changes(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1, may=canned.may(passphrase=True)))
    page = window.tab(url)
    click_allow(page)
    expect(page.get_by_role("dialog")).to_be_visible()
    site.put(canned.card(1, digest="another", may=canned.may(passphrase=True)))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("has changed")
    assert not site.posted("inbox/ask-1/allow")


def test_a_grant_for_some_minutes_is_given_shown_and_ended(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1, may=canned.may(minutes=30)))
    page = window.tab(url)
    ready(page)
    expect(page.get_by_label("How long").locator("option")).to_have_text(
        ["5 min", "15 min", "30 min"]
    )
    page.get_by_label("How long").select_option("15")
    page.get_by_role("button", name="Allow for").click()
    expect(page.locator(".grant")).to_contain_text("used 0 of 20 times")
    assert site.posted("inbox/ask-1/allow") == [{"digest": "digest-1", "minutes": 15}]
    page.get_by_role("button", name="End it now").click()
    expect(page.locator(".grant")).to_have_count(0)


def test_the_card_lives_on_until_its_rows_are_put_back(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    click_allow(page)
    expect(page.locator(".steps")).to_contain_text("The caller goes on")
    site.put({**site.cards["ask-1"], "run": canned.run("running", change_id=None)})
    expect(page.locator(".steps")).to_contain_text("Running since")
    site.put({**site.cards["ask-1"], "run": canned.run()})
    expect(page.locator(".steps")).to_contain_text("Done: 3 rows")
    page.keyboard.press("u")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 rows on shop")
    expect(dialog.locator("td.change").first).to_have_text("shipped → open")
    expect(dialog).to_contain_text("does not go back: orders_updated_at")
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("The rows were put back")
    expect(page.get_by_role("button", name="Put these rows back")).to_have_count(0)


def test_rows_that_changed_since_are_not_put_back(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1, state="used", decided_at=1e9, decided_by="ann", run=canned.run()))
    conflict = {"table": "orders", "key": "id = 8", "problem": "changed"}
    site.change = canned.change(possible=False, conflicts=1, conflict_rows=[conflict])
    site.change["tables"][0]["rows"][1]["now"] = ["8", "returned"]
    page = window.tab(f"{url}#/inbox/ask-1")
    page.get_by_role("button", name="Put these rows back").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 row changed since then")
    expect(dialog).to_contain_text("orders: id = 8 was changed since")
    expect(dialog.locator("td.conflict")).to_have_text("returned → open")
    dialog.get_by_role("button", name="Close").click()
    assert not site.posted("changes/change-1/undo")


def test_a_conflict_that_the_server_finds_is_named(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1, state="used", decided_at=1e9, decided_by="ann", run=canned.run()))
    refusal = {"error": "undo.conflict", "message": "Rows have changed.", "conflicts": ["8"]}
    site.refusals["changes/change-1/undo"] = (409, refusal)
    page = window.tab(f"{url}#/inbox/ask-1")
    window.expected = ["409"]
    page.get_by_role("button", name="Put these rows back").click()
    page.get_by_role("dialog").get_by_role("button", name="Put these rows back").click()
    expect(page.get_by_role("alert")).to_have_text("Rows have changed. Changed since: 8.")


def test_putting_back_from_a_link_session_asks_for_the_passphrase(
    window: Window, site: Site, url: str
) -> None:
    site.session = canned.session(by="link", confirmed=False)
    site.add(canned.card(1, state="used", decided_at=1e9, decided_by="ann", run=canned.run()))
    page = window.tab(f"{url}#/inbox/ask-1")
    page.get_by_role("button", name="Put these rows back").click()
    page.get_by_label("Your passphrase").fill(site.passphrase)
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("The rows were put back")
    assert site.posted("changes/change-1/undo") == [{"passphrase": site.passphrase}]


PERSON = {"name": "ann", "id": "operator:ann", "client": "console", "in_console": True}
CASES: list[tuple[dict[str, Any], str]] = [
    ({"state": "expired"}, "Ended without an answer"),
    ({"state": "allowed", "waiting": {"until": None}}, "Waits for the caller to call again"),
    ({"state": "used", "run": canned.run("failed", message="disk full")}, ": disk full"),
    (
        {"state": "used", "run": canned.run("unknown", message="crash")},
        "Unknown whether it ran",
    ),
    ({"state": "used", "run": canned.run(rows=None)}, "number of rows unknown"),
    ({"state": "used", "run": canned.run(change_id=None)}, "Cannot be taken back."),
    ({"dry_run": canned.dry_run(affected=None, before=[], after=[])}, "is unknown"),
    ({"dry_run": None}, "Nothing was tried."),
    ({"dry_run": None, "dry_run_hidden": "The rows are shown to approvers."}, "shown to approvers"),
    ({"dry_run": canned.dry_run(affected=90)}, "and 87 more that are not shown here"),
    ({"dry_run": canned.dry_run(withheld=["total"])}, "Masked for the caller: total."),
    ({"dry_run": canned.dry_run(what="triples", added=4, removed=1)}, "4 would be added"),
    (
        {"dry_run": canned.dry_run(affected=2, requests=["POST /disks"])},
        "Would send 2 requests",
    ),
    (
        {"dry_run": canned.dry_run(after=[None] * 3)},
        "3 rows would be deleted; it was tried and rolled back.",
    ),
    (
        {"dry_run": canned.dry_run(before=[None] * 3)},
        "3 rows would be added; it was tried and rolled back.",
    ),
    ({"waiting": {"until": None}}, "it must call again after the answer"),
    ({"askers": 2}, "2 callers wait for this answer"),
    (
        {"undo": {"possible": None, "reason": "It has no key.", "triggers": []}},
        "Unknown whether",
    ),
    (
        {"undo": {"possible": False, "reason": "No key.", "triggers": []}},
        "Cannot be taken back. No",
    ),
    ({"unqualified": True}, "It may change every row"),
    ({"withheld": True}, "*** replaces what may be a secret"),
    ({"outside_transaction": True}, "what it has done stays if it fails"),
    ({"params": '["x"]'}, '["x"]'),
    ({"caller": PERSON}, "ann waits for the answer on the page Data."),
    ({"caller": PERSON}, "ann says: The parcels left this morning."),
    ({"caller": PERSON, "waiting": {"until": None}}, "after a yes ann must do it again"),
    ({"state": "used", "run": canned.run()}, "When it was asked: 3 rows would be changed"),
    ({"undo": {"possible": False, "reason": "`undo` is off", "triggers": []}}, "taken back. undo"),
]


def test_a_card_says_what_is_so(window: Window, site: Site, url: str) -> None:
    for number, (changes, _) in enumerate(CASES):
        decided = {} if changes.get("state") in {None, "expired"} else {"decided_at": 1e9}
        site.add(canned.card(number, **decided, **changes))
    page = window.tab(f"{url}#/inbox/ask-0")
    for number, (_, shown) in enumerate(CASES):
        page.evaluate(f"location.hash = '#/inbox/ask-{number}'")
        expect(title(page)).to_contain_text(f"({number})")
        expect(page.locator(".card")).to_contain_text(shown)


def test_buttons_that_one_may_not_use_are_absent_with_the_reason(
    window: Window, site: Site, url: str
) -> None:
    reason = "Another operator must answer: it is a question of your own token."
    site.add(canned.card(1, may=canned.may(allow=False, deny=False, undo=False, why_not=reason)))
    page = window.tab(url)
    expect(page.get_by_text(reason)).to_be_visible()
    for key in ("a", "Enter", "d", "u"):
        page.keyboard.press(key)
    expect(page.locator(".card-actions button")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert site.cards["ask-1"]["state"] == "pending"


def test_a_page_that_is_open_for_long_keeps_the_last_decisions_and_all_that_waits(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(url)
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    now = canned.time.time()
    for number in range(1, 41):
        site.put(canned.card(number))
    site.put(canned.card(100, state="used", decided_at=now, run=canned.run()))
    for number in range(101, 181):
        site.put(canned.card(number, state="used", decided_at=now + number, run=canned.run()))
    expect(page.locator(".cards").first.locator("li")).to_have_count(40)
    expect(page.locator(".cards li")).to_have_count(70)
    expect(page.locator(".cards li").nth(40)).to_contain_text("(180)")


def test_a_question_that_one_may_not_allow_is_neither_counted_nor_announced(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(url)
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    site.put(canned.card(1, may=canned.may(allow=False, deny=True, why_not="The call is yours.")))
    expect(page.locator(".cards li")).to_have_count(1)
    expect(page).to_have_title("Inbox – Tidegate")
    expect(page.locator(".rail .count")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="A question")).to_have_count(0)
    site.put(canned.card(2))
    expect(page).to_have_title("(1) Inbox – Tidegate")
    expect(page.get_by_role("status").filter(has_text="A question")).to_have_count(1)


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, NARROW], ids=["wide", "narrow"])
def test_nothing_is_cut_of_a_long_statement_and_the_buttons_stay_in_reach(
    window: Window, site: Site, url: str, size: dict[str, int]
) -> None:
    columns = [f"column_{n}" for n in range(100)]
    row = [f"value {n}" for n in range(100)]
    changed = [*row[:77], "another", *row[78:]]
    long_cell = "x" * 100_000
    statement = [["keyword", "SELECT"], ["space", " "]] + [
        [kind, text]
        for n in range(6_000)
        for kind, text in (("number", str(n)), ("plain", " + \n"))
    ]
    run = canned.dry_run(
        affected=1, columns=columns, before=[row], after=[[*changed[:99], long_cell]]
    )
    site.add(canned.card(1, statement=[*statement, ["name", "the_end"]], dry_run=run))
    page = window.tab(f"{url}#/inbox/ask-1")
    page.set_viewport_size(size)  # type: ignore[arg-type]
    expect(page.locator(".statement")).to_contain_text("5999 + \nthe_end")
    expect(page.locator("thead th")).to_have_count(101)
    # What changes comes first, where there are many columns.
    expect(page.locator("thead th").nth(2)).to_have_text("column_77")
    assert page.locator("ins.new").last.inner_text().count("x") == 100_000
    expect(allow_button(page)).to_be_in_viewport(ratio=1)
    page.locator(".facts").scroll_into_view_if_needed()
    expect(allow_button(page)).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_empty_inbox_shows_the_last_decision_agents_and_calls(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1, state="denied", decided_at=1e9, decided_by="ann"))
    site.agents = [{"name": "analyst", "client": "claude-code", "last_at": 1e9}]
    site.calls = [canned.line(n) for n in range(395, 399)]
    site.calls.append(canned.line(399, statement="SELECT " + "a_column, " * 40))
    page = window.tab(url)
    expect(page.locator(".empty")).to_contain_text("Nothing waits")
    expect(page.locator(".empty")).to_contain_text("Last decision 9 Sept 2001")
    expect(page.locator(".empty")).to_contain_text("analyst with claude-code")
    expect(page.locator(".calls li")).to_have_count(5)
    # What agents do is followed while no question takes its place.
    site.calls = [canned.line(400), *site.calls[:4]]
    site.publish("line", {"n": 401})
    expect(page.locator(".calls a").first).to_contain_text("id = 400")
    page.locator(".calls a").last.click()
    expect(page.locator(".panel")).to_contain_text("SELECT * FROM orders WHERE id = 398")


def test_an_empty_inbox_shows_the_last_calls_of_all_gates(
    window: Window, site: Site, url: str
) -> None:
    lost = [{"gate": "c3", "name": "gate-c", "why": "silent"}]
    site.gates = {"gates": {"a1": "gate-a", "b2": "gate-b"}, "missing": lost}
    site.calls = [{**canned.line(n), "gate": ("a1", "b2")[n % 2]} for n in range(399, 395, -1)]
    site.own_recent = {"calls": [], "whole": False, "gates": {}, "missing": []}
    page = window.tab(url)  # which asks again by itself, and shows no first steps meanwhile
    expect(page.locator(".calls .gate")).to_have_text(["gate-b", "gate-a"] * 2)
    expect(page.locator(".missing-gates")).to_have_text(
        "Calls at other gates are missing here: gate-c (does not answer)."
    )
    link = page.locator(".calls a").first
    expect(link).to_have_attribute("href", "#/activity?line=call-399%40b2")


def test_the_first_day_shows_three_steps_until_a_question_comes(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(url)
    expect(page.locator(".first-steps li")).to_have_count(3)
    expect(page.locator(".first-steps .done")).to_have_count(1)
    expect(page.locator(".live.on")).to_be_visible()
    site.put(canned.card(1))
    expect(title(page)).to_contain_text("(1)")
    expect(page.locator("#said")).to_contain_text("A question: claude-code wants to change")
    assert page.title() == "(1) Inbox – Tidegate"
    # Another one does not take the place of the one that is read.
    site.put(canned.card(0))
    expect(page.locator(".row.pending")).to_have_count(2)
    expect(title(page)).to_contain_text("(1)")


def test_the_keys_are_listed_and_single_letters_can_be_turned_off(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1), canned.card(2))
    page = window.tab(url)
    expect(title(page)).to_contain_text("(1)")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("a, then Enter")
    page.get_by_label("Single letters are keys").uncheck()
    page.get_by_role("button", name="Done").click()
    page.keyboard.press("j")
    page.keyboard.press("d")
    page.reload()
    expect(title(page)).to_contain_text("(1)")
    page.keyboard.press("d")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_goes_to_pages_and_questions(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1), canned.card(2, sentence="bob wants to empty the bin"))
    page = window.tab(url)
    expect(title(page)).to_contain_text("(1)")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to a page, a question or a table")).to_be_focused()
    page.keyboard.type("empty bin")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(title(page)).to_have_text("bob wants to empty the bin")
    page.keyboard.press("Control+k")
    page.keyboard.type("access")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Access")).to_be_visible()
    page.go_back()
    expect(title(page)).to_have_text("bob wants to empty the bin")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_narrow_window_shows_the_list_or_one_card(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1), canned.card(2))
    page = window.tab()
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(url)
    expect(page.locator(".row")).to_have_count(2)
    expect(page.locator(".card")).to_have_count(0)
    page.locator(".row").first.click()
    expect(allow_button(page)).to_be_in_viewport(ratio=1)
    expect(page.locator(".list")).to_be_hidden()
    page.get_by_role("link", name="All questions").click()
    expect(page.locator(".list")).to_be_visible()
    expect(page).to_have_url(re.compile("#/inbox$"))


def test_an_address_of_a_question_that_is_gone_says_so(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/inbox/nothing")
    window.expected = ["404"]
    expect(page.locator(".empty")).to_contain_text("This question is not here")
