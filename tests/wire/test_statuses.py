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
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Serving, serving, tidegate
from support.eventually import wait_until
from wire.conversations import python_sdk, typescript_sdk
from wire.raw_http import http_request
from wire.wires import MODERN, HttpPeer

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
TELLING = ("python 2", "python 2 with a session")
"""Those that show what a refusal says, if it names their request."""
SPARED = (FRAGILE, "python 2 with a session", *TYPESCRIPT)
WITH_SESSIONS = tuple(each for each in SPARED if each != "typescript 2")
MODES = ("auto", "seed", "compat")
LOST = (FRAGILE, "seed")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
NOWHERE = "tablepro://nowhere"

each_client = pytest.mark.parametrize("client", sorted(CLIENTS))


class Harness:
    """A state with two sources, one of which no one can reach, and a token."""

    def __init__(self, directory: Path, shared: ExitStack) -> None:
        self.directory = directory
        self.state = directory / "state"
        self._shared = shared
        self._servers: dict[str, dict[str, Any]] = {}
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

    def where(self, mode: str) -> dict[str, Any]:
        """How a client reaches a server of that mode, which the tests share."""
        if mode not in self._servers:
            settings = self.directory / f"{mode}.json"
            self._servers[mode] = self._shared.enter_context(self.served(mode, settings))
        return self._servers[mode]

    @contextmanager
    def served(self, mode: str, settings: Path) -> Iterator[dict[str, Any]]:
        """How a client reaches a server of its own, with these settings."""
        workbench = {"http_error_status": mode, "errors": "document"}
        chosen = {
            "surface": {"workbench": workbench},
            "sources": self.sources,
            "body_limit_bytes": 20_000,
            "limits": {"timeout_s": 0.2},
        }
        settings.write_text(json.dumps(chosen))
        words = ("serve", "--http", "127.0.0.1:0", "--config", str(settings))
        with serving(words, self.state) as server:
            yield {"url": f"{_address(server)}/mcp/workbench", "token": self.token}


def _address(server: Serving) -> str:
    line = server.until("serving")
    return next(word for word in line.split() if word.startswith("http")).removesuffix("/mcp")


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with ExitStack() as shared:
        yield Harness(tmp_path_factory.mktemp("statuses"), shared)


@pytest.fixture
def guessed(tmp_path: Path) -> Harness:
    """A state of its own, for a test of tokens that are not valid: those lock the address out."""
    return Harness(tmp_path, ExitStack())


def calls(ids: dict[str, str]) -> list[tuple[list[Any], int, int]]:
    """A call, its JSON-RPC code (0 if it is answered), and its status by the table."""
    towns, away = {"connection_id": ids["towns"]}, {"connection_id": ids["away"]}
    select = _select(ids["towns"])
    endless = ["execute_query", {**towns, "query": ENDLESS}]
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


def _port(where: dict[str, Any]) -> int:
    return int(where["url"].split(":")[2].partition("/")[0])


def _ids(where: dict[str, Any]) -> dict[str, str]:
    peer = HttpPeer(_port(where), MODERN, path="/mcp/workbench")
    peer.token = where["token"]
    listed = json.loads(peer.call("list_connections").text)
    return {each["name"]: each["id"] for each in listed["connections"]}


def _check(result: dict[str, Any], code: int, status: int) -> None:
    if not code:
        assert "code" not in result, result
        return
    # The TypeScript SDKs give the HTTP status as the code and the whole reply as the message.
    assert str(code) in f"{result['code']} {result['message']}", result


@each_client
@pytest.mark.parametrize("mode", MODES)
def test_each_error_has_the_status_of_its_mode(harness: Harness, client: str, mode: str) -> None:
    where = harness.where(mode)
    listed = calls(_ids(where))
    if (client, mode) == LOST:
        listed = [each for each in listed if each[2] == 200]
    report = CLIENTS[client]({**where, "calls": [call for call, _, _ in listed]})
    plain = mode == "compat" or (mode == "auto" and client in SPARED)
    if report["revision"] == MODERN:
        # There an unknown resource is a wrong parameter, and -32601 a method that is not there.
        listed = [
            (call, -32602, 200) if call[0] == "resources/read" else (call, code, status)
            for call, code, status in listed
        ]
    assert report["statuses"] == [200 if plain else status for _, _, status in listed]
    for result, (_, code, status) in zip(report["results"], listed, strict=True):
        _check(result, code, status)


