"""What a bridge sends again and what never, against a server that does as the test says."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bridge_host import INITIALIZE, Asked, Scripted, bridged, refused, replied, result
from support.eventually import PATIENCE_S

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs file owners and modes")


class Sessions:
    """Speaks MCP as far as the tests need: sessions `s1`, `s2`, one after another."""

    def __init__(self) -> None:
        self.opened = 0
        self.live: set[str] = set()
        self.call: Callable[[Asked], bytes | None] = lambda asked: result(asked, {"content": []})

    def __call__(self, asked: Asked) -> bytes | None:
        if asked.method == "DELETE":
            self.live.discard(asked.headers["mcp-session-id"])
            return replied(None, 204)
        method = asked.message.get("method")
        if method == "initialize":
            self.opened += 1
            self.live.add(f"s{self.opened}")
            return result(
                asked, {"protocolVersion": "2025-11-25"}, Mcp_Session_Id=f"s{self.opened}"
            )
        if asked.headers.get("mcp-session-id") not in self.live:
            return refused(asked, 404, -32001)
        if method == "tools/call":
            return self.call(asked)
        return replied(None, 202) if "id" not in asked.message else result(asked)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.fixture
def server(state: Path, sessions: Sessions) -> Iterator[Scripted]:
    scripted = Scripted(state, sessions)
    yield scripted
    scripted.close()


def calls(server: Scripted) -> list[tuple[str | None, str]]:
    """(session, id) of every tool call that has come."""
    return [
        (asked.headers.get("mcp-session-id"), asked.message["id"])
        for asked in server.messages("tools/call")
    ]


def test_a_lost_session_is_opened_again_as_the_host_had_opened_it(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    with bridged(state) as host:
        host.open()
        assert "result" in host.call("first", "t")
        sessions.live.clear()
        assert "result" in host.call("a", "t")
        openings = server.messages("initialize")
        assert [opening.message for opening in openings] == [INITIALIZE, INITIALIZE]
        assert len(server.messages("notifications/initialized")) == 2
        assert calls(server)[1:] == [("s1", "a"), ("s2", "a")]


def test_failures_at_the_same_time_open_one_session(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    # All report the loss before the first of them reconnects.
    together = threading.Barrier(5, timeout=PATIENCE_S)
    gone = {"s1"}

    def call(asked: Asked) -> bytes:
        if asked.headers["mcp-session-id"] in gone:
            together.wait()
            return refused(asked, 404, -32001)
        return result(asked)

    sessions.call = call
    with bridged(state) as host:
        host.open()
        for n in range(5):
            host.ask(n, "t")
        received = sorted(json.loads(host.process.line())["id"] for _ in range(5))
    assert received == [0, 1, 2, 3, 4]
    assert sessions.opened == 2


def test_a_session_that_is_lost_again_is_not_opened_a_third_time(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    sessions.call = lambda asked: refused(asked, 404, -32001)
    with bridged(state) as host:
        host.open()
        assert host.call("a", "t")["error"]["code"] == -32001
        assert sessions.opened == 2


def test_a_call_that_was_cut_off_is_not_sent_again(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    sessions.call = lambda asked: None
    with bridged(state) as host:
        host.open()
        error = host.call("a", "write")["error"]
        assert error["data"]["code"] == "bridge.outcome_unknown"
        assert "write" in error["message"]
        assert calls(server) == [("s1", "a")]


def test_a_question_that_was_cut_off_is_asked_once_more(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    dropped: list[Asked] = []

    def drop_first(asked: Asked) -> bytes | None:
        if asked.message.get("method") == "tools/list" and not dropped:
            dropped.append(asked)
            return None
        return sessions(asked)

    server.script = drop_first
    with bridged(state) as host:
        host.open()
        host.process.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert "result" in host.receive(1)
    assert len(server.messages("tools/list")) == 2


def test_half_an_answer_is_no_answer(state: Path, server: Scripted, sessions: Sessions) -> None:
    sessions.call = lambda asked: result(asked, {"content": ["much"]})[:-9]
    with bridged(state) as host:
        host.open()
        assert host.call("a", "t")["error"]["data"]["code"] == "bridge.outcome_unknown"
        assert len(calls(server)) == 1


def test_a_new_token_is_used_in_the_same_session(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    old = server.handshake.token
    server.renew(expires_at=time.time() + 300)
    with bridged(state) as host:
        host.open()
        server.renew(token="tg_bridge_new", expires_at=time.time() + 3_600)
        assert "result" in host.call("a", "t")
        (call,) = server.messages("tools/call")
    assert server.messages("initialize")[0].headers["authorization"] == f"Bearer {old}"
    assert call.headers["authorization"] == "Bearer tg_bridge_new"
    assert sessions.opened == 1


def test_a_token_that_is_refused_is_looked_up_and_the_session_goes_on(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    def only_new(asked: Asked) -> bytes | None:
        if asked.headers["authorization"] != f"Bearer {server.handshake.token}":
            return refused(asked, 401, -32008, None)
        return sessions(asked)

    server.script = only_new
    with bridged(state) as host:
        host.open()
        server.renew(token="tg_bridge_new")
        assert "result" in host.call("a", "t")
    assert sessions.opened == 1


def test_a_locked_out_address_does_not_stop_a_renewal(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    """After wrong tokens from its address a new server answers the old token with 429."""
    with bridged(state) as host:
        host.open()
        assert "result" in host.call("first", "t")
        server.renew(instance="another", token="tg_bridge_of_another")
        server.script = lambda asked: (
            sessions(asked)
            if asked.headers["authorization"].endswith("another")
            else refused(asked, 429, -32000, None)
        )
        assert "result" in host.call("a", "t")
        server.script = lambda asked: refused(asked, 429, -32000, None)
        assert host.call("b", "t")["error"]["code"] == -32000, "its own rate is not a lost token"
        assert calls(server)[1:] == [("s1", "a"), ("s2", "a"), ("s2", "b")]
    assert sessions.opened == 2


def test_a_token_that_was_revoked_is_said_and_not_tried_for_ever(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    with bridged(state) as host:
        host.open()
        server.script = lambda asked: refused(asked, 401, -32001, None)
        assert host.call("a", "t")["error"]["data"]["code"] == "auth.invalid"
        assert len(calls(server)) == 1


def test_a_new_server_gets_the_session_of_the_host(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    with bridged(state) as host:
        host.open()
        server.renew(instance="another", token="tg_bridge_of_another")
        server.script = lambda asked: (
            sessions(asked)
            if asked.headers["authorization"].endswith("another")
            else refused(asked, 401, -32001, None)
        )
        assert "result" in host.call("a", "t")
    assert sessions.opened == 2


def test_a_new_session_receives_what_it_must_know(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    def request(id: int, method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    kept = [
        request(1, "logging/setLevel", level="error"),
        request(2, "resources/subscribe", uri="a:"),
    ]
    with bridged(state) as host:
        host.open()
        for message in (*kept, request(3, "resources/subscribe", uri="b:")):
            host.process.send(message)
            host.receive(message["id"])
        host.process.send(request(4, "resources/unsubscribe", uri="b:"))
        host.receive(4)
        sessions.live.clear()
        host.call("a", "t")
        again = [a.message for a in server.asked if a.headers.get("mcp-session-id") == "s2"]
        assert again[1:3] == kept
        assert len(again) == 4


def test_the_end_of_the_input_ends_the_session(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    with bridged(state) as host:
        host.open()
        assert "result" in host.call("first", "t")
        assert sessions.live == {"s1"}
        assert host.process.ended() == (0, "", "")
    assert sessions.live == set()
    assert server.asked[-1].method == "DELETE"


def test_a_refusal_without_an_id_is_given_to_who_asked(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    sessions.call = lambda asked: refused(asked, 413, -32005, None)
    with bridged(state) as host:
        host.open()
        assert host.call("a", "t")["error"]["code"] == -32005


def test_an_answer_on_several_lines_leaves_on_one(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    def spread(asked: Asked) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}}, indent=2)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode()

    sessions.call = spread
    with bridged(state) as host:
        host.open()
        host.ask("a", "t")
        assert json.loads(host.process.line())["result"] == {}


def test_a_stream_that_the_server_left_is_taken_up_again(
    state: Path, server: Scripted, sessions: Sessions
) -> None:
    """2025-11-25: the server may end a stream and have the client come back for the rest."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    resumed: list[str] = []

    def stream(text: str) -> bytes:
        return f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode()

    def leave(asked: Asked) -> bytes:
        return stream("id: x.0\ndata: \n\nretry: 1\n\n")

    def come_back(last_event: str) -> bytes:
        resumed.append(last_event)
        reply = json.dumps({"jsonrpc": "2.0", "id": "a", "result": {"late": True}})
        return stream(f": alive\n\nid: x.1\nevent: message\ndata: {reply}\n\n")

    sessions.call = leave
    server.resume = come_back
    with bridged(state) as host:
        host.open()
        assert host.call("a", "t")["result"] == {"late": True}
    assert resumed == ["x.0"]
    assert len(calls(server)) == 1
