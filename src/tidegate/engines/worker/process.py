"""The gate's end of one worker process in Python, which answers one request at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from tidegate.engines.worker.framed_process import (
    START_S,
    FramedProcess,
    lost,
    retrieve,
    unsendable,
)
from tidegate.engines.worker.frames import (
    INTERRUPT,
    WorkerReply,
    WorkerRequest,
    frame,
    pack,
    unpack,
)
from tidegate.errors import Code, TidegateError
from tidegate.typed_values import msgpack_decoder

ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TMPDIR", "TEMP", "TMP"),
)

CLOSE = "close"
"""The verb that ends the statement of a worker, if one is open."""

Body = TypeVar("Body")

_decode = msgpack_decoder(WorkerReply).decode


class WorkerProcess(FramedProcess):
    """One process, which answers one request at a time (`pool.PooledConnection`)."""

    late_s: ClassVar[float] = 0.0
    grace_s: ClassVar[float] = 0.7

    def __init__(self) -> None:
        super().__init__()
        self._pending: asyncio.Future[msgspec.Raw] | None = None
        self._number = 0
        self._verb = ""
        self._clear = True

    @classmethod
    async def start(cls, module: str, setup: Any) -> Self:
        """Start `python -m module`, away from the working directory's modules, and set it up.

        Raises: TidegateError SOURCE_UNREACHABLE if the process does not start or answer.
        """
        command = (sys.executable, "-P", "-m", module)
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        worker = await cls.launch(command, environment)
        try:
            await asyncio.wait_for(worker.send("setup", setup), START_S)
        except BaseException as error:
            worker.close()
            await worker.closed()
            if not isinstance(error, (TidegateError, TimeoutError)):
                raise
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "The process of the database driver did not start.",
                hint=f"Run `python -m {module}` to see why.",
            ) from error
        return worker

    @property
    def busy(self) -> bool:
        """Whether it is answering."""
        return self._pending is not None

    async def ask(self, verb: str, body: Any, kind: type[Body]) -> Body:
        """Have the worker answer. Raises: TidegateError of the worker, or SOURCE_UNREACHABLE if it
        ended; SQL_UNREADABLE, ARGUMENT_INVALID for a body that cannot be sent."""
        try:
            pending = self.send(verb, body)
        except (UnicodeEncodeError, TypeError) as error:
            raise unsendable(error) from error
        try:
            raw = await asyncio.shield(pending)
        except asyncio.CancelledError:
            pending.add_done_callback(retrieve)
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
        self.write(frame(request))
        return future

    async def interrupt(self, cause: str) -> None:
        """Have it end what it is answering; nothing if it is idle, or about to be."""
        if self._pending is not None and self.alive and self._verb != CLOSE:
            self.write(frame(WorkerRequest(self._number, INTERRUPT)))

    def settle_now(self) -> bool:
        return self._pending is None

    async def settle(self) -> None:
        """Wait for the answer that is due, and have the worker close its statement."""
        while self._pending is not None:
            pending = self._pending
            await asyncio.wait((pending,))
            retrieve(pending)
        if not self._clear:
            closing = self.send(CLOSE)
            closing.add_done_callback(retrieve)
            await asyncio.shield(closing)

    async def reset(self) -> None:
        await self.settle()

    def take_frame(self, content: bytes) -> None:
        reply = _decode(content)
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

    def fail_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and not pending.done():
            pending.set_exception(lost())
