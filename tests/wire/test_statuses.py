"""The HTTP statuses of the workbench's error table, in each mode, as official clients have them.

The Python SDK 1.x loses its session on a status that is an error, and the TypeScript SDK shows the
reply as a failure of the transport, so `auto` answers these with 200.
The Python SDK 2.x gives the same name: in the handshake era it is taken for the other, in the
stateless era it cannot be.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Serving, serving, tidegate
from support.eventually import wait_until
from wire.conversations import python_sdk, typescript_sdk
from wire.raw_http import http_request

Converse = Callable[[dict[str, Any]], dict[str, Any]]
CLIENTS: dict[str, Converse] = {
    "python 1": lambda config: python_sdk(1, config),
    "python 2": lambda config: python_sdk(2, {**config, "mode": "auto"}),
    "python 2 with a session": lambda config: python_sdk(2, {**config, "mode": "legacy"}),
    "typescript 1": lambda config: typescript_sdk(1, config),
    "typescript 2": lambda config: typescript_sdk(2, {**config, "mode": "auto"}),
    "typescript 2 with a session": lambda config: typescript_sdk(2, {**config, "mode": "legacy"}),
}
FRAGILE = "python 1"
TYPESCRIPT = ("typescript 1", "typescript 2", "typescript 2 with a session")
SPARED = (FRAGILE, "python 2 with a session", *TYPESCRIPT)
WITH_SESSIONS = tuple(each for each in SPARED if each != "typescript 2")
MODES = ("auto", "seed", "compat")
LOST = (FRAGILE, "seed")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
NOWHERE = "tablepro://nowhere"

each_client = pytest.mark.parametrize("client", sorted(CLIENTS))


class Harness:
    """A state with two sources, one of which no one can reach, and a token."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.settings = directory / "tidegate.json"
        with closing(sqlite3.connect(directory / "towns.db")) as made, made:
            made.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY)")
        self.sources = [
            {"name": "towns", "url": f"sqlite:///{directory}/towns.db"},
            {"name": "away", "url": "postgresql://nobody@127.0.0.1:1/none"},
        ]
        self.token = self.make("peer")

    def make(self, name: str, *words: str) -> str:
        made = tidegate("token", "create", name, "--scope", "readOnly", *words, state=self.state)
        return made.out.strip()

    @contextmanager
    def served(self, mode: str) -> Iterator[dict[str, Any]]:
        """How a client reaches it."""
        settings = {"http_error_status": mode, "sources": self.sources, "body_limit_bytes": 20_000}
        self.settings.write_text(json.dumps(settings))
        words = ("serve", "--http", "127.0.0.1:0", "--config", str(self.settings))
        with serving(words, self.state) as server:
            yield {"url": f"{_address(server)}/mcp/workbench", "token": self.token}


def _address(server: Serving) -> str:
    line = server.until("serving")
    return next(word for word in line.split() if word.startswith("http")).removesuffix("/mcp")


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def calls(ids: dict[str, str]) -> list[tuple[list[Any], int, int]]:
    """A call, its JSON-RPC code (0 if it is answered), and its status by the table."""
    towns, away = {"connection_id": ids["towns"]}, {"connection_id": ids["away"]}
    select = ["execute_query", {**towns, "query": "SELECT id FROM towns"}]
    endless = ["execute_query", {**towns, "query": ENDLESS, "timeout_seconds": 1}]
    return [
        (select, 0, 200),
        (["execute_query", {**towns, "query": "DELETE FROM towns"}], -32007, 403),
        (["execute_query", towns], -32602, 200),
        (["focus_query_tab", {"tab_id": "none"}], -32602, 200),
        (["no_such_tool", {}], -32601, 200),
        (endless, -32003, 200),
        (["connect", away], -32000, 503),
        (["resources/read", {"uri": NOWHERE}], -32601, 404),
        (select, 0, 200),
    ]


def _ids(converse: Converse, where: dict[str, Any]) -> dict[str, str]:
    (listed,) = converse({**where, "calls": [["list_connections", {}]]})["results"]
    return {each["name"]: each["id"] for each in json.loads(listed["text"])["connections"]}


def _check(result: dict[str, Any], code: int, status: int) -> None:
    if not code:
        assert "code" not in result, result
        return
    # The TypeScript SDKs give the HTTP status as the code and the whole reply as the message.
    assert str(code) in f"{result['code']} {result['message']}", result


@each_client
@pytest.mark.parametrize("mode", MODES)
def test_each_error_has_the_status_of_its_mode(harness: Harness, client: str, mode: str) -> None:
    converse = CLIENTS[client]
    with harness.served(mode) as where:
        listed = calls(_ids(converse, where))
        if (client, mode) == LOST:
            listed = [each for each in listed if each[2] == 200]
        report = converse({**where, "calls": [call for call, _, _ in listed]})
    plain = mode == "compat" or (mode == "auto" and client in SPARED)
    assert report["statuses"] == [200 if plain else status for _, _, status in listed]
    for result, (_, code, status) in zip(report["results"], listed, strict=True):
        _check(result, code, status)


