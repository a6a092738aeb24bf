"""A call that needs a person is told, at each edge, the place where one can answer: that of the
console which its own server serves, and else how it is opened; never an id or what grants."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from support.command_line import serving, tidegate
from wire.wires import HANDSHAKE, MODERN, HttpPeer, Outcome, StdioPeer

pytestmark = pytest.mark.needs("every product")
ORIGIN = "https://gate.example.com"
OPENED = "the Inbox, which `tidegate console` on the server's machine opens"
READ = "SELECT name FROM towns"
"""A person is asked about reads, too, so that each surface has a call that asks."""
COMMANDS = re.compile(r"tidegate [a-z]+")


class Server(NamedTuple):
    """One with all edges, and the place where it says that a person can answer."""

    http: int
    pg: int
    token: str
    state: Path
    config: Path
    place: str


def write_settings(folder: Path, **settings: Any) -> Path:
    with closing(sqlite3.connect(folder / "towns.db")) as connection, connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
    source = {
        "name": "towns", "url": f"sqlite:///{folder}/towns.db", "access": "write",
        "approval_for": "everything",
    }  # fmt: skip
    file = folder / "tidegate.json"
    given = {"sources": [source], "surface": {"postgres": {"source": "towns"}}, **settings}
    file.write_text(json.dumps(given))
    file.chmod(0o600)
    return file


def port_in(line: str) -> int:
    return int(re.findall(r":(\d+)", line)[-1])


@pytest.fixture(scope="module", params=["no console", "a console", "a console with an origin"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("places")
    state = folder / "state"
    consoles: dict[str, Any] = {
        "no console": {},
        "a console": {"enabled": True},
        "a console with an origin": {"enabled": True, "origin": ORIGIN},
    }
    config = write_settings(folder, console=consoles[request.param])
    made = tidegate("token", "create", "agent", "--scope", "fullAccess", state=state)
    words = ["serve", "--config", str(config), "--http", "127.0.0.1:0", "--pg", "127.0.0.1:0"]
    with serving(words, state) as process:
        http = port_in(process.until("serving core").removesuffix("/mcp\n"))
        pg = port_in(process.until("postgresql://"))
        if request.param == "no console":
            place = OPENED
        elif request.param == "a console":
            process.until("the console is at")
            place = f"the Inbox at http://127.0.0.1:{http}/console#/inbox on the server's machine"
        else:
            place = f"the Inbox at {ORIGIN}/console#/inbox"
        yield Server(http, pg, made.out.strip(), state, config, place)


def check_place(told: str, place: str, state: Path) -> None:
    """What a caller is told has the place, and nothing by which it could answer."""
    assert place in told, told
    assert set(COMMANDS.findall(told)) <= {"tidegate console"}
    for question in waiting(state):
        assert question["id"] not in told


def waiting(state: Path) -> list[dict[str, Any]]:
    return tidegate("approvals", "list", "--json", state=state).json["approvals"]


def call_core(peer: HttpPeer) -> Outcome:
    return peer.call("query", {"sql": READ, "source": "towns"})


def call_workbench(peer: HttpPeer) -> Outcome:
    listed = json.loads(peer.call("list_connections").text)
    id = next(iter(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}|\bs[0-9a-f]{8,}\b", json.dumps(listed))))
    return peer.call("execute_query", {"connection_id": id, "query": READ})


def call_postgres(peer: HttpPeer) -> Outcome:
    return peer.call("query_database", {"mode": "sql", "query": READ})


def call_jdbc(peer: HttpPeer) -> Outcome:
    connected = json.loads(peer.call("connect", {"url": "towns"}).text)
    given = {"connectionId": connected["id"], "query": READ}
    peer.call("record", given)  # what it would record is confirmed first
    return peer.call("record", {**given, "confirmed": True})


CALLS: dict[str, Callable[[HttpPeer], Outcome]] = {
    "core": call_core, "workbench": call_workbench, "postgres": call_postgres, "jdbc": call_jdbc,
}  # fmt: skip


@pytest.mark.parametrize("surface", CALLS)
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], MODERN])
def test_each_surface_names_the_place(server: Server, surface: str, revision: str) -> None:
    peer = HttpPeer(server.http, revision, path=f"/mcp/{surface}", capabilities={})
    peer.token = server.token
    with peer.connect():
        told = json.dumps(CALLS[surface](peer).response)
    check_place(told, server.place, server.state)
    assert waiting(server.state)


def test_one_of_several_statements_names_the_place(server: Server) -> None:
    with HttpPeer(server.http, MODERN, path="/mcp/core", capabilities={}) as peer:
        peer.token = server.token
        first, second = json.loads(
            peer.call("query", {"sql": READ, "also": [f"{READ} LIMIT 1"], "source": "towns"}).text
        )
    for told in (first["error"], second["error"]):
        check_place(told, server.place, server.state)
        assert "in a call of its own" in told


@pytest.mark.parametrize("prepares", [True, False])
def test_the_wire_protocol_names_the_place(server: Server, prepares: bool) -> None:
    where = f"host=127.0.0.1 port={server.pg} dbname=towns user=agent password={server.token}"
    with psycopg.connect(where, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            connection.execute(READ.encode(), prepare=prepares)
        check_place(str(refused.value.diag.message_hint), server.place, server.state)


def test_a_command_names_how_the_inbox_is_opened(server: Server) -> None:
    words = ["query", "towns", READ, "--config", str(server.config)]
    ended = tidegate(*words, state=server.state)
    assert ended.status == 77
    check_place(ended.err, OPENED, server.state)


@pytest.fixture
def stdio(tmp_path: Path) -> Iterator[Callable[..., StdioPeer]]:
    peers: list[StdioPeer] = []

    def open_peer(*words: str, **settings: Any) -> StdioPeer:
        config = write_settings(tmp_path, **settings)
        state = ["--state", str(tmp_path / "state"), "--config", str(config)]
        command = [sys.executable, "-m", "tidegate", "serve", *state, *words]
        peers.append(StdioPeer(MODERN, command, capabilities={}))
        return peers[-1].connect()

    yield open_peer
    for peer in peers:
        peer.process.terminate()  # with HTTP the end of its input does not end it
        peer.close()


def test_a_server_on_stdio_claims_no_console_that_it_does_not_serve(
    stdio: Callable[..., StdioPeer], tmp_path: Path
) -> None:
    peer = stdio("--surface", "core", console={"enabled": True, "origin": ORIGIN})
    told = call_core(peer).text  # pyright: ignore[reportArgumentType] - both have `call`
    check_place(told, OPENED, tmp_path / "state")
    assert ORIGIN not in told


def test_a_server_on_both_names_its_console_on_stdio(
    stdio: Callable[..., StdioPeer], tmp_path: Path
) -> None:
    words = ("--surface", "core", "--stdio", "--http", "127.0.0.1:0")
    peer = stdio(*words, console={"enabled": True, "origin": ORIGIN})
    told = call_core(peer).text  # pyright: ignore[reportArgumentType]
    check_place(told, f"the Inbox at {ORIGIN}/console#/inbox", tmp_path / "state")


def test_too_many_questions_name_the_place(stdio: Callable[..., StdioPeer], tmp_path: Path) -> None:
    peer = stdio("--surface", "core")
    for number in range(51):
        told = peer.call("query", {"sql": f"{READ} WHERE id = {number}", "source": "towns"}).text
    assert "limit.rate" in told  # pyright: ignore[reportPossiblyUnboundVariable]
    assert f"They wait in {OPENED}." in told  # pyright: ignore[reportPossiblyUnboundVariable]
