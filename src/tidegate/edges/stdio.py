"""MCP over stdio: one JSON message a line, both ways, and nothing else on stdout.

Source: specification, `basic/transports/stdio`. Frames are served concurrently; replies leave in
the order in which they are ready. At the end of the input running calls are given time to answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import BinaryIO

from tidegate.edges.line_io import LINE_LIMIT, Lines, Output, feed
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol.jsonrpc import NO_ID, error_frame
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import INVALID_REQUEST
from tidegate.protocol.session import Session
from tidegate.protocol.transport import Answer, TransportContext

HASTE_S = 1.0
"""How long calls may take to answer once there is no grace left, and again once cancelled."""


class StdioClient(Lines):
    """The one client at a pair of pipes."""

    def __init__(
        self,
        kernel: Kernel,
        actor: Actor,
        write: Callable[[bytes], None],
        *,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        super().__init__(line_limit)
        self.actor = actor
        self._kernel = kernel
        self._write = write
        self._session = Session(actor)
        self._session.attach(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[Cancellation] = set()
        """Of all that is served, also of calls that got their reply and go on."""

    def send(self, message: bytes) -> None:
        """Write one message (`session.MessageSender`)."""
        self._write(message + b"\n")

    @property
    def open(self) -> bool:
        return True

    def stop(self) -> None:
        """Does nothing: the output is the client's until the process ends."""

    async def finish(
        self, hurry: asyncio.Future[bool], grace_s: float, drained: Awaitable[None]
    ) -> None:
        """Let running calls answer for `grace_s` seconds, and their client read that (`drained`),
        less once `hurry` is done; then cancel those that are left."""
        clock = asyncio.get_running_loop().time
        until = clock() + grace_s
        self._kernel.end_listening()
        if self._tasks and not hurry.done():
            answered = asyncio.ensure_future(asyncio.wait(self._tasks))
            await asyncio.wait(
                {answered, hurry}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
            )
            answered.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HASTE_S)
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * HASTE_S)
        read = asyncio.ensure_future(drained)
        left = max(HASTE_S, until - clock())
        await asyncio.wait({read, hurry}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        read.cancel()

    def cancel(self) -> None:
        """End the session and cancel its calls."""
        self._kernel.close()
        self._session.close()
        for call in list(self._calls):
            call.cancel("the session has ended")

    def on_line(self, line: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_oversized_line(self) -> None:
        limit = f"Invalid Request: a message must be at most {self.line_limit} bytes"
        self.send(error_frame(NO_ID, INVALID_REQUEST, limit))

    async def _serve(self, frame: bytes) -> None:
        call = Cancellation()
        transport = TransportContext(
            self.actor,
            self,
            session=self._session,
            cancellation=call,
            early=self._answer,
        )
        self._calls.add(call)
        try:
            answer = await self._kernel.serve(frame, transport)
        finally:
            self._calls.discard(call)
        if answer is not None:
            self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        self.send(answer.frame)


class StdioEdge:
    """Serves a kernel on stdin and stdout, or on the pipes that are given (`edges.edge.Edge`)."""

    name = "stdio"
    listens = False

    def __init__(
        self,
        kernel: Kernel,
        actor: Actor,
        *,
        stdin: BinaryIO | None = None,
        stdout: BinaryIO | None = None,
    ) -> None:
        self._kernel = kernel
        self._actor = actor
        self._stdin = stdin
        self._stdout = stdout
        self._client: StdioClient | None = None
        self._output: Output | None = None
        self._transport: asyncio.ReadTransport | None = None

    @property
    def sessions(self) -> StdioEdge:
        """This edge owns the one session that it has."""
        return self

    async def start(self) -> None:
        """Read from now on."""
        self._output = Output((self._stdout or sys.stdout.buffer).fileno())
        self._client = StdioClient(self._kernel, self._actor, self._output.write)
        self._transport = await feed(self._client, self._stdin or sys.stdin.buffer)
        self._output.hold_back(self._transport)

    async def wait_ended(self) -> None:
        """Return at the end of the input, or when nothing that is written is read any more."""
        if self._client is not None and self._output is not None:
            await _first([self._client.ended, asyncio.ensure_future(self._output.reader_closed())])

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Let running calls answer for `grace_s` seconds, less once `hurry` is set or the client
        reads no more. Safe to call twice."""
        client, self._client = self._client, None
        if client is None or self._output is None:
            return
        if self._transport is not None:
            self._transport.close()
        client.end()
        waiting = [asyncio.ensure_future(self._output.reader_closed())]
        if hurry is not None:
            waiting.append(asyncio.ensure_future(_until(hurry)))
        hurried = asyncio.ensure_future(_first(waiting))
        await client.finish(hurried, grace_s, self._output.drained())
        self._output.stop()
        for task in (hurried, *waiting):
            task.cancel()

    # What a session owner does

    def actors(self) -> Iterator[Actor]:
        """The client, while it is connected."""
        if self._client is not None:
            yield self._actor

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End the client's session, if it is one of these."""
        if self._client is not None and self._actor.id in ids:
            self._client.cancel()

    def end_expired(self, now: float, reason: str) -> None:
        """Does nothing: a client at stdio has no token that could expire."""


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _first(waiting: Collection[asyncio.Future[None]]) -> bool:
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    return True
