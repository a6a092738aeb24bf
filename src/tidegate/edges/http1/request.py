"""One request as an application sees it: its head, its body, and the means to answer it.

An answer is given once, as a whole or as a stream of parts. Sending never blocks and never raises:
what is said to a client that has gone is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Protocol

from tidegate.edges.http1.head import Head

_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_NO_BODY = frozenset({204, 304})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
LAST_CHUNK = b"0\r\n\r\n"

JOINED_BYTES = 65_536
"""Bodies up to this are copied after their head, to be sent in one piece."""


class TooLarge(Exception):
    """The body has more bytes than the reader wants."""


class CutOff(Exception):
    """The client went, or sent something malformed, before the body had ended."""


class Line(Protocol):
    """What a request needs of its connection."""

    address: str

    @property
    def ending(self) -> bool:
        """Whether the connection ends with this answer."""
        ...

    @property
    def backlog(self) -> int:
        """Bytes that were sent and have not left yet."""
        ...

    def write(self, data: bytes) -> None: ...
    def write_two(self, first: bytes, second: bytes) -> None: ...
    def hold(self) -> None:
        """Pause reading: the application has not asked for the body yet."""
        ...

    def go_on(self) -> None:
        """Read on."""
        ...

    def answered(self, request: IncomingRequest, *, close: bool) -> None:
        """The answer has been given."""
        ...

    async def room(self) -> None:
        """Wait until the client has taken most of what was sent, or has gone."""
        ...

    def abort(self) -> None:
        """End at once; what was sent and has not left is lost."""
        ...


class IncomingRequest:
    """`body` is None until it is here as a whole; `gone` is whether the client has left."""

    __slots__ = (
        "_arrival",
        "_begun",
        "_left",
        "_limit",
        "_line",
        "_parts",
        "_size",
        "answered",
        "body",
        "cut_off",
        "gone",
        "head",
        "passed_on",
    )

    def __init__(self, line: Line, head: Head, body: bytes | None) -> None:
        self._line = line
        self._arrival: asyncio.Future[None] | None = None
        self._left: Callable[[], None] | None = None
        self._begun = False
        self._parts: list[bytes] = []
        self._size = 0
        self._limit: int | None = None
        self.head = head
        self.body = body
        self.answered = False
        self.gone = False
        self.cut_off = False
        self.passed_on = False

    @property
    def address(self) -> str:
        """Where the connection comes from, which may be a proxy; empty if that is not known."""
        return self._line.address

    def comes_from(self, address: str) -> None:
        """Say where the connection of the client is, which another process of ours has."""
        self._line.address = address
        self.passed_on = True

    @property
    def begun(self) -> bool:
        """Whether an answer has begun."""
        return self._begun

    @property
    def ahead(self) -> int:
        """Bytes of the body received before the application asked for them."""
        return self._size if self._limit is None and not self.answered else 0

    def when_gone(self, left: Callable[[], None] | None) -> None:
        """Call `left` once when the client goes before it has its answer; None forgets it."""
        self._left = left
        if left is not None and self.gone:
            self._left = None
            left()

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises: TooLarge beyond `limit` bytes, CutOff."""
        length = self.head.length
        if length is not None and length > limit:
            raise TooLarge
        if self.body is None:
            await self._arrive(limit)
        body = self.body
        assert body is not None  # noqa: S101 - it has arrived
        if len(body) > limit:
            raise TooLarge
        return body

    async def _arrive(self, limit: int) -> None:
        if self.gone or self.cut_off:
            raise CutOff
        if self._size > limit:
            raise TooLarge
        self._limit = limit
        if self.head.expects and not self._size:
            self._line.write(CONTINUE)
        self._line.go_on()
        self._arrival = asyncio.get_running_loop().create_future()
        await self._arrival

    # The answer

    def respond(self, status: int, block: bytes, body: bytes = b"", *, close: bool = False) -> None:
        """Answer as a whole; `block` are headers as `response.block_of` writes them."""
        if self._begun:
            raise RuntimeError("an answer was given before")
        self._begun = self.answered = True
        self._parts.clear()  # the rest of a body that is not read
        line = self._line
        close = close or line.ending
        if close:
            block += CLOSE
        if not self.gone:
            start = whole(status, block, len(body))
            if self.head.method == "HEAD":
                line.write(start)
            elif len(body) <= JOINED_BYTES:
                line.write(start + body)
            else:
                line.write_two(start, body)
        line.answered(self, close=close)

    def start(self, block: bytes) -> None:
        """Begin a stream, with status 200."""
        if self._begun:
            raise RuntimeError("an answer was given before")
        self._begun = True
        if not self.head.modern or self._line.ending:
            block += CLOSE
        if not self.gone:
            self._line.write(streaming(block, chunked=self.head.modern))

    def push(self, part: bytes) -> None:
        """Send a part of the stream, which must not be empty."""
        if not self.gone and not self.answered:
            self._line.write(chunk(part) if self.head.modern else part)

    def finish(self) -> None:
        """End the stream."""
        if self.answered:
            return
        self.answered = True
        if not self.gone and self.head.modern:
            self._line.write(LAST_CHUNK)
        self._line.answered(self, close=self._line.ending)

    @property
    def backlog(self) -> int:
        """Bytes of this and earlier answers that the client has not taken yet."""
        return 0 if self.gone else self._line.backlog

    async def room(self) -> None:
        """Wait until the client has taken most of what was sent, or has gone."""
        if not self.gone:
            await self._line.room()

    def abort(self) -> None:
        """Give the client up."""
        if not self.gone:
            self._line.abort()

    # Called by the connection

    def feed(self, part: bytes, most_ahead: int) -> None:
        """Take a received part of the body. The application may not have asked for it yet, or may
        have answered already."""
        if self.answered:
            return
        self._size += len(part)
        if self._limit is None:
            self._parts.append(part)
            if self._size > most_ahead:
                self._line.hold()
        elif self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()
            self._settle(TooLarge())

    def complete(self) -> None:
        """All of the body has come."""
        self.body = b"".join(self._parts)
        self._parts.clear()
        self._settle(None)

    def cut(self) -> None:
        """What comes is no body."""
        self.cut_off = True
        self._settle(CutOff())

    def leave(self) -> None:
        """The client has gone."""
        self.gone = True
        self._settle(CutOff())
        left, self._left = self._left, None
        if left is not None and not self.answered:
            left()

    def _settle(self, failure: Exception | None) -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is None or arrival.done():
            return
        if failure is None:
            arrival.set_result(None)
        else:
            arrival.set_exception(failure)


