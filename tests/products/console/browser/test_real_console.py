"""The console of a real server in Chromium, from the agent's question to the rows put back."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from playwright.sync_api import expect

from products.console.support.chromium import Window, violations
from products.console.support.question_card import click_allow
from support.command_line import Ended, serving, tidegate
from support.engine_cases import SQLITE
from wire.wires import MODERN, HttpPeer, Outcome

PASSPHRASE = "correct horse 1"
REASON = "The town has another name now."
UPDATE = "UPDATE towns SET name = 'Lviv' WHERE id = 2"


class Place(NamedTuple):
    """A server with a console before a database that keeps its changes, and an agent of it."""

    directory: Path
    state: Path
    address: str
    agent: HttpPeer

    def run(self, *words: str) -> Ended:
        ended = tidegate(*words, state=self.state)
        assert ended.status == 0, ended.err
        return ended

    def link(self) -> str:
        return self.run("console", "--print", "--operator", "ada").out.strip()

    def names(self) -> list[str]:
        with closing(sqlite3.connect(self.directory / "towns.db")) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM towns ORDER BY id")]

    def query(self) -> Outcome:
        return self.agent.call("query", {"sql": UPDATE, "source": "towns", "reason": REASON})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    state, secret = tmp_path / "state", tmp_path / "secret"
    with closing(sqlite3.connect(tmp_path / "towns.db")) as connection, connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
    secret.write_text(PASSPHRASE + "\n")
    url = f"sqlite:///{tmp_path}/towns.db"
    rules = ["--allow-writes", "--approval-for", "writes", "--undo", "keep"]
    new, given = ["--new-passphrase-file", str(secret)], ["--passphrase-file", str(secret)]
    for words in (
        ["passphrase", "set", *new],
        ["source", "add", "towns", url, *rules, *given],
        ["operator", "add", "ada", *new, *given],
    ):
        ended = tidegate(*words, state=state)
        assert ended.status == 0, ended.err
    words = ["token", "create", "claude", "--scope", "fullAccess", *given]
    token = tidegate(*words, state=state).out.strip()
    with serving(["serve", "--http", "127.0.0.1:0", "--console"], state) as server:
        address = server.until("the console is at").partition("http://")[2].partition("/")[0]
        agent = HttpPeer(int(address.rpartition(":")[2]), MODERN, capabilities={})
        agent.token = token
        yield Place(tmp_path, state, f"http://{address}", agent)


FILES = """performance.getEntriesByType("resource")
  .filter(({ name }) => name.includes("/console/assets/"))
  .map(({ name, transferSize }) => [name, transferSize > 0])"""
LINKS = "[...document.querySelectorAll('link[rel=modulepreload]')].map(({ href }) => href)"


def test_files_of_the_page_are_fetched_once_together_and_kept(place: Place, window: Window) -> None:
    page = window.tab(place.link())
    expect(page.locator(".live.on")).to_be_visible()
    page.get_by_role("link", name="Data").click()
    expect(page.locator("#tree-search")).to_be_visible()
    first = page.evaluate(FILES)
    names = [name for name, sent in first if sent]
    assert len(names) == len(set(names)) > 40
    # What a module imports was asked for by the page, and not when the module had come.
    modules = {name for name in names if name.endswith(".js") and not name.endswith("/app.js")}
    assert set(page.evaluate(LINKS)) == modules
    again = window.tab(f"{place.address}/console#/data")
    expect(again.locator("#tree-search")).to_be_visible()
    kept = again.evaluate(FILES)
    assert {name for name, _ in kept} == set(names)
    assert [name for name, sent in kept if sent] == []


def test_a_question_arrives_is_allowed_found_under_activity_and_its_rows_put_back(
    place: Place, window: Window
) -> None:
    page = window.tab(place.link())
    expect(page.locator(".empty")).to_contain_text("Nothing waits")
    expect(page.locator(".live.on")).to_be_visible()
    place.query()
    expect(page.locator("#card-title")).to_contain_text("wants to change 1 row of towns on towns")
    expect(page.locator(".agent-says")).to_contain_text(REASON)
    expect(page.locator("td.change")).to_have_text("Lemberg → Lviv")
    expect(page.locator(".fact.good")).to_contain_text("Can be taken back")
    expect(page.locator(".statement .t-keyword").first).to_have_text("UPDATE")
    assert violations(page) == []
    assert place.names() == ["Köln", "Lemberg"]

    click_allow(page)
    page.get_by_label("Your passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".steps")).to_contain_text("Allowed by ada")
    place.query()
    expect(page.locator(".steps")).to_contain_text("Done: 1 row")
    assert place.names() == ["Köln", "Lviv"]

    page.get_by_role("link", name="Activity").click()
    page.get_by_role("button", name="Calls", exact=True).click()
    page.get_by_label("Outcome").select_option("ok")
    page.get_by_label("Search").fill("Lviv")
    page.keyboard.press("Enter")
    page.locator(".line", has_text="UPDATE towns").first.click()
    panel = page.locator(".panel")
    expect(panel).to_contain_text("1 row would be changed")
    expect(panel.locator(".proof-line")).not_to_be_empty()
    assert violations(page) == []
    panel.get_by_role("button", name="Put these rows back").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("td.change")).to_have_text("Lviv → Lemberg")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#said")).to_have_text("1 row put back.")
    assert place.names() == ["Köln", "Lemberg"]
    panel.get_by_role("link", name="Open the question").click()
    expect(page.locator(".steps")).to_contain_text("The rows were put back")


def test_a_no_by_keys_reaches_the_agent_and_access_ends_the_session(
    place: Place, window: Window
) -> None:
    window.expected = ["401"]
    page = window.tab(f"{place.address}/console")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".live.on")).to_be_visible()
    other = window.tab(f"{place.address}/console")
    place.query()
    for each in (page, other):
        expect(each.locator("#card-title")).to_be_visible()
    other.keyboard.press("d")
    other.keyboard.type("It keeps its name.")
    other.keyboard.press("Enter")
    expect(page.locator(".word")).to_contain_text("It keeps its name.")
    assert "It keeps its name." in str(place.query().response)
    assert place.names() == ["Köln", "Lemberg"]
    page.get_by_role("link", name="Access").click()
    expect(page.locator(".records").last).to_contain_text("this one")
    assert violations(page) == []
    page.get_by_role("link", name="Activity").click()
    expect(page.locator(".fold").first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export as JSON lines").click()
    assert "Lviv" in Path(saved.value.path()).read_text()
    page.get_by_role("link", name="Access").click()
    page.get_by_role("button", name="End the session of ada").first.click()
    page.get_by_role("dialog").get_by_role("button", name="End the session").click()
    for each in (page, other):
        expect(each.get_by_label("Passphrase")).to_be_visible()
        assert "Lemberg" not in each.content()


def test_a_link_signs_in_once(place: Place, window: Window) -> None:
    link = place.link()
    page = window.tab(link)
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    assert page.url.endswith("/console#/inbox")
    page.get_by_role("button", name="ada").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_label("Name")).to_be_visible()
    window.expected = ["40"]
    page.goto(link)
    expect(page.get_by_role("status").first).not_to_be_empty()
    expect(page.get_by_label("Name")).to_be_visible()


def test_a_server_on_another_port_that_reads_the_cookie_gets_no_session_of_it(
    place: Place, window: Window
) -> None:
    page = window.tab(place.link())
    expect(page.locator(".live.on")).to_be_visible()
    seen: list[str] = []
    # The other server ends while the browser still asks it for an icon.
    window.expected += ["ERR_CONNECTION_RESET", "ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE"]

    class Thief(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>a page of another port</title>")

        def log_message(self, format: str, *args: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Thief) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page.goto(f"http://127.0.0.1:{server.server_port}/console")
        expect(page).to_have_title("a page of another port")
        server.shutdown()
        thread.join()
    cookie = next(each for each in seen if "tidegate_" in each)  # browsers send it to every port
    headers = {"cookie": cookie, "origin": place.address, "sec-fetch-site": "same-origin"}
    with httpx.Client(trust_env=False, headers=headers) as client:
        for body in ({}, {"key": "0" * 64}):
            answer = client.post(f"{place.address}/console/api/session", json=body)
            assert answer.status_code == 401 and "page" not in answer.json()
    page.goto(f"{place.address}/console")
    expect(page.locator(".live.on")).to_be_visible()


def test_a_call_is_seen_while_it_runs_and_is_cancelled_from_now(
    place: Place, open_window: Any
) -> None:
    window: Window = open_window()
    page = window.tab(place.link())
    expect(page.locator(".live.on")).to_be_visible()
    page.get_by_role("link", name="Now", exact=True).click()
    expect(page.get_by_text("No call is under way.")).to_be_visible()
    outcomes: list[Outcome] = []
    arguments = {"sql": SQLITE.runaway, "source": "towns"}
    call = threading.Thread(
        target=lambda: outcomes.append(place.agent.call("query", arguments)), daemon=True
    )
    call.start()
    running = page.locator(".running-call")
    expect(running).to_contain_text("WITH RECURSIVE")
    expect(running).to_contain_text("running")
    running.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the call").click()
    expect(page.get_by_text("No call is under way.")).to_be_visible()
    call.join()
    assert "An operator cancelled the call" in str(outcomes[0].response)
    assert violations(page) == []
    page.evaluate("location.hash = '#/activity?view=calls'")
    expect(page.locator(".o-cancelled")).to_be_visible()
