"""Sends requests to providers over HTTP/1.1: connections are kept, replies bounded.

Redirects are not followed: they could carry a credential to another host. No proxy is used.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.hosts import Destination
from tidegate.products.cloud.http.requests import ApiRequest

MOST_BYTES: Final = 268_435_456
"""Of one reply, also when it is unpacked."""
_CHUNK: Final = 262_144
_QUICKLY_UNPACKED: Final = 16_384
"""A packed body of so many bytes holds at most a thousand times as much: the event loop may unpack
it. A larger one is unpacked in a thread."""
_KEPT_UNCOUNTED: Final = 33_554_432
"""Bytes of an unpacked reply that are kept before it is known how many there are."""
_MOST_IDLE: Final = 32
"""Connections to one address that are kept for later requests."""


class HttpResponse(NamedTuple):
    """A reply. Names of headers are in lower case; of one that comes twice the values have a comma
    between them."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    """As it was asked for, without the query."""


class RequestFailed(TidegateError):
    """No reply came. `was_sent`: the provider may have acted on the request nevertheless."""

    def __init__(self, code: Code, message: str, *, was_sent: bool) -> None:
        super().__init__(code, message)
        self.was_sent = was_sent


class _Address(NamedTuple):
    is_secure: bool
    host: str
    port: int


CheckAddresses = Callable[[str, int, list[str]], None]
"""Refuses a host by the addresses that its name gives."""
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpClient:
    """Connections to the providers of one source. `ca_file` has further authorities to trust."""

    def __init__(self, ca_file: str | None = None) -> None:
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[_Address, list[_Connection]] = {}

    async def send(
        self,
        request: ApiRequest,
        destination: Destination,
        timeout_s: float,
        check_addresses: CheckAddresses,
    ) -> HttpResponse:
        """The reply to one attempt. A request that may change something gets a connection of its
        own, so that one which the server has just closed leaves no doubt. `check_addresses` sees
        what the host's name gives before a connection is made.

        Raises: RequestFailed PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_CUT_OFF,
        PROVIDER_TOO_LARGE, PROVIDER_REPLY; TidegateError, what `check_addresses` raises.
        """
        target = urlsplit(destination.url)
        is_secure = target.scheme == "https"
        port = target.port or (443 if is_secure else 80)
        address = _Address(is_secure, target.hostname or "", port)
        host = destination.host_header
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        reads = request.verb in ("GET", "HEAD")
        exchange = _Exchange(request, host, path)
        try:
            async with asyncio.timeout(timeout_s):
                while reads and (kept := self._take(address)) is not None:
                    try:
                        return await self._exchange(address, kept, exchange)
                    except (OSError, _Closed):
                        if exchange.began:
                            raise
                        # It was closed while nothing was sent over it: the next one is tried.
                connection = await self._connect(address, check_addresses)
                return await self._exchange(address, connection, exchange)
        except TimeoutError:
            raise RequestFailed(
                Code.PROVIDER_TIMEOUT,
                f"{host} did not answer within {timeout_s:g} s.",
                was_sent=exchange.was_sent,
            ) from None
        except _Closed:
            raise RequestFailed(
                Code.PROVIDER_CUT_OFF,
                f"{host} closed the connection before its reply was whole.",
                was_sent=True,
            ) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            code = Code.PROVIDER_CUT_OFF if exchange.was_sent else Code.PROVIDER_UNREACHABLE
            place = f"{address.host}:{address.port}"
            name = host.lower().partition(":")[0]
            raise RequestFailed(
                code,
                f"{place if name == address.host else f'{host} at {place}'}: {reason}.",
                was_sent=exchange.was_sent,
            ) from None

    async def close(self) -> None:
        """End the connections that are kept."""
        for connections in self._idle.values():
            for _, writer in connections:
                writer.close()
        self._idle.clear()

    def _take(self, address: _Address) -> _Connection | None:
        kept = self._idle.get(address)
        while kept:
            reader, writer = kept.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    async def _connect(self, address: _Address, check: CheckAddresses) -> _Connection:
        """Connect to one of the addresses that were checked: another look-up may give others."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        check(address.host, address.port, addresses)
        if address.is_secure and self._tls is None:
            self._tls = _tls(self._ca_file)
        tls = self._tls if address.is_secure else None
        failure: OSError | None = None
        for each in addresses:
            try:
                return await asyncio.open_connection(
                    each,
                    address.port,
                    ssl=tls,
                    server_hostname=address.host if tls else None,
                    limit=2 * _CHUNK,
                )
            except OSError as error:
                failure = error
        raise failure or OSError("its name gives no address")

    async def _exchange(
        self, address: _Address, connection: _Connection, exchange: _Exchange
    ) -> HttpResponse:
        reader, writer = connection
        is_kept = False
        try:
            writer.write(exchange.head)
            exchange.was_sent = True
            await writer.drain()
            response = await exchange.read(reader)
            kept = self._idle.setdefault(address, [])
            is_kept = exchange.keeps_alive and len(kept) < _MOST_IDLE
            if is_kept:
                kept.append(connection)
            return response
        finally:
            if not is_kept:
                writer.close()