def test_the_table_ends_the_session_of_the_client_for_which_auto_spares_it(
    harness: Harness,
) -> None:
    where = harness.where("seed")
    wrong = [call for call, _, status in calls(_ids(where)) if status == 403]
    with pytest.raises(AssertionError, match="403"):
        CLIENTS[FRAGILE]({**where, "calls": wrong})


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_of_the_server_is_500_where_the_mode_has_it(
    harness: Harness, tmp_path: Path, mode: str
) -> None:
    settings = tmp_path / "tidegate.json"
    with harness.served(mode, settings) as where:
        settings.write_text("{")
        # That the fragile one is lost on such a status is shown above.
        for client in (each for each in sorted(CLIENTS) if (each, mode) != LOST):
            report = CLIENTS[client]({**where, "calls": [["list_connections", {}]]})
            plain = mode == "compat" or (mode == "auto" and client in SPARED)
            assert report["statuses"] == [200 if plain else 500], client
            _check(report["results"][0], -32603, 500)


@each_client
def test_what_the_door_refuses_has_its_status_for_every_client(
    guessed: Harness, tmp_path: Path, client: str
) -> None:
    expired = guessed.make("short", "--expires", "1s")
    wait_until(
        lambda: '"expired"' in tidegate("token", "list", "--json", state=guessed.state).out,
        "the end",
    )
    with guessed.served("compat", tmp_path / "tidegate.json") as where:
        for token, reported in ((expired, "has expired"), ("tg_" + "x" * 43, "is not valid")):
            found = reported if client in TELLING else f"401|[Uu]nauth|{reported}"
            with pytest.raises(AssertionError, match=found):
                CLIENTS[client]({**where, "token": token, "calls": []})


def _select(towns: str, more: str = "") -> list[Any]:
    query = f"SELECT id FROM towns /* {more} */"
    return ["execute_query", {"connection_id": towns, "query": query, "timeout_seconds": 60}]


@each_client
def test_a_body_that_is_too_large_is_413_in_every_mode(harness: Harness, client: str) -> None:
    where = harness.where("compat")
    given = {**where, "calls": [_select(_ids(where)["towns"], "x" * 30_000)]}
    if client == FRAGILE:
        with pytest.raises(AssertionError, match="413"):
            CLIENTS[client](given)
        return
    report = CLIENTS[client](given)
    assert report["statuses"] == [413]
    assert "Payload too large" in report["results"][0]["message"]
    assert client not in TELLING or report["results"][0]["code"] == -32005


@pytest.mark.parametrize("client", WITH_SESSIONS)
def test_a_lost_session_is_404_in_every_mode(harness: Harness, client: str) -> None:
    where = harness.where("compat")
    towns = _ids(where)["towns"]
    calls = [_select(towns), ["end", {}], _select(towns)]
    report = CLIENTS[client]({**where, "calls": calls})
    first, ended, lost = report["results"]
    assert ("text" in first, ended["status"]) == (True, 204)
    assert report["statuses"] == [200, 404]
    # The Python SDK 1 has words of its own for it.
    assert "Session not found" in lost["message"] or "Session terminated" in lost["message"]


def test_a_second_handshake_is_400_in_every_mode(harness: Harness) -> None:
    with pytest.raises(AssertionError, match="400"):
        CLIENTS[FRAGILE]({**harness.where("compat"), "calls": [["initialize", {}]]})


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_is_called_back_is_answered_so_with_200(harness: Harness, mode: str) -> None:
    where = harness.where(mode)
    towns = _ids(where)["towns"]
    endless = {"connection_id": towns, "query": ENDLESS, "timeout_seconds": 60}
    called_back = ["cancel", {"tool": "execute_query", "arguments": endless}]
    report = CLIENTS[FRAGILE]({**where, "calls": [called_back, _select(towns)]})
    assert report["statuses"] == [200, 200]
    assert report["results"][0]["code"] == -32002
    assert "text" in report["results"][1]


def test_an_address_that_guesses_tokens_is_429_in_every_mode(
    guessed: Harness, tmp_path: Path
) -> None:
    with guessed.served("compat", tmp_path / "tidegate.json") as where:
        statuses: list[int] = []
        for guess in range(6):
            headers = {"Authorization": f"Bearer tg_{guess:043}"}
            answer = http_request(_port(where), "POST", "/mcp/workbench", b"{}", headers)
            statuses.append(answer.status)
            answer.close()
        assert statuses[-1] == 429
        for client in sorted(CLIENTS):
            found = "Too many failed" if client in TELLING else "429|locked|Too many"
            with pytest.raises(AssertionError, match=found):
                CLIENTS[client]({**where, "token": "tg_" + "y" * 43, "calls": []})
