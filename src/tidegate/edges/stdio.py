"""MCP over stdio: one JSON message a line, both ways, and nothing else on stdout.

Source: specification, `basic/transports/stdio`. Frames are served concurrently, replies leave in
the order they are ready. At the end of input running calls are given time to answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from tidegate.actors import Actor
from tidegate.cancellation import Cancellation
from tidegate.edges.pipes import LINE_LIMIT, Lines, Output, feed
from tidegate.protocol.frames import NO_ID, error_frame
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.link import Link
from tidegate.protocol.model import INVALID_REQUEST
from tidegate.protocol.session import Session

GRACE_S = 10.0
HASTE_S = 1.0


class StdioEdge(Lines):
    """Serves one client on a pair of pipes."""

    def __init__(
        self,
        kernel: Kernel,
        actor: Actor,
        write: Callable[[bytes], None],
        *,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        super().__init__(line_limit)
        self._kernel = kernel
        self._actor = actor
        self._write = write
        self._session = Session(actor)
        self._session.attach(self)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, message: bytes) -> None:
        """Write one message (`session.Outlet`)."""
        self._write(message + b"\n")

    @property
    def open(self) -> bool:
        return True

    def stop(self) -> None:
        """Nothing to end: the output is the client's until the process ends."""

    async def finish(self, hurry: asyncio.Future[Any], grace_s: float = GRACE_S) -> None:
        """Let running calls answer for `grace_s` seconds, less once `hurry` is done; then
        cancel what is left."""
        self._kernel.end_listening()
        if self._tasks and not hurry.done():
            answered = asyncio.ensure_future(asyncio.wait(self._tasks))
            await asyncio.wait(
                {answered, hurry}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
            )
            answered.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HASTE_S)
        self._kernel.close()
        self._session.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * HASTE_S)

    def take_line(self, line: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def refuse_line(self) -> None:
        limit = f"Invalid Request: a message must be at most {self.line_limit} bytes"
        self.send(error_frame(NO_ID, INVALID_REQUEST, limit))

    async def _serve(self, frame: bytes) -> None:
        link = Link(self._actor, self, session=self._session, cancellation=Cancellation())
        answer = await self._kernel.serve(frame, link)
        if answer is not None:
            self.send(answer.frame)


async def serve(
    kernel: Kernel,
    actor: Actor,
    *,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until the end of input or until `stop` is set."""
    output = Output((stdout or sys.stdout.buffer).fileno())
    edge = StdioEdge(kernel, actor, output.write)
    transport = await feed(edge, stdin or sys.stdin.buffer)
    stopped = asyncio.ensure_future((stop or asyncio.Event()).wait())
    await asyncio.wait([edge.ended, stopped], return_when=asyncio.FIRST_COMPLETED)
    deserted = asyncio.ensure_future(output.deserted())
    hurry = asyncio.ensure_future(
        asyncio.wait([stopped, deserted], return_when=asyncio.FIRST_COMPLETED)
    )
    await edge.finish(hurry)
    for waiting in (hurry, stopped, deserted):
        waiting.cancel()
    if transport is not None:
        transport.close()