class _Closed(Exception):
    """The connection ended before the reply did."""


class _Exchange:
    """One request on the wire, and what comes back."""

    def __init__(self, request: ApiRequest, host: str, path: str) -> None:
        self._host = host
        self._verb = request.verb
        self._url = request.url.partition("?")[0]
        self.head = _written(request, host, path)
        self.was_sent = False
        self.began = False
        """Whether a part of the reply has come."""
        self.keeps_alive = False
        self._reset()

    def _reset(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._complete = False
        self._status = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._complete = True

    async def read(self, reader: asyncio.StreamReader) -> HttpResponse:
        """The reply. Raises: _Closed, OSError, RequestFailed."""
        self._reset()
        parser: Any = httptools.HttpResponseParser(self)  # pyright: ignore[reportUnknownMemberType] - it has no types
        while not self._complete:
            data = await reader.read(_CHUNK)
            if not data:
                if (
                    self.began
                    and not {"content-length", "transfer-encoding"} & self._headers.keys()
                ):
                    break  # a reply without a length ends with the connection
                raise _Closed
            self.began = True
            self._size += len(data)
            if self._size > MOST_BYTES:
                raise self._failed(Code.PROVIDER_TOO_LARGE, f"sent more than {MOST_BYTES:,} bytes")
            try:
                parser.feed_data(data)
            except httptools.HttpParserError:
                raise self._failed(Code.PROVIDER_REPLY, "does not speak HTTP") from None
            if self._verb == "HEAD" and self._headers and parser.get_status_code() >= 200:
                break  # it has no body, whatever its length says
            if self._complete and 100 <= parser.get_status_code() < 200:
                self._reset()
        status = int(parser.get_status_code())
        self.keeps_alive = (
            self._complete
            and self._verb != "HEAD"
            and "close" not in self._headers.get("connection", "").lower()
            and bool(parser.should_keep_alive())
        )
        body = b"".join(self._parts)
        coding = self._headers.get("content-encoding", "").lower()
        if body and coding not in ("", "identity"):
            if len(body) > _QUICKLY_UNPACKED:
                body = await asyncio.to_thread(self._unpacked, body, coding)
            else:
                body = self._unpacked(body, coding)
        return HttpResponse(status, self._headers, body, self._url)

    def _unpacked(self, body: bytes, coding: str) -> bytes:
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise self._failed(Code.PROVIDER_REPLY, f"packs its reply as {coding[:40]}")
        parts: list[bytes] = []
        size = 0
        is_counted = False
        steps = _unpacked_steps(body)
        try:
            for part in steps:
                parts.append(part)
                size += len(part)
                if size > _KEPT_UNCOUNTED and not is_counted:
                    # What is too large is refused before it is kept.
                    is_counted = True
                    if _is_too_large(body):
                        raise self._failed(
                            Code.PROVIDER_TOO_LARGE, f"sent more than {MOST_BYTES:,} bytes"
                        )
        except (zlib.error, EOFError):
            raise self._failed(Code.PROVIDER_REPLY, "packed its reply wrongly") from None
        return b"".join(parts)

    def _failed(self, code: Code, what: str) -> RequestFailed:
        return RequestFailed(code, f"{self._host} {what}.", was_sent=True)


def _unpacked_steps(body: bytes) -> Iterator[bytes]:
    """What a packed body holds, in pieces of `_CHUNK` at most. Several members of gzip may stand
    behind one another. Raises: zlib.error; EOFError if its end is missing."""
    while body:
        decoder = zlib.decompressobj(47)  # 32 and 15: the header says whether it is gzip or zlib
        while not decoder.eof:
            part = decoder.decompress(body, _CHUNK)
            body = decoder.unconsumed_tail
            if part:
                yield part
            elif not decoder.eof and not body:
                raise EOFError
        body = decoder.unused_data.lstrip(b"\0")  # some writers fill the last block with zeros


def _is_too_large(body: bytes) -> bool:
    size = 0
    for part in _unpacked_steps(body):
        size += len(part)
        if size > MOST_BYTES:
            return True
    return False


def _written(request: ApiRequest, host: str, path: str) -> bytes:
    given = {name.lower() for name, _ in request.headers}
    headers = [("Host", host), *request.headers]
    for name, value in (
        ("Accept", "*/*"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", "tidegate"),
    ):
        if name.lower() not in given:
            headers.append((name, value))
    if request.body is not None or request.verb in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(request.body or b""))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"{request.verb} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
    return head + (request.body or b"")


def _tls(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError):
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"`cloud.ca_file` is {ca_file}, which holds no certificates that can be read.",
                details={"path": ca_file},
            ) from None
    return context
