"""The tabs of the Data page over HTTP: what pages and agents open, write, focus and close."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk
from support.eventually import wait_until
from wire.wires import MODERN, HttpPeer, Outcome

pytestmark = pytest.mark.needs("duckdb", "workbench")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, ("lite", "duck"), serves=("--surface", "workbench")) as found:
        yield found


class Stream:
    """The live stream of a visitor, read on a thread."""

    def __init__(self, visitor: Visitor) -> None:
        self.events: list[tuple[str, Any]] = []
        self._visitor = visitor
        self._client = httpx.Client(
            base_url=visitor.address, trust_env=False, cookies=visitor.client.cookies
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_until(lambda: self.of("hello"), "the stream")

    def _read(self) -> None:
        headers = self._visitor.headers(origin=None, content_type=None)
        name = ""
        with (
            suppress(httpx.HTTPError),  # the server has ended
            self._client,
            self._client.stream("GET", "/console/api/events", headers=headers) as response,
        ):
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((name, json.loads(line.removeprefix("data: "))))

    def of(self, name: str) -> list[Any]:
        return [data for event, data in self.events if event == name]

    def tabs(self) -> list[tuple[str, str, str]]:
        return [
            (each["action"], each["tab"]["table"] or each["tab"]["title"], each["by"])
            for each in self.of("tab")
        ]


def token(place: Desk, name: str, owner: str) -> str:
    words = ["token", "create", name, "--scope", "readWrite", "--owner", owner]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    return ended.out.strip()


def agent(place: Desk, secret: str) -> HttpPeer:
    peer = HttpPeer(int(place.address.rpartition(":")[2]), MODERN, capabilities={})
    peer.token = secret
    return peer


def content(outcome: Outcome) -> dict[str, Any]:
    assert "result" in outcome.response, outcome.text
    found: dict[str, Any] = outcome.result["structuredContent"]
    return found


def is_answered(outcome: Outcome) -> bool:
    """Whether the call was not refused: a tool may be called so often only."""
    return not outcome.response.get("result", {"isError": True}).get("isError", False)


def connection(peer: HttpPeer, name: str) -> str:
    listed = content(peer.call("list_connections", {}))["connections"]
    (id,) = [each["id"] for each in listed if each["name"] == name]
    return str(id)


def test_a_page_opens_writes_focuses_and_closes_tabs(place: Desk) -> None:
    vera = place.visitor("vera")
    body = {"source": "lite", "kind": "query", "text": "SELECT 1", "title": "one"}
    first = answer(vera.post("data/tabs", body))
    assert (first["text"], first["opened_by"], first["is_active"]) == ("SELECT 1", "", True)
    table = answer(vera.post("data/tabs", {"source": "lite", "kind": "table", "table": "orders"}))
    assert (table["schema"], table["window"]) == ("main", first["window"])
    again = answer(vera.post("data/tabs", {"source": "lite", "kind": "table", "table": "orders"}))
    assert again["id"] == table["id"]
    listed = answer(vera.get("data/tabs"))
    assert [each["id"] for each in listed["tabs"]] == [first["id"], table["id"]]
    assert listed["windows"] == [{"id": first["window"], "source": "lite"}]
    written = answer(
        vera.post(f"data/tabs/{first['id']}", {"text": "SELECT 2", "version": first["version"]})
    )
    assert (written["text"], written["chart"]) == ("SELECT 2", None)
    late = vera.post(f"data/tabs/{first['id']}", {"text": "x", "version": first["version"]})
    assert (late.status_code, late.json()["error"]) == (409, "tab.changed")
    assert late.json()["tab"] == written
    assert answer(vera.post(f"data/tabs/{first['id']}/focus"))["is_active"]
    assert vera.post(f"data/tabs/{first['id']}/close").status_code == 204
    assert [each["id"] for each in answer(vera.get("data/tabs"))["tabs"]] == [table["id"]]
    for path in (f"data/tabs/{first['id']}/focus", f"data/tabs/{first['id']}/close"):
        refused = vera.post(path)
        assert (refused.status_code, refused.json()["error"]) == (404, "window.unknown_tab")
    reopened = answer(vera.post("data/tabs/reopen"))
    assert (reopened["id"], reopened["text"]) == (first["id"], "SELECT 2")
    assert vera.post("data/tabs/reopen").status_code == 404


def test_each_query_tab_of_a_source_has_a_title_of_its_own(place: Desk) -> None:
    ada = place.visitor()
    made = [answer(ada.post("data/tabs", {"source": "lite", "kind": "query"})) for _ in range(3)]
    assert [each["title"] for each in made] == ["Query", "Query 2", "Query 3"]
    assert ada.post(f"data/tabs/{made[1]['id']}/close", {}).status_code == 204
    again = answer(ada.post("data/tabs", {"source": "lite", "kind": "query"}))
    assert again["title"] == "Query 2"
    for each in (made[0], made[2], again):
        ada.post(f"data/tabs/{each['id']}/close", {})


def test_tabs_of_another_operator_are_not_there(place: Desk) -> None:
    vera, ada = place.visitor("vera"), place.visitor("ada")
    tab = answer(vera.post("data/tabs", {"source": "lite", "kind": "query", "text": "hers"}))
    assert answer(ada.get("data/tabs")) == {"windows": [], "tabs": []}
    for path, body in (
        (f"data/tabs/{tab['id']}", {"text": "mine", "version": tab["version"]}),
        (f"data/tabs/{tab['id']}/focus", {}),
        (f"data/tabs/{tab['id']}/close", {}),
    ):
        assert ada.post(path, body).status_code == 404
    assert ada.post("data/tabs/reopen").status_code == 404
    assert answer(vera.get("data/tabs"))["tabs"][0]["text"] == "hers"


def test_tabs_outlast_the_session_and_a_blocked_source_hides_them(place: Desk) -> None:
    vera = place.visitor("vera")
    tab = answer(vera.post("data/tabs", {"source": "lite", "kind": "query"}))
    again = place.visitor("vera")
    assert [each["id"] for each in answer(again.get("data/tabs"))["tabs"]] == [tab["id"]]
    consent = ["--passphrase-file", str(place.directory / "consent")]
    assert place.run("source", "update", "lite", "--access", "none", *consent).status == 0
    assert answer(again.get("data/tabs"))["tabs"] == []
    assert again.post(f"data/tabs/{tab['id']}/focus").status_code == 404
    assert place.run("source", "update", "lite", "--access", "read", *consent).status == 0
    assert [each["id"] for each in answer(again.get("data/tabs"))["tabs"]] == [tab["id"]]


def test_a_tab_on_a_source_without_a_role_is_refused(place: Desk) -> None:
    lee = place.visitor("lee")
    for body in ({"kind": "query"}, {"kind": "table", "table": "orders"}):
        refused = [lee.post("data/tabs", {"source": name, **body}) for name in ("duck", "none")]
        assert [each.status_code for each in refused] == [403, 403]
        assert refused[0].text == refused[1].text
    unknown = lee.post("data/tabs", {"source": "lite", "kind": "table", "table": "nothing"})
    assert unknown.status_code == 404


def test_what_an_agent_opens_is_live_at_its_owners_page_alone(place: Desk) -> None:
    claude = agent(place, token(place, "claude", "ada"))
    lite = connection(claude, "lite")
    before = content(claude.call("open_table_tab", {"connection_id": lite, "table_name": "ties"}))
    assert not before["is_delivered"]
    ada, vera = place.visitor("ada"), place.visitor("vera")
    mine, theirs = Stream(ada), Stream(vera)

    def is_open() -> bool:
        listed = content(claude.call("list_recent_tabs", {}))["tabs"]
        assert listed
        return bool(
            content(claude.call("open_connection_window", {"connection_id": lite}))["is_delivered"]
        )

    wait_until(is_open, "a page that is known to be open")

    def open_orders() -> Any:
        outcome = claude.call("open_table_tab", {"connection_id": lite, "table_name": "orders"})
        return outcome if is_answered(outcome) else None

    first = content(wait_until(open_orders, "a second"))
    assert first["is_delivered"]
    wait_until(lambda: [each for each in mine.tabs() if each[1] == "orders"], "the tab")
    (shown,) = [each for each in mine.of("tab") if each["tab"]["table"] == "orders"]
    assert (shown["action"], shown["tab"]["id"]) == ("opened", first["tab_id"])
    assert shown["by"] and shown["tab"]["source"] == "lite"
    assert theirs.tabs() == []
    answer(ada.post(f"data/tabs/{first['tab_id']}", {"title": "mine", "version": 1}))
    ada.post(f"data/tabs/{first['tab_id']}/close")
    wait_until(lambda: mine.tabs()[-1] == ("closed", "orders", ""), "the end of the tab")
    gone = claude.call("focus_query_tab", {"tab_id": first["tab_id"]})
    assert "tab not found" in gone.text


def test_a_page_that_has_left_is_no_longer_delivered_to(place: Desk) -> None:
    secret = token(place, "claude", "ada")
    claude = agent(place, secret)
    lite = connection(claude, "lite")

    def is_delivered() -> bool:
        outcome = claude.call("open_connection_window", {"connection_id": lite})
        return is_answered(outcome) and content(outcome)["is_delivered"]

    ada = place.visitor("ada")
    stream = Stream(ada)
    wait_until(is_delivered, "an open page")
    ada.post("sign-out", {"everywhere": True})
    del stream

    def is_gone() -> bool:
        outcome = claude.call("open_connection_window", {"connection_id": lite})
        return is_answered(outcome) and not content(outcome)["is_delivered"]

    wait_until(is_gone, "the page to be gone")


def test_bodies_that_fit_no_tab_are_refused(place: Desk) -> None:
    vera = place.visitor("vera")
    tab = answer(vera.post("data/tabs", {"source": "lite", "kind": "query"}))
    for path, body in (
        ("data/tabs", {"source": "lite", "kind": "shell"}),
        ("data/tabs", {"kind": "query"}),
        ("data/tabs", {"source": "lite", "kind": "query", "text": "x" * 262_145}),
        (f"data/tabs/{tab['id']}", {"text": "no version"}),
        (f"data/tabs/{tab['id']}", {"version": 1, "text": "x" * 262_145}),
    ):
        assert vera.post(path, body).json()["error"] == "argument.invalid", body
    assert answer(vera.get("data/tabs"))["tabs"] == [tab]
