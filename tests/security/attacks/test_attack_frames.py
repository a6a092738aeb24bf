"""Attacks by the shape of a message: bytes that are no text, masses of values, long batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.attack_target import RUNAWAY, Target, headers_of, tool_call
from tidegate.model.actors import Actor, Scope
from tidegate.protocol.sessions import Sessions

FRAME = json.dumps(tool_call("query", id="ID", sql="SELECT 'X'")).encode()


def handshake(server: Target, revision: str = "2025-03-26", **about: Any) -> dict[str, str]:
    """Open a session on core; the headers of its further requests."""
    params = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "attack", "version": "1"},
    }
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**params, **about}}
    answer = server.post(frame, path="/mcp/core")
    assert answer.status == 200, answer.body
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.post(ready, session, path="/mcp/core").status == 202
    return session


@pytest.mark.parametrize(
    "frame",
    [
        FRAME.replace(b"X", b"\xff"),
        FRAME.replace(b"ID", b"\xff"),
        FRAME.replace(b"ID", b"\xed\xa0\x80"),
        FRAME.replace(b"ID", b"a\nb"),
        FRAME.replace(b"ID", b"a\rb"),
        FRAME.replace(b"ID", b"\\ud800"),
        FRAME.decode().encode("utf-16"),
        FRAME.replace(b"\"SELECT 'X'\"", b"[" * 100_000 + b"]" * 100_000),
        FRAME.replace(b'"ID"', b"[" * 100_000 + b"]" * 100_000),
        b"",
        b"{",
    ],
)
def test_what_is_no_json_text_is_answered_as_such(server: Target, frame: bytes) -> None:
    answer = server.post(frame, headers_of("query"))
    assert (answer.status, answer.json["error"]["code"]) == (400, -32700)


def test_a_byte_order_mark_stands_before_a_json_text(server: Target) -> None:
    answer = server.post(b"\xef\xbb\xbf" + FRAME, headers_of("query"))
    assert (answer.status, answer.json["id"]) == (200, "ID"), answer.body


def test_an_id_is_echoed_without_breaking_a_line(server: Target) -> None:
    answer = server.post(FRAME.replace(b"ID", b"a\\ndata: {}\\n\\n"), headers_of("query"))
    assert answer.json["id"] == "a\ndata: {}\n\n"
    assert b"\n" not in answer.body


@pytest.mark.parametrize("values", ["[]", "1", '{"a":1}'])
def test_masses_of_values_are_refused_before_they_are_read(server: Target, values: str) -> None:
    many = ("[" + ",".join([values] * 1_000_000) + "]").encode()
    answer = server.post(FRAME.replace(b"\"SELECT 'X'\"", many), headers_of("query"))
    assert answer.json["error"]["code"] == -32602


def test_a_statement_of_commas_alone_is_not_taken_for_masses_of_values(server: Target) -> None:
    answer = server.query("SELECT 1" + ", 1" * 1_900)
    assert answer.status == 200 and not answer.refused
    assert "sql." in server.query("SELECT " + "," * 102_000).text


def test_a_client_cannot_fill_the_memory_with_its_name(server: Target) -> None:
    for about in (
        {"clientInfo": {"name": "A" * 1_000_000, "version": "1"}},
        {"capabilities": {"roots": [[]] * 10_000}},
    ):
        with pytest.raises(AssertionError, match="-32602"):
            handshake(server, **about)


def test_a_batch_that_is_too_long_is_refused_whole(server: Target) -> None:
    session = handshake(server)
    calls = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(1_000)]
    answer = server.post(calls, session, path="/mcp/core")
    assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
    assert len(server.post(calls[:50], session, path="/mcp/core").json) == 50


def test_the_statements_of_a_batch_end_when_its_client_goes(server: Target) -> None:
    session = handshake(server)
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call",
         "params": {"name": "query", "arguments": {"sql": RUNAWAY}}}
        for number in range(2)
    ]  # fmt: skip
    connection = server.connect()
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp/core", json.dumps(calls), {**sent, **session})
    server.computes(0.3)
    connection.close()
    server.wait_until_idle()


def test_one_actors_sessions_never_push_out_anothers() -> None:
    sessions = Sessions(most=8, most_of_actor=4)
    mine = Actor("mine", "mine", Scope.READ_ONLY)
    other = Actor("other", "other", Scope.READ_ONLY)
    kept = sessions.open(mine)
    flood = [sessions.open(other) for _ in range(20)]
    assert sessions.find(kept.id, mine) is kept
    assert [sessions.find(one.id, other) is one for one in flood] == [False] * 16 + [True] * 4
    assert sessions.find(kept.id, other) is None


def test_ended_sessions_make_room_for_their_actor_again() -> None:
    sessions = Sessions(most=8, most_of_actor=4)
    actor = Actor("a", "a", Scope.READ_ONLY)
    for _ in range(20):
        sessions.end(sessions.open(actor))
    kept = [sessions.open(actor) for _ in range(4)]
    assert all(sessions.find(one.id, actor) is one for one in kept)
