"""The load client: HTTP/1.1 keep-alive over raw sockets, in a closed loop, every answer checked.

It is written to be cheap, so that the two cores it shares with the server are the server's; its
own CPU is reported apart. It knows no MCP: bytes go out, bytes come back, a marker must be inside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

_LAST_CHUNK = b"0\r\n\r\n"


class Shot(NamedTuple):
    """One request, ready to send, and what a right answer contains."""

    request: bytes
    marker: bytes
    echo: bytes
    """The id as the server must echo it."""
    times: int = 0
    """How often exactly the marker is in a right answer; 0: at least once."""


@dataclass
class Volley:
    """What a closed loop did: seconds of wall clock and client CPU, and each call's latency."""

    wall: float = 0.0
    client_cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    answer_bytes: int = 0

    @property
    def calls(self) -> int:
        return len(self.latencies)


class WrongAnswerError(Exception):
    """A server answered something else than asked for; no such answer is counted."""


class _Exchange(asyncio.Protocol):
    """One connection: sends a shot, gathers the answer, checks it, sends the next."""

    def __init__(self, loop: _ClosedLoop) -> None:
        self._loop = loop
        self._parts: list[bytes] = []
        self._missing = 0
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.fire()

    def fire(self) -> None:
        shot = self._loop.next_shot()
        if shot is None:
            self._loop.finished()
            return
        self._shot = shot
        self._sent = time.perf_counter()
        self.transport.write(shot.request)

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            self._begin(data)
            return
        # Large answers come in many pieces: they are joined once, when the last one is here.
        self._parts.append(data)
        self._missing -= len(data)
        self._tail = (self._tail + data)[-5:]
        if self._missing <= 0 if self._sized else self._tail == _LAST_CHUNK:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._begin(whole)

    def _begin(self, data: bytes) -> None:
        """Take an answer from its first byte on; it may be all there."""
        head = data.find(b"\r\n\r\n")
        headers = data[: max(head, 0)].lower()
        at = headers.find(b"content-length:")
        self._sized = at >= 0
        body = None
        if head < 0:
            # Not even the headers are all here: look again with the next piece.
            self._sized, self._missing = True, 1
        elif self._sized:
            length = int(headers[at + 15 :].split(b"\r\n", 1)[0])
            self._missing = head + 4 + length - len(data)
            if self._missing <= 0:
                body = data[head + 4 :]
        elif b"transfer-encoding: chunked" in headers:
            if data.endswith(_LAST_CHUNK):
                body = dechunk(data, head + 4)
        else:
            self._loop.failed(f"an answer without a length: {data[:600]!r}")
            return
        if body is None:
            self._parts.append(data)
            self._tail = data[-5:]
        else:
            self._answered(int(data[9:12]), body)

    def _answered(self, status: int, body: bytes) -> None:
        latency = time.perf_counter() - self._sent
        shot = self._shot
        right = body.count(shot.marker) == shot.times if shot.times else shot.marker in body
        if status != 200 or not right or shot.echo not in body:
            self._loop.failed(f"HTTP {status}, expected {shot.marker!r}: {body[:600]!r}")
            return
        self._loop.volley.latencies.append(latency)
        self._loop.volley.answer_bytes = len(body)
        self.fire()

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.failed(f"the server closed the connection: {exc}")


def dechunk(data: bytes, at: int) -> bytes | None:
    """The body of a chunked answer that starts at `at`; None if it is not all there."""
    parts: list[bytes] = []
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return None
        size = int(data[at:line].split(b";", 1)[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(data[line + 2 : line + 2 + size])
        at = line + 4 + size


class _ClosedLoop:
    """What the connections of one volley share."""

    def __init__(self, shots: Iterator[Shot], clients: int, calls: int, seconds: float) -> None:
        self.volley = Volley()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._shots = shots
        self._clients = clients
        self._left = calls
        self._end = time.perf_counter() + seconds

    def next_shot(self) -> Shot | None:
        if self._left <= 0 or time.perf_counter() >= self._end:
            return None
        self._left -= 1
        return next(self._shots)

    def finished(self) -> None:
        self._clients -= 1
        if self._clients == 0 and not self.done.done():
            self.done.set_result(None)

    def failed(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(WrongAnswerError(reason))


async def _volley(
    port: int, shots: Iterator[Shot], clients: int, calls: int, seconds: float
) -> Volley:
    loop = asyncio.get_running_loop()
    closed = _ClosedLoop(shots, clients, calls, seconds)
    loop.set_exception_handler(lambda _, context: closed.failed(str(context)))
    started, cpu = time.perf_counter(), time.process_time()
    exchanges: list[_Exchange] = []
    try:
        for _ in range(clients):
            _, exchange = await loop.create_connection(lambda: _Exchange(closed), "127.0.0.1", port)
            exchanges.append(exchange)
        # A closed loop ends by itself, unless the server stops answering.
        await asyncio.wait_for(closed.done, seconds + 60)
        closed.volley.wall = time.perf_counter() - started
        closed.volley.client_cpu = time.process_time() - cpu
    finally:
        for exchange in exchanges:
            exchange.transport.abort()
    return closed.volley


def volley(
    port: int,
    shots: Iterator[Shot],
    *,
    clients: int,
    calls: int = 10_000_000,
    seconds: float,
) -> Volley:
    """Fire until `calls` are made or `seconds` are over, each client one call at a time.

    Raises: WrongAnswerError at the first answer that is not the expected one.
    """
    import uvloop

    return uvloop.run(_volley(port, shots, clients, calls, seconds))