Application = Callable[[IncomingRequest], Awaitable[None]]
"""Answers requests; what it raises is a fault."""


# Responses as bytes: the status line, the date, headers, and how long the body is.


def block_of(headers: Collection[tuple[bytes, bytes]]) -> bytes:
    """Headers as they are sent. Raises: ValueError if one of them would be several lines."""
    block = b"".join([b"%b: %b\r\n" % header for header in headers])
    if block.count(b"\n") != len(headers) or block.count(b"\r") != len(headers):
        raise ValueError("a header with a line break")
    return block


class _Date:
    """The Date header, made once a second (RFC 9110, section 5.6.7)."""

    __slots__ = ("_line", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._line = b""

    def line(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            at = time.gmtime(second)
            # strftime would write the names of the machine's language.
            day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
            clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
            text = f"date: {day}, {at.tm_mday:02} {month} {at.tm_year} {clock} GMT\r\n"
            self._line = text.encode()
        return self._line


_date = _Date().line


def whole(status: int, block: bytes, length: int) -> bytes:
    """The head of a response with a body of `length` bytes; `block` are its own headers."""
    if status in _NO_BODY:
        return b"%b%b%b\r\n" % (_STATUS[status], _date(), block)
    return b"%b%b%bcontent-length: %d\r\n\r\n" % (_STATUS[status], _date(), block, length)


def streaming(block: bytes, *, chunked: bool) -> bytes:
    """The head of a response whose end is not known yet."""
    framing = b"transfer-encoding: chunked\r\n" if chunked else b""
    return b"%b%b%b%b\r\n" % (_STATUS[200], _date(), block, framing)


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)
