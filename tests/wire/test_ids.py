"""Request ids come back exactly as they were sent; what is no id is refused."""

from __future__ import annotations

import json

import pytest

from wire.conftest import Connect
from wire.raw_http import http_request
from wire.wires import BOTH, REVISIONS, HttpPeer, StdioPeer

GOOD = [
    "0",
    "-1",
    "1",
    "9007199254740993",
    "-9007199254740993",
    "18446744073709551616",
    "123456789012345678901234567890",
    '""',
    '"a"',
    '"1"',
    '" spaced "',
    '"\\u00e9\\n\\"\\\\"',
    '"é🌊"',
    '"' + "x" * 5000 + '"',
    "1.5",
    "1e3",
]
BAD = ["null", "true", "false", "[]", "[1]", "{}", '{"a":1}']


@pytest.fixture
def stdio(reuse: Connect) -> StdioPeer:
    return reuse("stdio", "2025-11-25")


@pytest.fixture
def http(connect: Connect) -> HttpPeer:
    return connect("http", "2025-11-25")


def _ping(id: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}'.encode()


@pytest.mark.parametrize("id", GOOD)
def test_an_id_is_echoed_byte_for_byte_on_stdio(stdio: StdioPeer, id: str) -> None:
    stdio.write(_ping(id) + b"\n")
    assert stdio.read_line() == b'{"jsonrpc":"2.0","id":' + id.encode() + b',"result":{}}\n'


@pytest.mark.parametrize("id", GOOD)
def test_an_id_is_echoed_byte_for_byte_on_http(http: HttpPeer, id: str) -> None:
    response = http.post(_ping(id), http.headers({}))
    assert response.read() == b'{"jsonrpc":"2.0","id":' + id.encode() + b',"result":{}}'
    response.close()


@pytest.mark.parametrize("id", GOOD[:10])
def test_an_error_echoes_the_id_too(stdio: StdioPeer, id: str) -> None:
    stdio.write(f'{{"jsonrpc":"2.0","id":{id},"method":"no/such"}}\n'.encode())
    line = stdio.read_line()
    assert line is not None
    assert line.startswith(b'{"jsonrpc":"2.0","id":' + id.encode() + b',"error":')


@pytest.mark.parametrize("id", BAD)
def test_what_is_no_id_is_an_invalid_request(stdio: StdioPeer, http: HttpPeer, id: str) -> None:
    stdio.write(_ping(id) + b"\n")
    reply = stdio.receive()
    assert reply["error"]["code"] == -32600
    assert "id" not in reply
    response = http.post(_ping(id), http.headers({}))
    assert response.status == 400
    assert json.loads(response.read())["error"]["code"] == -32600
    response.close()


def test_a_string_and_a_number_are_different_ids(connect: Connect) -> None:
    stdio: StdioPeer = connect("stdio", "2025-11-25")
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "wait"}}
    stdio.send({**call, "id": 1})
    stdio.send({**call, "id": "1"})
    stdio.notify("notifications/cancelled", {"requestId": "1"})
    stdio.send({**call, "id": 1})
    reply = stdio.receive()
    assert reply["id"] == 1
    assert reply["error"]["code"] == -32600
    stdio.notify("notifications/cancelled", {"requestId": 1})


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_id_may_be_used_again_when_its_request_is_answered(
    reuse: Connect, revision: str
) -> None:
    peer = reuse("stdio", revision)
    for _ in range(3):
        assert peer.request("tools/list", id="same").result["tools"]


def test_an_unreadable_body_is_answered_without_a_session(http: HttpPeer) -> None:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    response = http_request(http.port, "POST", "/mcp", b"{nonsense", headers)
    assert response.status == 400
    assert json.loads(response.read())["error"]["code"] == -32700
    response.close()
