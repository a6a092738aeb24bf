"""Sends one request at a time and reads its reply; keeps connections where that is allowed."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urljoin

from tidegate.config.addresses import HttpUrl, is_public_address, parse_http_url
from tidegate.errors import Code
from tidegate.http_client.connections import (
    CHUNK,
    Connection,
    connect,
    find_refused,
    reason_of,
)
from tidegate.http_client.rules import (
    ClientRules,
    HttpRequest,
    HttpResponse,
    Origin,
    RequestFailed,
    Server,
    Sink,
    origin_of,
)
from tidegate.http_client.unpacking import TooLarge, unpack

_READS: Final = frozenset({"GET", "HEAD"})
_TOKEN: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""Names and values of headers, as RFC 9110, sections 5.1 and 5.5, has them."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class HttpClient:
    """Sends requests by one set of rules. Connections that are kept are one event loop's."""

    def __init__(self, rules: ClientRules) -> None:
        self.rules = rules
        self._idle: dict[Origin, list[Connection]] = {}

    async def send(self, request: HttpRequest, sink: Sink | None = None) -> HttpResponse:
        """The reply to one attempt, whatever its status. With a `sink` the body of the status 200
        goes there as it comes, and no other body is kept. A request that may change something gets
        a connection of its own, so that one which the server has just closed leaves no doubt.

        Raises: RequestFailed HOST_REFUSED, PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT,
        PROVIDER_CUT_OFF, PROVIDER_TOO_LARGE, PROVIDER_REPLY; TidegateError CONFIG_INVALID for the
        CA file; what `sink` raises.
        """
        rules, networks = self.rules, request.networks
        try:
            target = parse_http_url(request.url)
        except ValueError:
            what = "is not asked: its address is not one of HTTP"
            raise RequestFailed(Code.HOST_REFUSED, request.name or "The server", what) from None
        exchange = _Exchange(rules, request, target)
        first = exchange.server.origin
        try:
            async with asyncio.timeout(rules.total_s):
                for _ in range(rules.max_redirects + 1):
                    exchange = _Exchange(rules, request, target, origin_of(target) == first)
                    response = await self._exchange(exchange, networks, sink)
                    follows = rules.max_redirects and request.verb in _READS
                    if not follows or response.status not in _REDIRECTS:
                        return response
                    if not response.peer or is_public_address(response.peer):
                        networks = ()
                    target = exchange.redirect(response.headers.get("location", ""))
        except TimeoutError:
            did = "end its reply" if exchange.is_headed else "answer"
            text = f"did not {did} within {rules.total_s:g} s"
            raise exchange.fail(Code.PROVIDER_TIMEOUT, text) from None
        raise exchange.fail(Code.PROVIDER_REPLY, "redirects too many times")

    def send_blocking(self, request: HttpRequest, sink: Sink | None = None) -> HttpResponse:
        """The same for callers that wait, such as commands; keeps no connection. If the thread has
        an event loop, that waits as well."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.send(request, sink))
        with ThreadPoolExecutor(1, "tidegate-http") as thread:
            return thread.submit(asyncio.run, self.send(request, sink)).result()

    async def close(self) -> None:
        """End the connections that are kept."""
        for connections in self._idle.values():
            for connection in connections:
                connection.writer.close()
        self._idle.clear()

    async def _exchange(
        self, exchange: _Exchange, networks: Sequence[str] | None, sink: Sink | None
    ) -> HttpResponse:
        while exchange.verb in _READS and (kept := self._take(exchange.server.origin, networks)):
            try:
                return await self._use(exchange, kept, sink)
            except RequestFailed as failure:
                if exchange.began or failure.code is not Code.PROVIDER_CUT_OFF:
                    raise
                # It was closed while nothing was sent over it: the next one is tried.
        connection = await connect(exchange.server, networks)
        return await self._use(exchange, connection, sink)

    def _take(self, origin: Origin, networks: Sequence[str] | None) -> Connection | None:
        kept = self._idle.get(origin)
        while kept and find_refused([kept[-1].peer], networks) is None:
            found = kept.pop()
            is_fresh = time.monotonic() - found.reader.idle_since < self.rules.max_idle_s
            if is_fresh and found.is_quiet:
                return found
            found.writer.close()
        return None

    async def _use(
        self, exchange: _Exchange, connection: Connection, sink: Sink | None
    ) -> HttpResponse:
        is_kept = False
        try:
            response = await exchange.run(connection, sink)
            if exchange.keeps_alive and self.rules.max_idle and connection.peer:
                kept = self._idle.setdefault(exchange.server.origin, [])
                is_kept = len(kept) < self.rules.max_idle
                if is_kept:
                    connection.reader.idle_since = time.monotonic()
                    kept.append(connection)
            return response
        finally:
            if not is_kept:
                connection.writer.transport.abort()  # what else comes is not waited for


class _Exchange:
    """One request on the wire, and what comes back. `httptools` calls what begins with `on_`."""

    def __init__(
        self, rules: ClientRules, request: HttpRequest, target: HttpUrl, is_first: bool = True
    ) -> None:
        """`is_first`: the target is at the origin of the request, and gets its credentials."""
        self._rules = rules
        self._request = request
        self._target = target
        self._is_first = is_first
        self._parser: Any = None
        self.verb = request.verb
        origin = origin_of(target)
        name = f"{request.name} at {origin.place}" if request.name else origin.place
        self.server = Server(rules, origin, name)
        self.was_sent = False
        self.began = False
        """Whether a part of the reply has come."""
        self._reset()

    def _reset(self) -> None:
        self._headers: dict[str, str] = {}
        self._status = 0
        self.is_headed = False
        self._is_complete = False
        self.keeps_alive = False
        self._head_bytes = 0
        self._parts: list[bytes] = []

    def fail(self, code: Code, what: str) -> RequestFailed:
        return self.server.fail(code, what, was_sent=self.was_sent)

    def redirect(self, location: str) -> HttpUrl:
        """Where a redirect leads. Raises: RequestFailed if it may not."""
        try:
            found = parse_http_url(urljoin(f"{self._target.origin}{self._target.path}", location))
        except ValueError:
            what = "redirects to what is not an address of HTTP"
            raise self.fail(Code.PROVIDER_REPLY, what) from None
        if (
            found.scheme != self.server.origin.scheme
            or found.login is not None
            or not found.is_private
        ):
            what = "redirects to another scheme, which is not followed"
            raise self.fail(Code.PROVIDER_REPLY, what)
        return found

    async def run(self, connection: Connection, sink: Sink | None) -> HttpResponse:
        """The reply over a connection. Raises: RequestFailed, what `sink` raises."""
        self._reset()
        head = self._write_head()
        try:
            connection.writer.write(head)
            self.was_sent = True
            await connection.writer.drain()
        except OSError as error:
            raise self._cut_off(error) from None
        await self._read(connection.reader, sink)
        body = b"".join(self._parts)
        coding = self._headers.get("content-encoding", "").lower()
        if body and self._rules.unpacks and coding not in ("", "identity"):
            body = await self._unpack(body, coding)
        url = f"{self._target.origin}{self._target.path}"
        return HttpResponse(self._status, self._headers, body, url, connection.peer)

    def _write_head(self) -> bytes:
        """The request. Raises: RequestFailed for an invalid header."""
        request, target, rules = self._request, self._target, self._rules
        host = request.host if self._is_first else ""
        given = [*request.headers, *(request.credentials if self._is_first else ())]
        standard = [
            ("Accept", "*/*"),
            ("Accept-Encoding", "gzip" if rules.unpacks and rules.reads_body else "identity"),
            ("User-Agent", "tidegate"),
        ]
        if not rules.max_idle:
            standard.append(("Connection", "close"))
        if request.body is not None or request.verb in ("POST", "PUT", "PATCH"):
            standard.append(("Content-Length", str(len(request.body or b""))))
        names = {name.lower() for name, _ in given}
        lines = [("Host", host or target.origin.partition("://")[2]), *given]
        lines += [each for each in standard if each[0].lower() not in names]
        if not (
            _TOKEN.fullmatch(request.verb)
            and all(_TOKEN.fullmatch(name) and _VALUE.fullmatch(value) for name, value in lines)
        ):
            raise self.fail(Code.HOST_REFUSED, "is not asked: a header is not valid in HTTP")
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        text = "".join(f"{name}: {value}\r\n" for name, value in lines)
        head = f"{request.verb} {path} HTTP/1.1\r\n{text}\r\n"
        return head.encode("latin-1") + (request.body or b"")

    async def _read(self, reader: asyncio.StreamReader, sink: Sink | None) -> None:
        from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

        rules, seen, size, announced = self._rules, 0, 0, 0
        parser: Any = HttpResponseParser(self)
        self._parser = parser
        while not self._is_complete:
            data = await self._next(reader)
            if not data:
                if self.is_headed and not {"content-length", "transfer-encoding"} & {
                    *self._headers
                }:
                    return  # a reply without a length ends with the connection
                raise self._cut_off(None, size, announced)
            self.began = True
            seen += len(data)
            fresh = len(self._parts)
            try:
                parser.feed_data(data)
            except (HttpParserError, HttpParserUpgrade):
                self.keeps_alive = False
                if not (self._is_complete or (self.is_headed and not rules.reads_body)):
                    raise self.fail(Code.PROVIDER_REPLY, "does not speak HTTP") from None
            if max(self._head_bytes, 0 if self.is_headed else seen) > rules.max_head_bytes:
                what = f"sent a head of more than {rules.max_head_bytes:,} bytes"
                raise self.fail(Code.PROVIDER_TOO_LARGE, what)
            if self.is_headed and (self.verb == "HEAD" or not rules.reads_body):
                return  # it has no body, or none is wanted
            size += sum(map(len, self._parts[fresh:]))
            announced = int(self._headers.get("content-length") or 0)
            if max(announced, size, seen - rules.max_head_bytes) > rules.max_bytes:
                raise self._too_large()
            if sink is not None:
                parts, self._parts = self._parts, []
                for part in parts if self._status == 200 else ():
                    sink(part)

    async def _next(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self._rules.silent_s):
                return await reader.read(CHUNK)
        except TimeoutError:
            silent_s = self._rules.silent_s or self._rules.total_s
            raise self.fail(Code.PROVIDER_TIMEOUT, f"said nothing for {silent_s:g} s") from None
        except OSError as error:
            raise self._cut_off(error) from None

    def on_message_begin(self) -> None:
        if self._is_complete:  # a reply to no request
            self.keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        if not self.is_headed:  # else of a trailer, or after the reply
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        if not self._is_complete:
            self._status = int(self._parser.get_status_code())
            self.is_headed = self._status >= 200
            if not self.is_headed:  # such as 100 Continue, after which the reply comes
                self._headers = {}

    def on_body(self, body: bytes) -> None:
        if not self._is_complete and self._rules.reads_body:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self.is_headed and not self._is_complete:
            self._is_complete = True
            self.keeps_alive = bool(self._parser.should_keep_alive())  # afterwards it is false

    async def _unpack(self, body: bytes, coding: str) -> bytes:
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise self.fail(Code.PROVIDER_REPLY, f"packs its reply as {coding[:40]}")
        try:
            return await unpack(body, self._rules.max_bytes)
        except TooLarge:
            raise self._too_large() from None
        except (zlib.error, EOFError):
            raise self.fail(Code.PROVIDER_REPLY, "packed its reply wrongly") from None

    def _too_large(self) -> RequestFailed:
        what = f"sent more than {self._rules.max_bytes:,} bytes"
        return self.fail(Code.PROVIDER_TOO_LARGE, what)

    def _cut_off(self, error: OSError | None, size: int = 0, announced: int = 0) -> RequestFailed:
        what = "closed the connection before its reply was whole"
        if error is not None:
            what = f"closed the connection: {reason_of(error)}"
        elif announced:
            what = f"closed the connection after {size:,} of {announced:,} bytes of its reply"
        return self.fail(Code.PROVIDER_CUT_OFF, what)
