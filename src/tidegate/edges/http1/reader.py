"""Reading requests from one connection: bytes in, `IncomingRequest`s out, or the end of it.

Knows nothing of answers. Requests begin when their head is complete; a body may still be coming.
"""

from __future__ import annotations

import asyncio
import re

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from tidegate.edges.http1.head import MOST_BYTES, MOST_HEADERS, Head, Malformed, read_head
from tidegate.edges.http1.request import IncomingRequest, Line

MOST_AHEAD = 65_536
"""Bytes of a body that are read before the application asks for it."""
LINGER_BYTES = 1024 * 1024
"""How much a client may go on to send after we stopped parsing its connection."""
DROPPED_BYTES = 64 * 1024 * 1024
"""How much of a body is read and dropped after its request was refused."""


class Reader(asyncio.Protocol, Line):
    """The reading half of a connection. The other half takes the requests and ends it.

    `_between`: the next byte begins a request. `_ignores_input`: nothing that comes counts any
    more. `_incoming`: the request whose body is still coming. `_dropping`: its answer was given and
    the connection closes when the body has ended. `_resuming`: a new parser reads the rest of a
    request that asked for another protocol.
    """

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)
        self._pattern: Pattern | None = None
        self._between = True
        self._ignores_input = False
        self._incoming: IncomingRequest | None = None
        self._refusal: Malformed | None = None
        self._target = b""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._head: Head | None = None
        self._messages = 0
        self._piece = 0
        self._first = False
        self._bytes = 0
        self._body_bytes = 0
        self._ignored_bytes = 0
        self._dropping = False
        self._resuming = False

    # What the other half does

    def _take(self, request: IncomingRequest) -> None:
        """Have a request answered when its turn comes."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Note the first byte of a request."""
        raise NotImplementedError

    def _check_waiting(self) -> None:
        """Raises: Malformed if too many requests wait by now."""
        raise NotImplementedError

    def _break(self, status: int) -> None:
        """End the connection, after the answers to what came before."""
        raise NotImplementedError

    def _note_malformed(self, data: bytes) -> None:
        """Something came that is not HTTP."""
        raise NotImplementedError

    def _body_dropped(self) -> None:
        """End the connection: the body of the last request has been read to its end."""
        raise NotImplementedError

    def _stop_listening(self) -> None:
        self._ignores_input, self._between = True, False

    # Callbacks of the transport

    def data_received(self, data: bytes) -> None:
        if self._between:
            pattern = self._pattern
            if pattern is not None:
                body = pattern.body_of(data)
                if body is not None:
                    self._take(IncomingRequest(self, pattern.head, body))
                    return
        if self._ignores_input or self._dropping:
            self._ignored_bytes += len(data)
            if self._ignored_bytes > (LINGER_BYTES if self._ignores_input else DROPPED_BYTES):
                self.abort()
                return
        if not self._ignores_input:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        fresh, before = self._between, self._messages
        self._piece, self._first = len(data), fresh
        try:
            self._parse(data)
        except HttpParserError:
            self._note_malformed(data)
            self._refusal = self._refusal or Malformed(400)
            self._stop_listening()
            self._break(self._refusal.status)
        else:
            self._bytes += len(data)
            self._check_size()
        if fresh and self._between and self._messages == before + 1 and self._head is not None:
            self._pattern = Pattern.of(data, self._head)

    def _parse(self, data: bytes) -> None:
        """Feed the parser. A request for another protocol (`Upgrade`) is served as if it had not
        asked (RFC 9110, section 7.8); the parser stops after its head, so a new one goes on with
        the body and what follows. Raises: HttpParserError."""
        while True:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._parser = HttpRequestParser(self)
                request = self._incoming
                if request is not None:
                    self._resuming = True
                    self._parser.feed_data(_head_for_body(request.head))
            else:
                return

    def _check_size(self) -> None:
        """Bound what is not body: a head without end, chunks of which little is data. Counted is
        by what arrives at once."""
        if self._between or self._ignores_input:
            return
        status = None
        if self._incoming is None:
            if self._bytes > MOST_BYTES:
                status = 431
        elif self._bytes > MOST_BYTES + 8 * self._body_bytes:
            status = 400
        if status is not None:
            self._refusal = Malformed(status)
            self._stop_listening()
            self._break(status)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if self._resuming:
            return
        if self._ignores_input:  # the parser would keep a connection that we do not
            raise Malformed(400)
        self._between = False
        self._begin()
        self._target = b""
        self._pairs = []
        # Of a piece, what comes before this request is not counted as its head.
        self._bytes = 0 if self._first else -self._piece
        self._first = False
        self._body_bytes = 0
        self._messages += 1

    def on_url(self, url: bytes) -> None:
        if not self._resuming:
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is not None:
            return  # what follows a body in chunks is of no use to us
        if len(self._pairs) >= MOST_HEADERS:  # now: short ones take many times their bytes
            self._refusal = Malformed(431)
            raise self._refusal
        self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self._resuming:
            self._resuming = False
            return
        try:
            self._check_waiting()
            head = read_head(
                parser.get_method(),
                self._target,
                self._pairs,
                parser.get_http_version(),
                keeps_alive=parser.should_keep_alive(),
            )
        except Malformed as refusal:
            self._refusal = refusal
            raise
        self._bytes = -self._piece
        self._head = head
        self._incoming = request = IncomingRequest(self, head, None)
        if head.has_body:
            self._take(request)

    def on_body(self, body: bytes) -> None:
        request = self._incoming
        if request is not None:
            self._body_bytes += len(body)
            request.feed(body, MOST_AHEAD)

    def on_message_complete(self) -> None:
        request = self._incoming
        if request is None:
            return
        if self._parser.should_upgrade() and request.head.has_body:
            return  # the parser leaves the body out; `_parse` goes on with it
        self._incoming = None
        if self._dropping:
            self._body_dropped()
            return
        self._between = True
        request.complete()
        if not request.head.has_body:
            self._take(request)
        if not request.head.keeps_alive:
            self._stop_listening()


