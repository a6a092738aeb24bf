"""One connection: reads requests one after the other, has each answered in its turn.

What is malformed ends the connection, after the answers to what came before it: where the next
request begins could be understood in two ways.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from tidegate.edges.http1.head import Head, Malformed
from tidegate.edges.http1.reader import MOST_AHEAD, Reader
from tidegate.edges.http1.request import CLOSE, IncomingRequest, whole

if TYPE_CHECKING:
    from tidegate.edges.http1.server import Server

logger = logging.getLogger("tidegate.http")

_AGAIN = b"retry-after: 1\r\n"
MOST_WAITING = 32
"""Requests of one connection that wait for earlier answers before we read no further."""
MOST_AT_ONCE = 1_000
"""Requests that may wait on one connection: a single piece of what arrives can hold more than
`MOST_WAITING`. One more is refused with 429."""


class ClientConnection(Reader):
    """One client's connection to `server`. Each of its requests runs in the one task of the
    connection, unless an answer was ended before its request was through: then another goes on."""

    def __init__(self, server: Server, client: str = "") -> None:
        """`client` is the address of the client, if the connection has another one."""
        super().__init__()
        self.address = client
        self.since = server.now
        """When it last began to wait for its client, by the server's clock."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._held = False
        self._ready: deque[IncomingRequest] = deque()
        self._current: IncomingRequest | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._draining = False
        self._unread = 0
        self._lost = False

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if not self.address and isinstance(peer, tuple) and peer:
            self.address = str(peer[0])  # pyright: ignore[reportUnknownArgumentType]
        if not self._server.admit(self):
            self._refuse(503)

    def eof_received(self) -> None:
        """A client that sends no more has gone, also if it would still read: the two look the same.
        The transport closes itself, after what was written."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._stop_listening()
        self._server.forget(self)
        self._ready.clear()
        self.resume_writing()
        current, incoming = self._current, self._incoming
        self._current = self._incoming = None
        for request in {current, incoming} - {None}:
            cast(IncomingRequest, request).leave()
        self._wake()
        del self._parser

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._server.hold_unread(self)
        # A client that reads no answers must not send more: its requests would wait in our memory.
        self.hold()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        self._server.release_unread(self)
        if drained is not None and not drained.done():
            drained.set_result(None)
        self._go_on_if_wanted()

    # Answering

    def _begin(self) -> None:
        self.since = self._server.now

    def _check_waiting(self) -> None:
        if len(self._ready) >= MOST_AT_ONCE:
            raise Malformed(429)

    def _take(self, request: IncomingRequest) -> None:
        ready = self._ready
        ready.append(request)
        if self._current is None and len(ready) == 1:
            self._wake()
        elif len(ready) >= MOST_WAITING:
            self.hold()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            if not waiter.done():
                waiter.set_result(None)
        elif not self._lost and not self._draining:
            self._worker = self._loop.create_task(self._work())
            self._server.workers.add(self._worker)
            self._worker.add_done_callback(self._server.workers.discard)

    async def _work(self) -> None:
        """Answer requests until the connection ends, or another worker has taken over."""
        me = self._worker
        ready, application = self._ready, self._server.application
        while True:
            while not ready:
                if self._lost:
                    return
                self._waiter = self._loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
            if self._drained is not None:
                self._draining = True
                try:
                    await self._drained
                finally:
                    self._draining = False
                continue
            self._current = request = ready.popleft()
            try:
                await application(request)
            except asyncio.CancelledError:
                # The server stops, or what the application waited for ended: no answer is due.
                self.abort()
                raise
            except Exception:
                logger.exception("fault while answering %s", request.head.method)
            if not request.answered:
                self._fail(request)
            if self._worker is not me:
                return

    def _fail(self, request: IncomingRequest) -> None:
        """Answer what the application did not; a stream that is not ended was cut off."""
        if request.begun:
            self.abort()
        else:
            request.respond(500, b"", close=True)

    def answered(self, request: IncomingRequest, *, close: bool) -> None:
        if self._current is not request:
            return
        self._current = None
        self.since = self._server.now
        if self._lost:
            return
        if close and request is self._incoming and not request.head.expects:
            self._drop_body()
            return
        if close:
            self._end(lingering=request is self._incoming or self._refusal is not None)
            return
        if self._ready:
            self._loop.call_soon(self._hand_over)
        if self._held:
            self._go_on_if_wanted()

    def _go_on_if_wanted(self) -> None:
        """Read on, unless there is a reason left not to."""
        incoming = self._incoming
        if (
            not self._lost
            and self._drained is None
            and len(self._ready) < MOST_WAITING
            and (incoming is None or incoming.ahead <= MOST_AHEAD)
        ):
            self.go_on()

    def _hand_over(self) -> None:
        """Go on with the next request, though its predecessor is not through yet."""
        if self._ready and self._current is None and self._waiter is None and not self._lost:
            self._wake()

    # Ending

    def _note_malformed(self, data: bytes) -> None:
        self._server.header_warnings.note_unexpected(self.address, data)

    def _break(self, status: int) -> None:
        """The client does not speak HTTP, or not as we do: end in turn."""
        cut_off, self._incoming = self._incoming, None
        if cut_off is not None:
            cut_off.cut()
        if self._current is not None or self._ready:
            return
        if cut_off is not None:  # its answer was given before its end came
            self._end(lingering=True)
        else:
            self._refuse(status)

    def _refuse(self, status: int) -> None:
        if not self._transport.is_closing():
            self.write(whole(status, CLOSE + _AGAIN if status in (429, 503) else CLOSE, 0))
            self._end(lingering=True)

    def _drop_body(self) -> None:
        """Close when the client has sent the rest of its body, within bounds. Many clients read no
        answer before they have sent everything, and take a close in between for a failure."""
        self._dropping = True
        self._ready.clear()
        self.go_on()
        self._loop.call_later(self._server.linger_s, self._transport.close)

    def _body_dropped(self) -> None:
        self._stop_listening()
        self._transport.close()

    def _end(self, *, lingering: bool) -> None:
        """Close when what was written has left. With bytes of the client unread, the system would
        take the answer back: so it may go on for a moment."""
        self._stop_listening()
        self._ready.clear()
        if lingering and self._transport.can_write_eof():
            self._transport.write_eof()
            self.go_on()
            self._loop.call_later(self._server.linger_s, self._transport.close)
        else:
            self._transport.close()

    def close(self) -> None:
        """End now if nothing is being answered, else after that (`ending` is then true)."""
        if self._current is None and not self._ready:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # What requests need (`request.Line`)

    @property
    def ending(self) -> bool:
        current = self._current
        return (
            self._server.stopping
            or (self._ignores_input and not self._ready)
            or current is None
            or not current.head.keeps_alive
            or (current is self._incoming and not _is_worth_reading(current.head))
        )

    @property
    def backlog(self) -> int:
        return self._transport.get_write_buffer_size()

    async def room(self) -> None:
        drained = self._drained
        if drained is not None:
            await asyncio.shield(drained)

    @property
    def waits(self) -> str:
        """What the client keeps us waiting for: `request`, `head`, `body`, that it is `reading`
        what it was answered, or nothing."""
        if self._current is not None:
            late = self._incoming is self._current and not self._current.begun
            return "body" if late else ""
        if self.backlog:
            return "reading"
        if self._ready:
            return ""
        if self._incoming is not None:
            return "body"
        return "request" if self._between else "head"

    def look(self) -> None:
        """See whether the client has read anything since the last look."""
        backlog = self.backlog
        if backlog < self._unread:
            self.since = self._server.now
        self._unread = backlog

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        if self._drained is not None:
            self._server.hold_unread(self)

    def write_two(self, first: bytes, second: bytes) -> None:
        self._transport.writelines((first, second))
        if self._drained is not None:
            self._server.hold_unread(self)

    def hold(self) -> None:
        if not self._held:
            self._held = True
            self._transport.pause_reading()

    def go_on(self) -> None:
        if self._held:
            self._held = False
            self._transport.resume_reading()


def _is_worth_reading(head: Head) -> bool:
    """Whether a body that the application did not read is drained to keep the connection usable.
    A client that sent `Expect: 100-continue` may or may not send its body: the start of the next
    request would be unknown."""
    return not head.expects and head.length is not None and head.length <= MOST_AHEAD
