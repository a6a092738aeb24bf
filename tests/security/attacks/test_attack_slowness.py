"""Attacks by slowness: requests that are begun and never ended."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from support.attack_target import Target, headers_of, tool_call
from support.eventually import PATIENCE_S
from tidegate.edges.http1.request import IncomingRequest
from tidegate.edges.http1.server import Deadlines, Server
from tidegate.edges.listening import bind

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
BEGUN = {
    "nothing": b"",
    "half a line": b"POST /x HT",
    "half a head": HEAD,
    "half a body": HEAD + b"\r\nab",
    "half a chunk": b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na",
    "half of the second": HEAD + b"\r\nabcdePOST /x HT",
}


HURRIED = partial(Server, deadlines=Deadlines(0.3, 0.3, 0.3), sweep_s=0.1)


async def application(request: IncomingRequest) -> None:
    """Reads the whole body, then answers."""
    await request.read(1_000)
    request.respond(200, b"", b"done")


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN.keys())
def test_a_request_that_does_not_end_is_cut_off(begun: bytes) -> None:

    async def attack() -> bytes:
        listener = bind("127.0.0.1", 0)
        server = HURRIED(application)
        await server.accept(listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        writer.write(begun)
        try:
            return await asyncio.wait_for(_rest(reader), PATIENCE_S)
        finally:
            writer.close()
            await server.stop(1)

    answer = asyncio.run(attack())
    assert (b"done" in answer) == (begun == BEGUN["half of the second"])


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, however it does."""
    received = b""
    try:
        while piece := await reader.read(65_536):
            received += piece
    except ConnectionError:
        pass
    return received


def test_a_body_may_take_longer_than_a_head_and_a_connection_may_rest_between() -> None:
    deadlines = Deadlines()
    assert deadlines.head_s < deadlines.idle_s < deadlines.body_s


def test_half_requests_do_not_hold_up_whole_ones(server: Target) -> None:
    connections = []
    for _ in range(200):
        connection = server.connect()
        connection.connect()
        connection.sock.sendall(HEAD)
        connections.append(connection)
    assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'
    for connection in connections:
        connection.close()


def test_refusals_that_wait_for_a_body_do_not_hold_up_others(server: Target) -> None:
    foreign = HEAD.replace(b"/x", b"/mcp/core").replace(b"localhost", b"evil.example") + b"\r\n"
    waiting = [server.connect() for _ in range(400)]
    for connection in waiting:
        connection.connect()
        connection.sock.sendall(foreign)
    assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'
    for connection in waiting:
        # Each is refused, though not one of them ever sends its body.
        assert connection.sock.recv(65_536).startswith(b"HTTP/1.1 403 ")
        connection.close()


ENDLESS = {
    "many headers": (b"POST / HTTP/1.1\r\nHost: x\r\n", b"X-Padding: " + b"a" * 1_000 + b"\r\n"),
    "one header": (b"POST / HTTP/1.1\r\nHost: x\r\nX: ", b"a" * 4_096),
    "one name": (b"POST / HTTP/1.1\r\nHost: x\r\n", b"a" * 4_096),
    "an address": (b"POST /", b"a" * 4_096),
}


@pytest.mark.parametrize(("begun", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_head_without_end_is_cut_off(server: Target, begun: bytes, more: bytes) -> None:
    connection = server.connect()
    connection.connect()
    sent = 0
    with pytest.raises(OSError):
        connection.sock.sendall(begun)
        while sent < 50_000_000:
            connection.sock.sendall(more)
            sent += len(more)
    assert sent < 20_000_000  # the system's buffers take some of it
    connection.close()
    assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'


def test_a_head_of_usual_size_is_not(server: Target) -> None:
    padding = {f"X-{number}": "a" * 1_000 for number in range(40)}
    frame = tool_call("query", sql="SELECT 1")
    for _ in range(3):
        assert server.post(frame, {**headers_of("query"), **padding}).status == 200