def _head_for_body(head: Head) -> bytes:
    """A head that makes a new parser read the body of `head`."""
    if head.length is None:
        framing = b"transfer-encoding: chunked"
    else:
        framing = b"content-length: %d" % head.length
    return b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing


_LENGTH = re.compile(rb"\r\nContent-Length:[ ]?([0-9]{1,7})\r\n", re.IGNORECASE)
_MOST_KEPT = 8_192


class Pattern:
    """A head as bytes, with room for another length: requests of one client are seldom different
    in anything else, and then need not be parsed.

    The bytes of such a request are those that the parser has accepted, except for the digits that
    are the value of the one Content-Length.
    """

    __slots__ = ("_after", "_before", "_start", "head")

    def __init__(self, before: bytes, after: bytes, head: Head) -> None:
        self._before = before
        self._after = after
        self._start = len(before)
        self.head = head

    @classmethod
    def of(cls, data: bytes, head: Head) -> Pattern | None:
        """The pattern of the head that `data` starts with; None if it is no ordinary one."""
        if head.method != "POST" or not head.keeps_alive or head.expects or head.chunked:
            return None
        end = data.find(b"\r\n\r\n", 0, _MOST_KEPT)
        if end < 0 or not data.startswith(b"POST "):
            return None
        raw = data[: end + 4]
        found = list(_LENGTH.finditer(raw))
        if len(found) != 1 or int(found[0][1]) != head.length:
            return None
        return cls(raw[: found[0].start(1)], raw[found[0].end(1) :], head)

    def body_of(self, data: bytes) -> bytes | None:
        """The body, if `data` is exactly one request with this head; else None."""
        if not data.startswith(self._before):
            return None
        end = data.find(b"\r", self._start, self._start + 8)
        digits = data[self._start : end]
        if end < 0 or not digits.isdigit() or not data.startswith(self._after, end):
            return None
        body = data[end + len(self._after) :]
        return body if len(body) == int(digits) else None