def test_the_table_ends_the_session_of_the_client_for_which_auto_spares_it(
    harness: Harness,
) -> None:
    converse = CLIENTS[FRAGILE]
    with harness.served("seed") as where:
        wrong = [call for call, _, status in calls(_ids(converse, where)) if status == 403]
        with pytest.raises(AssertionError, match="403"):
            converse({**where, "calls": wrong})


@pytest.mark.parametrize(
    ("client", "mode"),
    # That the fragile one is lost on such a status is shown above.
    [(each, mode) for each in sorted(CLIENTS) for mode in MODES if (each, mode) != LOST],
)
def test_a_fault_of_the_server_is_500_where_the_mode_has_it(
    harness: Harness, client: str, mode: str
) -> None:
    with harness.served(mode) as where:
        harness.settings.write_text("{")
        report = CLIENTS[client]({**where, "calls": [["list_connections", {}]]})
    plain = mode == "compat" or (mode == "auto" and client in SPARED)
    assert report["statuses"] == [200 if plain else 500]
    _check(report["results"][0], -32603, 500)


@each_client
def test_what_the_door_refuses_has_its_status_for_every_client(
    harness: Harness, client: str
) -> None:
    expired = harness.make("short", "--expires", "1s")
    wait_until(
        lambda: '"expired"' in tidegate("token", "list", "--json", state=harness.state).out,
        "the end",
    )
    with harness.served("compat") as where:
        for token, reported in ((expired, "expired"), ("tg_" + "x" * 43, "[Uu]nauth|not valid")):
            # The Python SDK 2 keeps what the server said to itself.
            with pytest.raises(AssertionError, match=f"401|{reported}|returned an error response"):
                CLIENTS[client]({**where, "token": token, "calls": []})


def _select(towns: str, more: str = "") -> list[Any]:
    query = f"SELECT id FROM towns /* {more} */"
    return ["execute_query", {"connection_id": towns, "query": query}]


@each_client
def test_a_body_that_is_too_large_is_413_in_every_mode(harness: Harness, client: str) -> None:
    with harness.served("compat") as where:
        towns = _ids(CLIENTS[client], where)["towns"]
        given = {**where, "calls": [_select(towns, "x" * 30_000)]}
        if client == FRAGILE:
            with pytest.raises(AssertionError, match="413"):
                CLIENTS[client](given)
            return
        report = CLIENTS[client](given)
    assert report["statuses"] == [413]
    assert "Payload too large" in report["results"][0]["message"] or client.startswith("python")


@pytest.mark.parametrize("client", WITH_SESSIONS)
def test_a_lost_session_is_404_in_every_mode(harness: Harness, client: str) -> None:
    with harness.served("compat") as where:
        towns = _ids(CLIENTS[client], where)["towns"]
        calls = [_select(towns), ["end", {}], _select(towns)]
        report = CLIENTS[client]({**where, "calls": calls})
    first, ended, lost = report["results"]
    assert ("text" in first, ended["status"]) == (True, 204)
    assert report["statuses"] == [200, 404]
    # The Python SDK 1 has words of its own for it.
    assert "Session not found" in lost["message"] or "Session terminated" in lost["message"]


def test_a_second_handshake_is_400_in_every_mode(harness: Harness) -> None:
    with harness.served("compat") as where, pytest.raises(AssertionError, match="400"):
        CLIENTS[FRAGILE]({**where, "calls": [["initialize", {}]]})


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_is_called_back_is_answered_so_with_200(harness: Harness, mode: str) -> None:
    converse = CLIENTS[FRAGILE]
    with harness.served(mode) as where:
        towns = _ids(converse, where)["towns"]
        endless = {"connection_id": towns, "query": ENDLESS, "timeout_seconds": 60}
        called_back = ["cancel", {"tool": "execute_query", "arguments": endless}]
        report = converse({**where, "calls": [called_back, _select(towns)]})
    assert report["statuses"] == [200, 200]
    assert report["results"][0]["code"] == -32002
    assert "text" in report["results"][1]


@each_client
def test_an_address_that_guesses_tokens_is_429_in_every_mode(harness: Harness, client: str) -> None:
    with harness.served("compat") as where:
        port = int(where["url"].split(":")[2].partition("/")[0])
        for guess in range(6):
            headers = {"Authorization": f"Bearer tg_{guess:043}"}
            answer = http_request(port, "POST", "/mcp/workbench", b"{}", headers)
            answer.close()
        assert answer.status == 429
        with pytest.raises(AssertionError, match=r"429|locked|Too many|returned an error response"):
            CLIENTS[client]({**where, "token": "tg_" + "y" * 43, "calls": []})
