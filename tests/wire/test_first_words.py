"""What clients send before or beside what is specified, and what has one meaning only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire.conftest import Connect
from wire.raw_http import http_request
from wire.served import Served
from wire.wires import BOTH, HANDSHAKE, HttpPeer, StdioPeer

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": "p", "result": {}}
MARK = b"\xef\xbb\xbf"


def test_a_ping_before_the_handshake_is_answered_on_stdio() -> None:
    with StdioPeer("2025-11-25") as peer:
        peer.send(PING)
        assert peer.receive() == PONG
        peer.connect()
        assert peer.request("ping").result == {}


def test_a_ping_before_the_handshake_is_answered_over_http(http_server: Served) -> None:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    body = json.dumps(PING).encode()
    response = http_request(http_server.port, "POST", "/mcp", body, headers)
    assert (response.status, json.loads(response.read())) == (200, PONG)
    assert "mcp-session-id" not in response.headers
    response.close()


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_params_may_be_null(connect: Connect, revision: str) -> None:
    peer: StdioPeer = connect("stdio", revision)
    for method in ("ping", "tools/list"):
        peer.send({**PING, "method": method, "params": None})
        assert "result" in peer.receive()


def test_a_byte_order_mark_is_passed_over_on_stdio(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", "2025-11-25")
    peer.write(MARK + json.dumps(PING).encode() + b"\n")
    assert peer.receive() == PONG


def test_a_byte_order_mark_is_passed_over_over_http(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25")
    headers = peer.headers({})
    response = peer.post(MARK + json.dumps(PING).encode(), headers)
    assert json.loads(response.read()) == PONG
    response.close()


@pytest.mark.parametrize("arguments", ['{"seconds": 0}', "", None, {}])
def test_arguments_may_be_a_text_of_json(connect: Connect, arguments: Any) -> None:
    tool = "pause" if arguments and isinstance(arguments, str) else "witness"
    peer: StdioPeer = connect("stdio", "2025-11-25")
    outcome = peer.request("tools/call", {"name": tool, "arguments": arguments})
    assert outcome.result["content"][0]["text"]


def test_a_text_that_is_no_object_is_a_wrong_argument(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", "2025-11-25")
    outcome = peer.request("tools/call", {"name": "witness", "arguments": "[1]"})
    assert outcome.response["error"]["code"] == -32602


def test_an_empty_cursor_is_none(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", "2025-11-25")
    for cursor in ("", None):
        assert peer.request("tools/list", {"cursor": cursor}).result["tools"]


@pytest.mark.parametrize("count", [1_000, 130_000])
@pytest.mark.parametrize("sign", [",", "\\u002c", "\\u002C", "\\\\u002c"])
def test_texts_of_json_are_bounded_as_json_is(connect: Connect, sign: str, count: int) -> None:
    """Many values delay all clients while they are read; an escaped sign is one in the text."""
    peer: StdioPeer = connect("stdio", "2025-11-25")
    comma = json.loads(f'"{sign}"').replace("\\u002c", ",")
    assert comma == ","
    filling = "1" + f"{sign}1" * count + " " * 70_000
    given = f'"{{\\"seconds\\": 0, \\"more\\": \\"[{filling}]\\"}}"'
    params = f'{{"name": "pause", "arguments": {given}}}'
    peer.write(f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'.encode())
    reply = peer.receive()
    if count < 120_000:
        assert reply["result"]["content"][0]["text"] == "paused"
    else:
        assert reply["error"]["code"] == -32602
        assert "more than 120000 values" in reply["error"]["message"]


def test_a_long_text_of_other_escapes_is_taken(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", "2025-11-25")
    text = "\N{LATIN SMALL LETTER E WITH ACUTE}" * 130_000
    assert peer.call("pause", {"seconds": 0, "more": text}).text == "paused"
