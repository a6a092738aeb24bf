"""A TCP server in the event loop of a test, of which nothing is left at its end.

A connection that is still being answered when a test ends leaves a task or a transport to the
garbage collector, whose warning then fails another test. So every answer is a task that is kept,
and closing the server ends and awaits all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LoopServer:
    """Answers each connection with `answer`, and closes the connection behind it.

    A client that has gone is no fault; any other exception of an answer is raised by `close`.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._faults: list[BaseException] = []
        self.port = 0

    async def start(self, host: str = "127.0.0.1") -> None:
        self._server = await asyncio.start_server(self._accept, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no longer, and reset what is still being answered."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        while self._answering:
            for task in self._answering:
                task.cancel()
            await asyncio.wait(self._answering)
        for fault in self._faults:
            raise fault

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:  # accepted while it was being closed
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._answering.add(task)
        task.add_done_callback(self._end)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                await self._answer(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        except asyncio.CancelledError:  # also for a client that does not read what was written
            writer.transport.abort()
            raise

    def _end(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._faults.append(fault)


@asynccontextmanager
async def loop_server(answer: Answer, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """Such a server within a block; gives its port."""
    server = LoopServer(answer)
    await server.start(host)
    try:
        yield server.port
    finally:
        await server.close()
