"""A child process that speaks frames on its pipes: how it is started, read, and ended by force.

`process.py` (a worker in Python, one request at a time) and a product's own, such as that of the
JVM (many at once), say what the frames mean. A child sees only the part of our environment that it
is given by name, so no secret of ours.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, cast

from tidegate.engines.common.errors import PROCESS
from tidegate.engines.worker.frames import HEADER, MOST_BYTES
from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import widen_pipe
from tidegate.system.processes import APART, has_ended, kill

SPARE_BYTES = 65_536
"""What a frame may have in addition to its body."""

PIPE_BYTES = 262_144
"""What the event loop reads at once."""

START_S = 20.0
"""How long a process may take until it answers."""


class FramedProcess(asyncio.SubprocessProtocol):
    """One process. A subclass says what is done with a frame, and which callers wait for an
    answer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport
        self._inbox = bytearray()
        self._awaited = 0
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._gone = False

    @classmethod
    async def launch(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None = None,
    ) -> Self:
        """Start a program in `directory`, or where we are. It may not answer yet.

        Raises: TidegateError SOURCE_UNREACHABLE if it cannot be started.
        """
        process = cls()
        starting = asyncio.ensure_future(
            process._loop.subprocess_exec(
                lambda: process,
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=directory,
                **APART,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Cancelled before its pipes are connected, asyncio's own call would wait for ever.
            with suppress(OSError):
                await starting
                process.close()
                await process.closed()
            raise
        except OSError as error:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "No process could be started for the database driver.",
                hint="Check the limits on processes and memory.",
            ) from error
        return process

    @property
    def alive(self) -> bool:
        """Whether it can be asked: it has not ended, and is not about to."""
        return not self._gone

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def gone(self) -> bool:
        return self._ended.done()

    def check(self) -> bool:
        """Whether it lives, after a check of the process itself: the event loop may not know
        yet."""
        self._gone = self._gone or has_ended(self.pid)
        return not self._gone

    def close(self) -> None:
        """End the process by force, whatever it is doing."""
        self._gone = True
        if self._ended.done():
            return
        kill(self.pid)  # not by the transport: it would collect the process before its watcher does

    async def closed(self) -> None:
        await asyncio.shield(self._ended)

    def take_frame(self, content: bytes) -> None:
        """A frame has come. Raises nothing."""
        raise NotImplementedError

    def fail_pending(self) -> None:
        """The process has ended: those that wait for an answer get an error."""
        raise NotImplementedError

    def write(self, content: bytes) -> None:
        """Send a frame, which has its length before it."""
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        pipe.write(content)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        _widen(self._transport.get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._inbox += data
        while len(self._inbox) >= HEADER.size:
            if not self._awaited:
                (size,) = HEADER.unpack_from(self._inbox)
                if size > MOST_BYTES + SPARE_BYTES:
                    self._inbox.clear()
                    self.close()
                    return
                self._awaited = HEADER.size + size
            if len(self._inbox) < self._awaited:
                return
            content = bytes(memoryview(self._inbox)[HEADER.size : self._awaited])
            del self._inbox[: self._awaited]
            self._awaited = 0
            self.take_frame(content)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._gone = True  # it is about to end

    def process_exited(self) -> None:
        self._gone = True
        self._transport.close()
        if not self._ended.done():
            self._ended.set_result(None)
        self.fail_pending()


def _widen(pipe: asyncio.BaseTransport | None) -> None:
    """Have a pipe take as much as one read of the event loop does: rows come in large frames.

    uvloop has pairs of sockets instead, which take enough, and names no file.
    """
    file = None if pipe is None else pipe.get_extra_info("pipe")
    if file is not None:
        widen_pipe(file.fileno(), PIPE_BYTES)


def lost() -> TidegateError:
    """The error of a statement whose process died under it."""
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The process of the database driver ended while it ran the statement.",
        hint="Nothing was run again. Look whether a change took effect, then retry.",
        details={"cause": PROCESS},
    )


def retrieve(answer: asyncio.Future[Any]) -> None:
    """Consume the error of an answer that no task waits for any more."""
    if not answer.cancelled():
        answer.exception()


def unsendable(error: Exception) -> TidegateError:
    """The error of a body that cannot be packed."""
    if isinstance(error, UnicodeEncodeError):
        return TidegateError(
            Code.SQL_UNREADABLE, "The statement or a value holds a lone surrogate."
        )
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "A parameter has a type that cannot be sent.",
        hint="Send null, true, false, numbers or text.",
    )
