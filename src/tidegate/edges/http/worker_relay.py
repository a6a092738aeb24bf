"""Requests that a worker passes on to the one that has what they are about.

Pages of people keep rows and streams in their process, and a browser has several connections, which
come to any worker: the first worker has the pages. Some surfaces keep what a caller has chosen or
opened, as a database that later calls go to: each of their callers has a worker. All other calls
are answered where they come. The way is a socket in a folder of this account alone, so what the
other worker says of the client's address is true.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from contextlib import suppress
from typing import NamedTuple

from tidegate.edges.http.endpoint import JsonConventions
from tidegate.edges.http.request_body import read_body
from tidegate.edges.http.responses import HttpRefusal, reply
from tidegate.edges.http1.request import Application, IncomingRequest, block_of
from tidegate.edges.http1.server import Server
from tidegate.errors import Code, TidegateError

ADDRESS = b"x-tidegate-client"
"""The header with the address of the connection that the request came on."""
MOST_BODY = 16 * 1024 * 1024
MOST_HEAD = 131_072
BACKLOG = 256
PART_BYTES = 65_536
_OWN = frozenset({b"connection", b"content-length", b"transfer-encoding", b"expect", b"date"})
"""Headers that each connection has for itself."""
_PAGES = JsonConventions()


class WorkerWay(NamedTuple):
    """The sockets of the workers in `folder`, of which this is `number` of `workers`."""

    folder: str
    number: int
    workers: int
    listener: socket.socket

    def owner_of(self, actor: str) -> int:
        """The number of the worker that keeps what an actor has chosen or opened."""
        return zlib.crc32(actor.encode()) % self.workers + 1

    async def pass_on(self, request: IncomingRequest, number: int) -> None:
        """Have that worker answer a request. Raises: HttpRefusal 400, 413, 502, 503."""
        await _pass_on(request, f"{self.folder}/{number}")


class RelayServer:
    """Answers what other workers pass on (`edges.edge.Companion`)."""

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
    """An application around another one, which passes the requests below `paths` on to the first
    worker."""

    def __init__(self, application: Application, way: WorkerWay, paths: tuple[str, ...]) -> None:
        self._application = application
        self._way = way
        self._paths = paths

    async def __call__(self, request: IncomingRequest) -> None:
        path = request.head.path
        for each in self._paths:
            if path == each or path.startswith(f"{each}/"):
                try:
                    await self._way.pass_on(request, 1)
                except HttpRefusal as refusal:
                    reply(request, _PAGES.refuse(refusal), b"", close=refusal.close)
                return
        await self._application(request)


async def _pass_on(request: IncomingRequest, place: str) -> None:
    body = await read_body(request, MOST_BODY)
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer = await asyncio.open_unix_connection(place, limit=MOST_HEAD)
        request.when_gone(writer.close)
        writer.write(_request_of(request, body))
        await _answer(request, reader)
    except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
        if request.begun:
            request.abort()  # a cut answer must not look like a whole one
        elif writer is not None and request.head.method == "POST":
            raise _PAGES.refusal_of(_lost()) from None
        else:
            raise _PAGES.refusal_of(_unavailable()) from None
    finally:
        request.when_gone(None)
        if writer is not None:
            writer.close()


def _unavailable() -> TidegateError:
    text = "A worker of this gate is being started again"
    hint = "Try again in a moment."
    return TidegateError(Code.SERVER_STOPPING, text, hint=hint, retry_after_s=1.0)


def _lost() -> TidegateError:
    """Of a worker that was sent a request, and may have run it."""
    text = "The worker of this gate that had the request has ended. Whether it ran is not known"
    return TidegateError(Code.BRIDGE_OUTCOME, text)


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
