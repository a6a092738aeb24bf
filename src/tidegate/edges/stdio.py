"""MCP over stdio: one JSON message a line, both ways, and nothing else on stdout.

Source: specification, `basic/transports/stdio`. Frames are served concurrently, replies leave in
the order they are ready. At the end of input running calls are given time to answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from tidegate.protocol.frames import NO_ID, error_frame
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.link import Link
from tidegate.protocol.model import INVALID_REQUEST
from tidegate.protocol.session import Session
from tidegate.types import Actor, Cancellation

LINE_LIMIT = 10 * 1024 * 1024
GRACE_S = 10.0
HASTE_S = 1.0
LOOK_S = 0.2


class StdioEdge(asyncio.Protocol):
    """Serves one client on a pair of pipes."""

    def __init__(
        self,
        kernel: Kernel,
        actor: Actor,
        write: Callable[[bytes], None],
        *,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        self._kernel = kernel
        self._actor = actor
        self._write = write
        self._line_limit = line_limit
        self._session = Session(actor)
        self._session.attach(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._buffer = bytearray()
        self._skipping = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send(self, message: bytes) -> None:
        """Write one message (`session.Outlet`)."""
        self._write(message + b"\n")

    @property
    def open(self) -> bool:
        return True

    def stop(self) -> None:
        """Nothing to end: the output is the client's until the process ends."""

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            self._buffer += lines[0]
            lines[0] = bytes(self._buffer)
            self._buffer.clear()
            for line in lines:
                self._take(line)
        self._buffer += rest
        if len(self._buffer) > self._line_limit:
            self._buffer.clear()
            if not self._skipping:
                self._refuse_line()
            self._skipping = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def eof_received(self) -> None:
        if self._buffer:
            self._take(bytes(self._buffer))
            self._buffer.clear()
        self.end()

    def end(self) -> None:
        """No more input comes."""
        if not self.ended.done():
            self.ended.set_result(None)

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

    def _take(self, line: bytes) -> None:
        if self._skipping:
            self._skipping = False
            return
        if len(line) > self._line_limit:
            self._refuse_line()
            return
        frame = line.strip()
        if not frame:
            return
        task = asyncio.get_running_loop().create_task(self._serve(frame))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse_line(self) -> None:
        limit = f"Invalid Request: a message must be at most {self._line_limit} bytes"
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
    output = _Output((stdout or sys.stdout.buffer).fileno())
    edge = StdioEdge(kernel, actor, output.write)
    transport = await _read(edge, stdin or sys.stdin.buffer)
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


class _Output:
    """Writes to a file descriptor whole, without ever leaving half a line.

    A pipe that is full makes the event loop wait: the client has stopped reading, and there is
    nobody else on this loop to keep waiting.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._broken = False

    async def deserted(self) -> None:
        """Return when nobody is left who could read, as far as the system tells."""
        import select

        if not hasattr(select, "poll"):
            await asyncio.get_running_loop().create_future()
        poll = select.poll()
        poll.register(self._fd, 0)
        while not any(  # noqa: ASYNC110  nothing tells of it
            seen & (select.POLLERR | select.POLLHUP) for _, seen in poll.poll(0)
        ):
            await asyncio.sleep(LOOK_S)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._broken:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                os.set_blocking(self._fd, True)
            except OSError:
                self._broken = True


async def _read(edge: StdioEdge, stdin: BinaryIO) -> asyncio.ReadTransport | None:
    """Feed the edge from a pipe or, where the loop cannot watch it (a file), from a thread."""
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.connect_read_pipe(lambda: edge, stdin)
    except (ValueError, OSError):
        import threading

        def pump() -> None:
            while data := os.read(stdin.fileno(), 65_536):
                loop.call_soon_threadsafe(edge.data_received, data)
            loop.call_soon_threadsafe(edge.eof_received)

        threading.Thread(target=pump, name="stdin", daemon=True).start()
        return None
    return transport
