"""JSON-RPC batches: revision 2025-03-26 has them, no other does, and initialize is never in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire.conftest import Connect
from wire.raw_http import http_request
from wire.wires import BOTH, CLIENT, MODERN, HttpPeer, Peer, StdioPeer

TRANSPORTS = ("stdio", "http")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ADD = {
    "jsonrpc": "2.0",
    "id": "add",
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
}
NOTE = {"jsonrpc": "2.0", "method": "notifications/unheard_of"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "init",
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": CLIENT},
}

both = pytest.mark.parametrize("transport", TRANSPORTS)


def _send(peer: Peer, batch: Any) -> tuple[int, list[Any]]:
    """The HTTP status (200 on stdio) and every message that came back."""
    if isinstance(peer, StdioPeer):
        peer.send(batch)
        return 200, [peer.receive()]
    assert isinstance(peer, HttpPeer)
    response = peer.post(json.dumps(batch).encode(), _headers(peer))
    messages = list(response.messages())
    response.close()
    return response.status, messages


def _headers(peer: HttpPeer) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if peer.session is not None:
        headers["Mcp-Session-Id"] = peer.session
    return headers


def _code(message: Any) -> int:
    return message["error"]["code"]


@both
def test_a_batch_is_answered_member_by_member(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-03-26")
    unknown = {"jsonrpc": "2.0", "id": "u", "method": "no/such"}
    _, (replies,) = _send(peer, [PING, NOTE, ADD, unknown, {"jsonrpc": "2.0", "id": 9}, 5])
    by_id = {reply.get("id"): reply for reply in replies}
    assert len(replies) == 5
    assert by_id[1]["result"] == {}
    assert json.loads(by_id["add"]["result"]["content"][0]["text"]) == {"sum": 3}
    assert _code(by_id["u"]) == -32601
    assert _code(by_id[9]) == -32600
    assert _code(by_id[None]) == -32600


@both
def test_a_batch_of_notifications_is_owed_nothing(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-03-26")
    if transport == "stdio":
        peer.send([NOTE, NOTE])
    else:
        assert _send(peer, [NOTE, NOTE]) == (202, [])
    assert peer.request("ping").result == {}


@both
def test_an_empty_batch_is_an_invalid_request(connect: Connect, transport: str) -> None:
    _, (reply,) = _send(connect(transport, "2025-03-26"), [])
    assert _code(reply) == -32600


@both
def test_initialize_is_never_in_a_batch(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-03-26", handshake=False)
    _, (reply,) = _send(peer, [INITIALIZE])
    assert _code(reply[0] if isinstance(reply, list) else reply) == -32600
    peer.connect()
    _, (replies,) = _send(peer, [INITIALIZE, PING])
    by_id = {reply["id"]: reply for reply in replies}
    assert _code(by_id["init"]) == -32600
    assert by_id[1]["result"] == {}


@both
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_revisions_refuse_batches(connect: Connect, transport: str, revision: str) -> None:
    peer = connect(transport, revision)
    status, (reply,) = _send(peer, [PING, ADD])
    assert _code(reply) == -32600
    assert status in (200, 400)
    assert peer.request("ping").result == {}


@both
def test_the_stateless_era_refuses_batches(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    message = {**PING, "method": "tools/list", "params": peer.add_meta({})}
    if transport == "stdio":
        _, (reply,) = _send(peer, [message])
    else:
        response = peer.post(json.dumps([message]).encode(), peer.headers(message))
        assert response.status == 400
        reply = json.loads(response.read())
        response.close()
    assert _code(reply) == -32600
    assert "id" not in reply or transport == "stdio"


def test_members_of_a_batch_run_side_by_side(connect: Connect) -> None:
    peer = connect("stdio", "2025-03-26")
    progress = {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}
    peer.send([{**ADD, "id": n, "params": progress} for n in range(8)])
    received = [peer.receive()]
    while not isinstance(received[-1], list):
        received.append(peer.receive())
    assert len(received[-1]) == 8
    assert len(received) == 1 + 3 * 8


def test_a_member_of_a_batch_may_ask_the_client(connect: Connect) -> None:
    peer = connect("http", "2025-03-26")
    ask = {"name": "test_sampling", "arguments": {"prompt": "hi"}}
    batch = [PING, {**ADD, "params": ask}]
    response = peer.post(json.dumps(batch).encode(), _headers(peer))
    replies = None
    for message in response.messages():
        if isinstance(message, list):
            replies = message
        elif "method" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": peer.answer(message)}
            peer.post(answer).close()
    response.close()
    assert replies is not None
    assert {reply["id"] for reply in replies} == {1, "add"}


def test_a_batch_without_a_session_is_refused(connect: Connect) -> None:
    peer = connect("http", "2025-03-26", handshake=False)
    response = http_request(peer.port, "POST", "/mcp", json.dumps([PING]).encode(), _headers(peer))
    assert response.status == 400
    assert _code(json.loads(response.read())) == -32600
    response.close()
