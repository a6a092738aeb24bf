"""Server-sent events as a response to a POST or a GET, with event ids where they can be resumed.

Source: specification, `basic/transports` (Streamable HTTP) and the HTML standard, section 9.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from tidegate.edges.http1.request import IncomingRequest, block_of
from tidegate.protocol.session import Stream

KEEP_ALIVE_S = 12.0
"""How long a response may be silent. Proxies end one after 30 s (HAProxy's documents) or 60 s
(nginx)."""
MOST_BACKLOG = 4 * 1024 * 1024
"""Bytes that a client may leave unread before the connection is aborted."""

KEEP_ALIVE = b": keep-alive\n\n"

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
    keep_alive_s: float = KEEP_ALIVE_S
    started: bool = False
    closed: bool = False
    _sent_at: float = 0.0
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
        self._sent_at = asyncio.get_running_loop().time()
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
        self._sent_at = asyncio.get_running_loop().time()
        self._keep_alive()
        if self.on_start is not None:
            self.on_start()
            self.on_start = None
        if self.stream is not None:
            self.put(f"id: {self.stream.event_id()}\ndata: \n\n".encode())

    def stop(self) -> None:
        """End the response after what was sent."""
        if not self.started or self.closed:
            return
        self.request.finish()
        self.lose()

    def lose(self) -> None:
        """Take note that nothing more can be sent: the response has ended, or its client left."""
        self.closed = True
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
        """Send a comment when nothing was sent for `keep_alive_s`."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._sent_at + self.keep_alive_s:
            self.request.push(KEEP_ALIVE)
            self._sent_at = now
        self._timer = loop.call_at(self._sent_at + self.keep_alive_s, self._keep_alive)

    def begin_silence(self) -> None:
        """Begin the response though there is nothing to say yet, so that no proxy gives it up."""
        if self.started or self.closed or not self.open:
            return
        self.start()
        if self.stream is None:
            self.request.push(KEEP_ALIVE)
