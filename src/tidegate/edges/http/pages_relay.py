"""Pages of people at a gate of workers: one worker has them, and the others pass its requests on.

A page keeps rows and streams in its process, and a browser has several connections, which come to
any worker. Calls of MCP never take this way. The way is a socket in a folder of this account alone,
so what the other worker says of the client's address is true.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import NamedTuple

from tidegate.edges.http1.request import (
    Application,
    CutOff,
    IncomingRequest,
    TooLarge,
    block_of,
)
from tidegate.edges.http1.server import Server

ADDRESS = b"x-tidegate-client"
"""The header with the address of the connection that the request came on."""
MOST_BODY = 16 * 1024 * 1024
MOST_HEAD = 131_072
BACKLOG = 256
PART_BYTES = 65_536
_UNAVAILABLE = b'{"error":"The pages of this gate are being started again. Try again in a moment."}'
_OWN = frozenset({b"connection", b"content-length", b"transfer-encoding", b"expect", b"date"})
"""Headers that each connection has for itself."""
_JSON = [(b"content-type", b"application/json"), (b"retry-after", b"1")]


class PagesPlace(NamedTuple):
    """Where the worker that has the pages answers, and its listening socket in that worker."""

    path: str
    listener: socket.socket | None


class PagesServer:
    """In the worker that has the pages: answers what the others pass on
    (`edges.edge.Companion`)."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        self._application = application
        self._listener = listener
        self._accepting: asyncio.Server | None = None

    async def start(self) -> None:
        """Take what other workers pass on."""
        server = Server(self._answer)
        self._accepting = await asyncio.get_running_loop().create_unix_server(
            server.connection, sock=self._listener, backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Take no more. Safe to call twice."""
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.close()

    async def _answer(self, request: IncomingRequest) -> None:
        request.comes_from(request.head.headers.get(ADDRESS, b"").decode("latin-1"))
        await self._application(request)


class PagesRelay:
    """In the other workers: an application around another one, which passes the requests below
    `paths` on to the worker at `place`."""

    def __init__(self, application: Application, place: str, paths: tuple[str, ...]) -> None:
        self._application = application
        self._place = place
        self._paths = paths

    async def __call__(self, request: IncomingRequest) -> None:
        path = request.head.path
        for each in self._paths:
            if path == each or path.startswith(f"{each}/"):
                await self._pass_on(request)
                return
        await self._application(request)

    async def _pass_on(self, request: IncomingRequest) -> None:
        try:
            body = await request.read(MOST_BODY)
        except TooLarge:
            request.respond(413, block_of(_JSON), close=True)
            return
        except CutOff:
            request.respond(400, block_of(_JSON), close=True)
            return
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_unix_connection(self._place, limit=MOST_HEAD)
            request.when_gone(writer.close)
            writer.write(_request_of(request, body))
            await _answer(request, reader)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            if request.begun:
                request.abort()  # a cut answer must not look like a whole one
            else:
                request.respond(503, block_of(_JSON), _UNAVAILABLE)
        finally:
            request.when_gone(None)
            if writer is not None:
                writer.close()


def _request_of(request: IncomingRequest, body: bytes) -> bytes:
    head = request.head
    target = f"{head.raw_path}?{head.query}" if head.query else head.raw_path
    kept = [pair for pair in head.pairs if pair[0] not in _OWN and pair[0] != ADDRESS]
    own = [
        (b"connection", b"close"),
        (b"content-length", str(len(body)).encode()),
        (ADDRESS, request.address.encode()),
    ]
    first = f"{head.method} {target} HTTP/1.1\r\n".encode("latin-1")
    return first + block_of([*kept, *own]) + b"\r\n" + body


async def _answer(request: IncomingRequest, reader: asyncio.StreamReader) -> None:
    """Give the client what the other worker answers. Raises: OSError, EOFError, LimitOverrunError,
    ValueError."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]
    status = int(first.split(b" ", 2)[1])
    pairs = [(name.lower(), value.strip()) for name, _, value in (x.partition(b":") for x in lines)]
    headers = dict(pairs)
    block = block_of([pair for pair in pairs if pair[0] not in _OWN])
    if headers.get(b"transfer-encoding") != b"chunked":
        length = int(headers.get(b"content-length", b"0"))
        has_body = request.head.method != "HEAD" and length
        request.respond(status, block, await reader.readexactly(length) if has_body else b"")
        return
    request.start(block)
    while size := int(await reader.readuntil(b"\r\n"), 16):
        while size and not request.gone:
            part = await reader.readexactly(min(size, PART_BYTES))
            size -= len(part)
            request.push(part)
            await request.room()
        if request.gone:
            return
        await reader.readexactly(2)
    with suppress(asyncio.IncompleteReadError):
        await reader.readexactly(2)
    request.finish()
