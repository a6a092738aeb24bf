"""Official clients and the whole gate: the real command serving a real database."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.audit_records import records
from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S, wait_until
from wire.conversations import python_sdk, typescript_sdk
from wire.published import published
from wire.wires import MODERN, REVISIONS, HttpPeer, Peer, StdioPeer

Converse = Callable[[dict[str, Any]], dict[str, Any]]

CLIENTS: dict[str, tuple[Converse, str]] = {
    "python 1": (lambda config: python_sdk(1, config), "2025-11-25"),
    "python 1 of 2025-03-26": (
        lambda config: python_sdk(1, {**config, "revision": "2025-03-26"}),
        "2025-03-26",
    ),
    "python 2": (lambda config: python_sdk(2, {**config, "mode": "auto"}), MODERN),
    "typescript 1": (lambda config: typescript_sdk(1, config), "2025-11-25"),
    "typescript 2": (lambda config: typescript_sdk(2, {**config, "mode": "auto"}), MODERN),
}
SELECT = "SELECT id, name FROM towns ORDER BY id"
DELETE = "DELETE FROM towns"
ENDING = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
    " SELECT max(i) FROM n"
)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
ROWS = [[1, "Köln"], [2, "東京"], [3, None]]

each_client = pytest.mark.parametrize("client", sorted(CLIENTS))


class Place(NamedTuple):
    """A database and a state directory of their own."""

    database: Path
    state: Path

    def words(self, surface: str) -> list[str]:
        source = f"towns=sqlite:///{self.database}"
        return ["serve", "--surface", surface, "--source", source, "--state", str(self.state)]

    def command(self, surface: str) -> list[str]:
        return [sys.executable, "-m", "tidegate", *self.words(surface)]

    def records(self, **wanted: str) -> list[dict[str, Any]]:
        """The audit records so far, those with these values."""
        return [
            record
            for record in records(self.state)
            if all(record.get(name) == value for name, value in wanted.items())
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    database = tmp_path / "towns.db"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
    connection.executemany("INSERT INTO towns VALUES (?, ?)", ROWS)
    connection.commit()
    connection.close()
    return Place(database, tmp_path / "state")


@pytest.fixture(params=["stdio", "http"])
def reach(request: pytest.FixtureRequest, place: Place) -> Iterator[Callable[[str], Any]]:
    """`reach(surface)`: how a client reaches it; over HTTP with a token."""
    if request.param == "stdio":
        yield lambda surface: {"command": place.command(surface)}
        return
    made = tidegate("token", "create", "peer", "--scope", "readOnly", state=place.state)
    token = made.out.strip()
    words = [*place.words("core"), "--surface", "workbench", "--http", "127.0.0.1:0"]
    with serving(words, place.state) as server:
        port = _port(server)
        yield lambda surface: {"url": f"http://127.0.0.1:{port}/mcp/{surface}", "token": token}


def _port(server: Serving) -> int:
    """Where a server on HTTP says that it listens."""
    address = next(word for word in server.until("serving").split() if word.startswith("http"))
    return int(address.removesuffix("/mcp").rpartition(":")[2])


@each_client
def test_core_answers_a_query_and_refuses_a_change(
    reach: Callable[[str], Any], client: str
) -> None:
    converse, revision = CLIENTS[client]
    calls = [["query", {"sql": SELECT}], ["query", {"sql": DELETE}], ["query", {"sql": SELECT}]]
    report = converse({**reach("core"), "calls": calls})
    if report["revision"] is not None:
        assert report["revision"] == revision
    assert set(report["tools"]) == {"sources", "search", "describe", "query", "explain", "more"}
    first, refused, again = report["results"]
    assert json.loads(first["text"]) == {"columns": ["id", "name"], "rows": ROWS}
    assert (refused["is_error"], "policy.read_only" in refused["text"]) == (True, True)
    assert again == first


@each_client
def test_workbench_refuses_with_a_code_and_the_session_lives_on(
    reach: Callable[[str], Any], client: str
) -> None:
    converse, _ = CLIENTS[client]
    where = reach("workbench")
    listed = converse({**where, "calls": [["list_connections", {}]]})
    text = listed["results"][0]["text"]
    on = {"connection_id": json.loads(text)["connections"][0]["id"]}
    calls: list[list[Any]] = [
        ["connect", on],
        ["execute_query", {**on, "query": SELECT}],
        ["execute_query", {**on, "query": DELETE}],
        ["execute_query", {**on, "query": SELECT}],
    ]
    report = converse({**where, "calls": calls})
    _, first, refused, again = report["results"]
    assert "Köln" in first["text"]
    # The TypeScript SDKs give the HTTP status as the code and the whole reply as the message.
    # Clients that show their model no JSON-RPC error get the refusal as a result (decision 82).
    said = " ".join(str(refused.get(part)) for part in ("code", "message", "text"))
    assert "-32007" in said or "Forbidden" in said, refused
    assert again["text"].startswith(first["text"][:20])
    assert "Köln" in again["text"]


@pytest.mark.parametrize(
    ("surface", "revision"),
    [("core", each) for each in REVISIONS] + [("workbench", each) for each in REVISIONS[1:]],
)
def test_each_surface_says_only_what_is_published(
    place: Place, surface: str, revision: str
) -> None:
    with StdioPeer(revision, place.command(surface)) as peer:
        peer.connect()
        calls: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in _tool_names(peer)]
        calls += [
            ("query", {"sql": SELECT}),
            ("query", {"sql": "SELEC"}),
            ("search", {"words": "town"}),
        ]
        for name, given in calls:
            peer.call(name, given)
        for method in ("resources/list", "resources/templates/list", "prompts/list"):
            peer.request(method)
        if peer.modern:
            peer.request("server/discover")
    assert len(peer.all_messages) > 10
    for received in peer.all_messages:
        message = received.message
        if (surface, revision) == ("workbench", "2025-03-26"):
            message = _without_newer_fields(message)
        published(revision).check_message(received.method, message)


def _without_newer_fields(value: Any) -> Any:
    """A message without what the workbench's document adds at 2025-03-26: that revision allows
    further members, and does not name these."""
    if isinstance(value, dict):
        newer = ("title", "outputSchema", "structuredContent")
        return {
            key: inner if key == "inputSchema" else _without_newer_fields(inner)
            for key, inner in value.items()
            if key not in newer
        }
    return [_without_newer_fields(each) for each in value] if isinstance(value, list) else value


def _tool_names(peer: Peer) -> list[str]:
    return [tool["name"] for tool in peer.request("tools/list").result["tools"]]


# Who leaves or cancels ends the statement in the database


def _running(peer: Peer) -> Any:
    """Start a statement that never ends; over HTTP the open connection.

    One of its shape comes before it: the first of them is judged on a thread, which imports the
    parser, and a quicker call could overtake it.
    """
    assert peer.call("query", {"sql": ENDING}).text
    params = peer.add_meta({"name": "query", "arguments": {"sql": ENDLESS}})
    message = {"jsonrpc": "2.0", "id": "endless", "method": "tools/call", "params": params}
    if isinstance(peer, StdioPeer):
        peer.send(message)
        return None
    assert isinstance(peer, HttpPeer)
    return _half_open(peer, message)


def _half_open(peer: HttpPeer, message: Mapping[str, Any]) -> Any:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", peer.port, timeout=PATIENCE_S)
    connection.request("POST", peer.path, json.dumps(message), peer.headers(message))
    return connection


def _ended_by(place: Place) -> dict[str, Any]:
    """The record of the endless statement, once it is there."""
    (record,) = wait_until(
        lambda: place.records(statement=ENDLESS, phase="outcome"), "the statement's end"
    )
    return record


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
def test_a_cancelled_statement_ends_on_stdio(place: Place, revision: str) -> None:
    with StdioPeer(revision, place.command("core")) as peer:
        peer.connect()
        _running(peer)
        assert peer.call("query", {"sql": SELECT}).text
        peer.notify("notifications/cancelled", {"requestId": "endless"})
        assert _ended_by(place)["code"] == "call.cancelled"
        assert peer.call("query", {"sql": SELECT}).text


@pytest.mark.parametrize("how", ["leaves", "cancels"])
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_a_statement_ends_on_http_when_its_client(place: Place, revision: str, how: str) -> None:
    words = [*place.words("core"), "--http", "127.0.0.1:0", "--no-auth"]
    with (
        serving(words, place.state) as server,
        HttpPeer(_port(server), revision, path="/mcp/core") as peer,
    ):
        peer.connect()
        connection = _running(peer)
        assert peer.call("query", {"sql": SELECT}).text
        if how == "cancels" and revision != MODERN:
            peer.notify("notifications/cancelled", {"requestId": "endless"})
        else:
            connection.close()
        assert _ended_by(place)["code"] == "call.cancelled"
        connection.close()
        assert peer.call("query", {"sql": SELECT}).text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_streams_and_running_statements(
    place: Place, number: signal.Signals
) -> None:
    words = [*place.words("core"), "--http", "127.0.0.1:0", "--no-auth"]
    with serving([*words, "--config", '{"stop_grace_s": 0.1}'], place.state) as server:
        port = _port(server)
        with HttpPeer(port, "2025-11-25", path="/mcp/core") as peer:
            peer.connect()
            listener = HttpPeer(port, MODERN, path="/mcp/core")
            params = listener.add_meta({"notifications": {"toolsListChanged": True}})
            listen = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen"}
            streams = [peer.listen(), listener.post({**listen, "params": params})]
            connections = [_running(peer), _running(listener)]
            assert peer.call("query", {"sql": SELECT}).text
            ended = server.tell(number)
            assert (ended.status, ended.out) == (0, "")
            assert "Traceback" not in ended.err
            for stream in streams:
                list(stream.messages())
                stream.close()
            for connection in connections:
                connection.close()
            peer.session = None
    assert [r["code"] for r in place.records() if r.get("statement") == ENDLESS] == [
        "call.cancelled"
    ] * 2
