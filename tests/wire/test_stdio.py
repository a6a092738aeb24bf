"""Framing on stdio: lines however they are cut, and a connection that survives bad ones."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from support.eventually import PATIENCE_S, wait_until
from wire.conftest import Connect
from wire.wires import HANDSHAKE, MODERN, REVISIONS, StdioPeer

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
LIMIT = 10 * 1024 * 1024


@pytest.fixture
def peer(connect: Connect) -> StdioPeer:
    return connect("stdio", "2025-11-25")


@pytest.fixture
def shared(reuse: Connect) -> StdioPeer:
    """The connection that lives on: the next bad line comes on the same one."""
    return reuse("stdio", "2025-11-25")


def test_a_message_may_come_in_many_writes(peer: StdioPeer) -> None:
    for byte in json.dumps(PING).encode() + b"\n":
        peer.write(bytes([byte]))
    assert peer.receive() == {"jsonrpc": "2.0", "id": "p", "result": {}}


def test_many_messages_may_come_in_one_write(peer: StdioPeer) -> None:
    lines = [json.dumps({**PING, "id": n}) for n in range(100)]
    peer.write("\n".join(lines).encode() + b"\n")
    assert sorted(peer.receive()["id"] for _ in range(100)) == list(range(100))


@pytest.mark.parametrize("end", [b"\r\n", b" \t\n", b"\n\n\r\n  \n"])
def test_line_ends_and_blank_lines_are_forgiven(shared: StdioPeer, end: bytes) -> None:
    shared.write(json.dumps(PING).encode() + end)
    shared.write(json.dumps({**PING, "id": "q"}).encode() + end)
    assert shared.receive()["id"] == "p"
    assert shared.receive()["id"] == "q"


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"p\xff\xfeing"}',
        b"\x00\x01\x02",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
        b'\xef\xbb\xbf{"jsonrpc":',
    ],
)
def test_what_is_not_json_is_a_parse_error_and_the_connection_lives(
    shared: StdioPeer, line: bytes
) -> None:
    shared.write(line + b"\n")
    reply = shared.receive()
    assert reply["error"]["code"] == -32700
    assert reply.get("id") is None
    assert shared.request("ping").result == {}


@pytest.mark.parametrize(
    "message",
    [
        "text",
        1,
        None,
        True,
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
    ],
)
def test_json_that_is_no_message_is_an_invalid_request_and_the_connection_lives(
    shared: StdioPeer, message: Any
) -> None:
    shared.send(message)
    assert shared.receive()["error"]["code"] == -32600
    assert shared.request("ping").result == {}


def test_deep_nesting_is_refused_and_the_connection_lives(peer: StdioPeer) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    peer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + deep + b"}}\n")
    assert peer.receive()["error"]["code"] in (-32700, -32600, -32602)
    assert peer.request("ping").result == {}


def test_a_line_over_the_limit_is_refused_once_and_the_connection_lives(peer: StdioPeer) -> None:
    peer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"')
    for _ in range(LIMIT // 65_536 + 10):
        peer.write(b"x" * 65_536)
    peer.write(b'"}}\n')
    assert peer.receive()["error"]["code"] == -32600
    assert peer.request("ping").result == {}


def test_a_line_within_the_limit_is_served(peer: StdioPeer) -> None:
    value = "é" * 1_500_000
    assert peer.call("echo", {"value": value}).result["structuredContent"] == {"value": value}


def test_a_large_reply_arrives_whole(peer: StdioPeer) -> None:
    assert len(peer.call("large", {"bytes": 20_000_000}).text) == 20_000_000


def test_a_reply_is_one_line_whatever_it_contains(peer: StdioPeer) -> None:
    value = "a\nb\r\nc\u2028d\x00e\ud7ff🌊"
    assert peer.call("echo", {"value": value}).result["structuredContent"] == {"value": value}


@pytest.mark.parametrize("revision", REVISIONS)
def test_only_messages_appear_on_stdout(connect: Connect, revision: str) -> None:
    peer = connect("stdio", revision)
    assert peer.call("crash").error["code"] == -32603
    assert peer.call("test_logging_tool").result
    peer.write(b"nonsense\n")
    peer.receive()
    peer.close_input()
    while (line := peer.read_line()) is not None:
        assert json.loads(line)["jsonrpc"] == "2.0"
    wait_until(lambda: "ZeroDivisionError" in peer.diagnostics, "the crash on stderr")


def test_a_crash_tells_the_client_nothing_of_itself(peer: StdioPeer) -> None:
    error = peer.call("crash").error
    assert "secret" not in json.dumps(error)
    assert "ZeroDivision" not in json.dumps(error)


def test_a_call_in_flight_at_the_end_of_input_is_answered(peer: StdioPeer) -> None:
    peer.send(
        {
            "jsonrpc": "2.0",
            "id": "last",
            "method": "tools/call",
            "params": {"name": "test_tool_with_progress", "arguments": {}},
        }
    )
    peer.close_input()
    reply = peer.receive()
    assert reply["id"] == "last"
    assert "result" in reply
    assert peer.read_line() is None
    assert peer.process.wait(PATIENCE_S) == 0


def test_the_end_of_input_ends_the_process(peer: StdioPeer) -> None:
    peer.close_input()
    assert peer.process.wait(PATIENCE_S) == 0
    assert peer.read_line() is None


def test_a_last_line_without_a_newline_is_served(peer: StdioPeer) -> None:
    peer.write(json.dumps(PING).encode())
    peer.close_input()
    assert peer.receive()["id"] == "p"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_a_signal_ends_the_process_and_what_runs(
    connect: Connect, sent: signal.Signals, revision: str
) -> None:
    peer = connect("stdio", revision)
    params = peer.add_meta({"name": "wait", "arguments": {}, "_meta": {"progressToken": "started"}})
    peer.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
    assert peer.receive()["method"] == "notifications/progress"
    peer.process.send_signal(sent)
    assert peer.process.wait(PATIENCE_S) == 0


def test_a_slow_call_blocks_no_one(peer: StdioPeer) -> None:
    peer.send(
        {
            "jsonrpc": "2.0",
            "id": "slow",
            "method": "tools/call",
            "params": {"name": "wait", "arguments": {}},
        }
    )
    assert peer.request("ping").result == {}
    peer.notify("notifications/cancelled", {"requestId": "slow"})


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_both_eras_share_one_process(connect: Connect, revision: str) -> None:
    peer = connect("stdio", revision)
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    modern = peer.request("tools/list", {"_meta": meta}).result
    assert modern["resultType"] == "complete"
    assert "resultType" not in peer.request("tools/list").result


def test_the_stateless_era_needs_no_handshake(connect: Connect) -> None:
    peer = connect("stdio", MODERN)
    assert peer.request("server/discover").result["supportedVersions"] == [MODERN]
    assert peer.call("add", {"a": 1, "b": 2}).result["structuredContent"] == {"sum": 3}
