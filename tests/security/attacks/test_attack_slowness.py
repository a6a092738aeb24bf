"""Attacks by slowness: requests that are begun and never ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from attacked import Target, headers_of, tool_call
from patience import PATIENCE_S
from tidegate.edges import listen, patience
from tidegate.edges.patience import Patience

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
BEGUN = {
    "nothing": b"",
    "half a line": b"POST /x HT",
    "half a head": HEAD,
    "half a body": HEAD + b"\r\nab",
    "half a chunk": b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na",
    "half of the second": HEAD + b"\r\nabcdePOST /x HT",
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Reads the whole body, then answers."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN.keys())
def test_a_request_that_does_not_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, parser: str, begun: bytes
) -> None:
    monkeypatch.setattr(listen, "SWEEP_TICKS", 1)
    monkeypatch.setattr(listen, "Patience", lambda: Patience(0.3))

    async def attack() -> bytes:
        listener = listen.bind("127.0.0.1", 0)
        stop, ready = asyncio.Event(), asyncio.Event()
        serving = asyncio.ensure_future(
            listen.listen(application, listener, stop=stop, ready=ready.set, implementation=parser)
        )
        await ready.wait()
        reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        writer.write(begun)
        try:
            return await asyncio.wait_for(reader.read(), PATIENCE_S)
        finally:
            writer.close()
            stop.set()
            await serving

    answer = asyncio.run(attack())
    assert (b"done" in answer) == (begun == BEGUN["half of the second"])


def test_patience_is_longer_than_an_idle_connection_lives() -> None:
    assert patience.PATIENCE_S > 75


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
