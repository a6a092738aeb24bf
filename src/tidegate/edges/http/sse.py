"""Server-sent events as a response to a POST or a GET, with event ids where they can be resumed.

Source: specification, `basic/transports` (Streamable HTTP) and the HTML standard, section 9.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from tidegate.edges.http1.request import IncomingRequest
from tidegate.edges.http1.response import block_of
from tidegate.protocol.session import Stream

KEEP_ALIVE_S = 30.0
MOST_BACKLOG = 4 * 1024 * 1024
"""Bytes that a client may leave unread before the connection is aborted."""

HeaderList = list[tuple[bytes, bytes]]

_HEAD = block_of(
    [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    ]
)


class EventStream(msgspec.Struct, eq=False):
    """An outlet that becomes an event stream with its first message.

    `block` are further headers. `open`: the client takes an event stream; `started` and `closed`:
    it has begun, and ended; `on_start` is called when it begins. `stream` keeps events for a client
    that comes back; None where the revision cannot resume.
    """

    request: IncomingRequest
    block: bytes
    stream: Stream | None = None
    open: bool = True
    on_start: Callable[[], None] | None = None
    started: bool = False
    closed: bool = False
    _quiet: bool = True
    _ended: asyncio.Future[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def send(self, message: bytes) -> None:
        """Send one message; dropped if the client takes no event stream."""
        if not self.open:
            return
        if self.stream is None:
            self.send_event(None, message)
        elif self.closed:
            self.stream.add(message)
        else:
            self.start()
            self.send_event(self.stream.add(message), message)

    def send_event(self, event_id: str | None, message: bytes) -> None:
        prefix = f"id: {event_id}\n".encode() if event_id is not None else b""
        self.put(prefix + b"event: message\ndata: " + message + b"\n\n")

    def put(self, event: bytes) -> None:
        """Send an event as it is written on the wire."""
        self.start()
        if self.closed:
            return
        self._quiet = False
        if self.request.backlog > MOST_BACKLOG:
            self.request.abort()
        else:
            self.request.push(event)

    def start(self) -> None:
        """Begin the response; with a priming event if the stream can be resumed."""
        if self.started or self.closed:
            return
        self.started = True
        self.request.start(_HEAD + self.block)
        self._keep_alive()
        if self.on_start is not None:
            self.on_start()
        if self.stream is not None:
            self.put(f"id: {self.stream.event_id()}\ndata: \n\n".encode())

    def stop(self) -> None:
        """End the response behind what was sent."""
        if not self.started or self.closed:
            return
        self.closed = True
        self.request.finish()
        if self._timer is not None:
            self._timer.cancel()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def drained(self) -> None:
        """Wait until the response has ended."""
        if self.started and not self.closed:
            self._ended = asyncio.get_running_loop().create_future()
            await self._ended

    def _keep_alive(self) -> None:
        """Send a keep-alive so that proxies do not drop the idle connection."""
        if self._quiet and self._timer is not None:
            self.request.push(b": keep-alive\n\n")
        self._quiet = True
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(KEEP_ALIVE_S, self._keep_alive)
