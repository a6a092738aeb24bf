"""The gate's end of one worker process: starts it, asks it, and ends it by force if need be.

A worker sees none of our environment but what a Python program needs, so no secret of ours.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar, cast

import msgspec

from tidegate.engines.worker.frames import (
    HEADER,
    INTERRUPT,
    MOST_BYTES,
    WorkerReply,
    WorkerRequest,
    frame,
    pack,
    unpack,
)
from tidegate.errors import Code, TidegateError

ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TMPDIR", "TEMP", "TMP"),
)

SPARE_BYTES = 65_536
"""What stands in a frame beside its body."""

START_S = 20.0
"""How long a process may take until it answers."""

CLOSE = "close"
"""The verb that ends the statement of a worker, if one is open."""

Body = TypeVar("Body")

_decode = msgspec.msgpack.Decoder(WorkerReply).decode


class WorkerProcess(asyncio.SubprocessProtocol):
    """One process, which answers one request at a time (`pool.PooledConnection`)."""

    late_s: ClassVar[float] = 0.0
    grace_s: ClassVar[float] = 0.7

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport
        self._inbox = bytearray()
        self._awaited = 0
        self._pending: asyncio.Future[msgspec.Raw] | None = None
        self._number = 0
        self._verb = ""
        self._clear = True
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._gone = False

    @classmethod
    async def start(cls, module: str, setup: Any) -> WorkerProcess:
        """Start `python -m module`, away from the working directory's modules, and set it up.

        Raises: TidegateError SOURCE_UNREACHABLE if the process does not start or answer.
        """
        command = (sys.executable, "-P", "-m", module)
        return await cls.start_command(command, setup, f"Run `python -m {module}` to see why.")

    @classmethod
    async def start_command(
        cls,
        command: Sequence[str],
        setup: Any,
        hint: str,
        environment_names: Sequence[str] = (),
    ) -> WorkerProcess:
        """Start any program that speaks the frames of `frames.py` on its stdin and stdout, such as
        a JVM, and send it `setup`. It gets `ENVIRONMENT` and the variables named beside it.

        Raises: TidegateError SOURCE_UNREACHABLE, with `hint` if the process does not answer.
        """
        worker = cls()
        names = (*ENVIRONMENT, *environment_names)
        environment = {name: os.environ[name] for name in names if name in os.environ}
        try:
            await worker._loop.subprocess_exec(
                lambda: worker,
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "No process could be started for the database driver.",
                hint="Check the limits on processes and memory.",
            ) from error
        try:
            await asyncio.wait_for(worker.send("setup", setup), START_S)
        except BaseException as error:
            worker.close()
            if not isinstance(error, (TidegateError, TimeoutError)):
                raise
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "The process of the database driver did not start.",
                hint=hint,
            ) from error
        return worker

    @property
    def alive(self) -> bool:
        """Whether it can be asked: it has not ended, and is not about to."""
        return not self._gone

    @property
    def busy(self) -> bool:
        """Whether it is answering."""
        return self._pending is not None

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def gone(self) -> bool:
        return self._ended.done()

    def check(self) -> bool:
        """Whether it lives, after a look at the process itself: the event loop may not know yet."""
        if not self._gone and hasattr(os, "waitid"):
            try:  # without collecting it, which is for the event loop's watcher
                self._gone = os.waitid(os.P_PID, self.pid, _EXITED) is not None
            except ChildProcessError:
                self._gone = True
        return not self._gone

    async def ask(self, verb: str, body: Any, kind: type[Body]) -> Body:
        """Have the worker answer. Raises: TidegateError of the worker, or SOURCE_UNREACHABLE if it
        ended; SQL_UNREADABLE, ARGUMENT_INVALID for a body that cannot be sent."""
        try:
            pending = self.send(verb, body)
        except (UnicodeEncodeError, TypeError) as error:
            raise _unsendable(error) from error
        try:
            raw = await asyncio.shield(pending)
        except asyncio.CancelledError:
            pending.add_done_callback(_retrieve)
            raise
        return unpack(raw, kind)

    def send(self, verb: str, body: Any = None) -> asyncio.Future[msgspec.Raw]:
        """Ask; the future has the packed answer, or the TidegateError.

        Raises: UnicodeEncodeError, TypeError if the body cannot be packed.
        """
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        if self._pending is not None:
            raise RuntimeError("a worker answers one request at a time")
        if not self.alive:
            future.set_exception(lost())
            return future
        request = WorkerRequest(self._number + 1, verb, pack(body))
        self._number += 1
        self._verb = verb
        self._pending = future
        self._write(request)
        return future

    async def interrupt(self, cause: str) -> None:
        """Have it end what it is answering; nothing if it is idle, or about to be."""
        if self._pending is not None and self.alive and self._verb != CLOSE:
            self._write(WorkerRequest(self._number, INTERRUPT))

    def settle_now(self) -> bool:
        return self._pending is None

    async def settle(self) -> None:
        """Wait for the answer that is due, and have the worker close its statement."""
        while self._pending is not None:
            pending = self._pending
            await asyncio.wait((pending,))
            _retrieve(pending)
        if not self._clear:
            closing = self.send(CLOSE)
            closing.add_done_callback(_retrieve)
            await asyncio.shield(closing)

    async def reset(self) -> None:
        await self.settle()

    def close(self) -> None:
        """End the process by force, whatever it is doing."""
        self._gone = True
        if self._ended.done():
            return
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                self._transport.kill()
            else:
                # Not by the transport: it would collect the process before its watcher does.
                os.kill(self.pid, signal.SIGKILL)

    async def closed(self) -> None:
        await asyncio.shield(self._ended)

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

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
            self._take(_decode(content))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._gone = True  # it is about to end

    def process_exited(self) -> None:
        self._gone = True
        self._transport.close()
        if not self._ended.done():
            self._ended.set_result(None)
        pending, self._pending = self._pending, None
        if pending is not None and not pending.done():
            pending.set_exception(lost())

    def _take(self, reply: WorkerReply) -> None:
        pending = self._pending
        if pending is None or reply.number != self._number:
            return
        self._pending = None
        # A worker closes its statement when it fails.
        self._clear = self._verb == CLOSE or reply.fault is not None
        if pending.done():
            return
        if reply.fault is not None:
            pending.set_exception(reply.fault.error())
        else:
            pending.set_result(reply.body)

    def _write(self, request: WorkerRequest) -> None:
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        pipe.write(frame(request))


_EXITED = getattr(os, "WEXITED", 0) | getattr(os, "WNOHANG", 0) | getattr(os, "WNOWAIT", 0)


def _retrieve(answer: asyncio.Future[Any]) -> None:
    """Consume the error of an answer that no task waits for any more."""
    if not answer.cancelled():
        answer.exception()


def _unsendable(error: Exception) -> TidegateError:
    if isinstance(error, UnicodeEncodeError):
        return TidegateError(
            Code.SQL_UNREADABLE, "The statement or a value holds a lone surrogate."
        )
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "A parameter has a type that cannot be sent.",
        hint="Send null, true, false, numbers or text.",
    )


def lost() -> TidegateError:
    """The error of a statement whose worker died under it."""
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The process of the database driver ended while it ran the statement.",
        hint="Nothing was run again. Look whether a change took effect, then retry.",
    )
