"""One connection: reads requests one after the other, has each answered in its turn.

What is malformed ends the connection, after the answers to what came before it: where the next
request begins could be understood in two ways.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from tidegate.edges.http1.head import MOST_BYTES, Head, Malformed, Pattern, read_head
from tidegate.edges.http1.request import Request
from tidegate.edges.http1.response import CLOSE, whole

if TYPE_CHECKING:
    from tidegate.edges.http1.server import Server

logger = logging.getLogger("tidegate.http")

MOST_WAITING = 32
"""Requests of one connection that wait for earlier answers before we read no further."""
MOST_AT_ONCE = 1_000
"""And with those that came in the same piece."""
MOST_AHEAD = 65_536
"""Bytes of a body that are read before somebody asks for it."""
LINGER_S = 2.0
LINGER_BYTES = 1024 * 1024
"""How long a client that is still sending may go on, so that it can read why it was refused."""


class Connection(asyncio.Protocol):
    """One client's connection to `server`. Each of its requests runs in the one task of the
    connection, unless an answer was ended before its request was through: then another goes on."""

    def __init__(self, server: Server) -> None:
        self.address = ""
        self.since = server.now
        """When it last began to wait for its client, by the server's clock."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self._pattern: Pattern | None = None
        # What is being read
        self._between = True
        self._target = b""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._head: Head | None = None
        self._incoming: Request | None = None
        self._messages = 0
        self._piece = 0
        self._bytes = 0
        self._body_bytes = 0
        self._refusal: Malformed | None = None
        self._deaf = False
        self._spared = 0
        self._held = False
        # What is being answered
        self._ready: deque[Request] = deque()
        self._current: Request | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._draining = False
        self._lost = False

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) and peer else ""  # pyright: ignore[reportUnknownArgumentType]
        if not self._server.admit(self):
            self._refuse(503)

    def data_received(self, data: bytes) -> None:
        if self._between:
            pattern = self._pattern
            if pattern is not None:
                body = pattern.body_of(data)
                if body is not None:
                    self._take(Request(self, pattern.head, body))
                    return
        if not self._deaf:
            self._feed(data)
        else:
            self._spared += len(data)
            if self._spared > LINGER_BYTES:
                self._transport.abort()

    def eof_received(self) -> None:
        """A client that sends no more has gone: the transport closes itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._deaf = True
        self._between = False
        self._server.forget(self)
        self._ready.clear()
        self.resume_writing()
        current, incoming = self._current, self._incoming
        self._current = self._incoming = None
        for request in {current, incoming} - {None}:
            cast(Request, request).leave()
        self._wake()
        del self._parser

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # Reading: what the parser tells

    def _feed(self, data: bytes) -> None:
        fresh, before = self._between, self._messages
        self._piece = len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # We serve no other protocol: the request is answered, and nothing after it.
            self._deaf = True
            if self._refusal is not None:
                self._break(self._refusal.status)
        except HttpParserError:
            self._break(400 if self._refusal is None else self._refusal.status)
        else:
            self._bytes += len(data)
            self._check_size()
        if fresh and self._between and self._messages == before + 1 and self._head is not None:
            self._pattern = Pattern.of(data, self._head)

    def _check_size(self) -> None:
        """Bound what is not body: a head without end, chunks of which little is data. Counted is
        by what arrives at once."""
        if self._between or self._deaf:
            return
        if self._incoming is None:
            if self._bytes > MOST_BYTES:
                self._break(431)
        elif self._bytes > MOST_BYTES + 8 * self._body_bytes:
            self._break(400)

    def on_message_begin(self) -> None:
        if self._between:
            self._between = False
            self.since = self._server.now
        self._target = b""
        self._pairs = []
        self._bytes = self._body_bytes = 0
        self._messages += 1

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is None:  # what follows a body in chunks is of no use to us
            self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        try:
            if self._deaf or len(self._ready) >= MOST_AT_ONCE:
                raise Malformed(429)
            head = read_head(
                parser.get_method(),
                self._target,
                self._pairs,
                parser.get_http_version(),
                keeps_alive=parser.should_keep_alive() and not parser.should_upgrade(),
            )
            if parser.should_upgrade() and head.has_body:
                raise Malformed(501)  # the parser takes the body for the other protocol's
        except Malformed as refusal:
            self._refusal = refusal
            raise
        self._bytes = -self._piece
        self._head = head
        self._incoming = request = Request(self, head, None)
        if head.length != 0:
            self._take(request)

    def on_body(self, body: bytes) -> None:
        request = self._incoming
        if request is not None:
            self._body_bytes += len(body)
            request.feed(body, MOST_AHEAD)

    def on_message_complete(self) -> None:
        request, self._incoming = self._incoming, None
        if request is None:
            return
        self._between = True
        request.complete()
        if request.head.length == 0:
            self._take(request)
        if not request.head.keeps_alive:
            self._deaf, self._between = True, False

    # Answering

    def _take(self, request: Request) -> None:
        """Have a request answered when its turn comes."""
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
            self._current = request = ready.popleft()
            try:
                await application(request)
            except Exception:
                logger.exception("fault while answering %s", request.head.method)
            if not request.answered:
                self._fail(request)
            if self._worker is not me:
                return
            if self._drained is not None:
                self._draining = True
                try:
                    await self._drained
                finally:
                    self._draining = False

    def _fail(self, request: Request) -> None:
        """Answer what the application did not; a stream that is not ended was cut off."""
        if request.begun:
            self.abort()
        else:
            request.respond(500, b"", close=True)

    def answered(self, request: Request, *, close: bool) -> None:
        if self._current is not request:
            return
        self._current = None
        self.since = self._server.now
        if self._lost:
            return
        if close:
            self._end(lingering=request is self._incoming or self._refusal is not None)
            return
        if self._ready:
            self._loop.call_soon(self._hand_over)
        if self._held and len(self._ready) < MOST_WAITING:
            self.go_on()

    def _hand_over(self) -> None:
        """Go on with the next request, though its predecessor is not through yet."""
        if self._ready and self._current is None and self._waiter is None and not self._lost:
            self._wake()

    # Ending

    def _break(self, status: int) -> None:
        """The client does not speak HTTP, or not as we do: end in turn."""
        self._refusal = Malformed(status)
        self._deaf, self._between = True, False
        torn, self._incoming = self._incoming, None
        if torn is not None:
            torn.tear()
        if self._current is not None or self._ready:
            return
        if torn is not None:  # its answer was given before its end came
            self._end(lingering=True)
        else:
            self._refuse(status)

    def _refuse(self, status: int) -> None:
        if not self._transport.is_closing():
            self.write(whole(status, CLOSE, 0))
            self._end(lingering=True)

    def _end(self, *, lingering: bool) -> None:
        """Close when what was written has left. With bytes of the client unread, the system would
        take the answer back: so it may go on for a moment."""
        self._deaf, self._between = True, False
        self._ready.clear()
        if lingering and self._transport.can_write_eof():
            self._transport.write_eof()
            self.go_on()
            self._loop.call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()

    def close(self) -> None:
        """End now if nothing is being answered, else after that (`ending` says so)."""
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
            or (self._deaf and not self._ready)
            or current is None
            or not current.head.keeps_alive
            or (current is self._incoming and not _is_worth_reading(current.head))
        )

    @property
    def backlog(self) -> int:
        return self._transport.get_write_buffer_size()

    @property
    def waits(self) -> str:
        """What the client keeps us waiting for: `request`, `head`, `body`, or nothing."""
        if self._current is not None:
            late = self._incoming is self._current and not self._current.begun
            return "body" if late else ""
        if self._ready:
            return ""
        if self._incoming is not None:
            return "body"
        return "request" if self._between else "head"

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def write_two(self, first: bytes, second: bytes) -> None:
        self._transport.writelines((first, second))

    def hold(self) -> None:
        if not self._held:
            self._held = True
            self._transport.pause_reading()

    def go_on(self) -> None:
        if self._held:
            self._held = False
            self._transport.resume_reading()


def _is_worth_reading(head: Head) -> bool:
    """Whether a body that nobody wants is read for the sake of the next request. Who waits to be
    told to send it may send it or not: nobody could tell where that request begins."""
    return not head.expects and head.length is not None and head.length <= MOST_AHEAD
