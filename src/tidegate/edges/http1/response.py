"""Responses as bytes: the status line, the date, headers, and how long the body is."""

from __future__ import annotations

import time
from collections.abc import Collection
from http import HTTPStatus

_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_NO_BODY = frozenset({204, 304})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
LAST_CHUNK = b"0\r\n\r\n"


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
