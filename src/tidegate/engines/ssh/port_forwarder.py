"""Forwards a loopback port to a tunnel, for processes of our own user on this machine only.

Drivers connect to a port, because TLS with the database's own name is possible there and not on a
Unix socket. Every user of the machine can connect to a loopback port, so the owner of each
connection is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from tidegate.errors import TidegateError
from tidegate.system.descriptors import is_own_connection

CHUNK_BYTES = 262_144
LOOPBACK = "127.0.0.1"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class PortForwarder:
    """A loopback port, forwarded to the streams that `dial` opens. Used on the event loop only."""

    def __init__(self, dial: Callable[[], Awaitable[Streams]]) -> None:
        self._dial = dial
        self._server: asyncio.Server | None = None
        self._carried: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> None:
        """Listen. Raises: OSError."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=CHUNK_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def drop(self) -> None:
        """Close every connection, except that of the current task."""
        carried = self._carried - {asyncio.current_task()}
        for task in carried:
            task.cancel()
        if carried:
            await asyncio.wait(carried)

    async def close(self) -> None:
        """Stop listening and close every connection. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.drop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._carried.add(task)

        def end(_: asyncio.Task[None]) -> None:
            self._carried.discard(task)
            writer.close()  # a task that is cancelled before it begins does not do it

        task.add_done_callback(end)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            if not is_own_connection(writer.get_extra_info("peername")[1], self.port):
                return
            back, onward = await self._dial()
            writers.append(onward)
            await _first(_pass(reader, onward), _pass(back, writer))
        except asyncio.CancelledError:
            for each in writers:
                each.transport.abort()
            raise
        except (OSError, TidegateError):
            pass  # the client sees its connection end
        finally:
            for each in writers:
                each.close()  # what was written is still sent


async def _first(*works: Coroutine[Any, Any, None]) -> None:
    """Do the works until one of them has come to its end."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
