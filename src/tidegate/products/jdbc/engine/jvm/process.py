"""The gate's end of one JVM: many connections, each a channel with requests of its own.

The JVM's end is `java/tidegate/Main.java`, which says what the frames are.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tidegate.engines.common.errors import PROCESS
from tidegate.engines.worker.framed_process import (
    START_S,
    FramedProcess,
    lost,
    retrieve,
    unsendable,
)
from tidegate.engines.worker.frames import HEADER
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.jvm.runtime import Runtime
from tidegate.typed_values import decode_msgpack, msgpack_decoder

INTERRUPT = "interrupt"

OUT_OF_MEMORY = 3
"""The exit status of a JVM with `-XX:+ExitOnOutOfMemoryError`."""

MOST_ABANDONED = 8
"""Threads that wait for something which does not come, such as the answer of a host."""

Body = TypeVar("Body")


class JvmFault(msgspec.Struct, frozen=True, array_like=True):
    """What went wrong in the JVM. `code` is `sql` for what a driver or database said, with its
    SQLSTATE and its own number; the others are in `Fault.java`."""

    code: str
    message: str
    state: str | None = None
    number: int = 0


class JvmError(Exception):
    """A fault, before it is known what the gate says of it."""

    def __init__(self, fault: JvmFault) -> None:
        super().__init__(fault.code)
        self.fault = fault


class JvmRequest(msgspec.Struct, frozen=True, array_like=True):
    number: int
    channel: int
    verb: str
    body: Any = None


class JvmReply(msgspec.Struct, frozen=True, array_like=True):
    number: int
    fault: JvmFault | None
    body: msgspec.Raw = msgspec.Raw(b"\xc0")


_encode = msgspec.msgpack.Encoder(decimal_format="string").encode
_decode = msgpack_decoder(JvmReply).decode


class JvmProcess(FramedProcess):
    """One JVM with the drivers of one set of jars. `id` is of this process alone."""

    def __init__(self) -> None:
        super().__init__()
        self.id = str(uuid.uuid4())
        self._pending: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._number = 0
        self._channels = 0
        self._open: set[int] = set()
        self._abandoned = 0
        self._directory: Path | None = None

    @classmethod
    async def start(
        cls,
        runtime: Runtime,
        heap: str,
        time_zone: str,
        options: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> JvmProcess:
        """Start a JVM in a private directory, which is removed when it ends. It gets the
        environment `variables`, and none of ours.

        Raises: TidegateError SOURCE_UNREACHABLE.
        """
        try:
            directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="tidegate-jvm-"))
        except OSError as error:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "No directory could be made for the Java process of the driver:"
                f" {error.strerror or 'there is no place for temporary files'}.",
                hint="Make room where temporary files are, or set TMPDIR for the server.",
            ) from error
        command = runtime.command(heap, time_zone, directory, options)
        environment = {
            **(variables or {}),
            "LANG": "C.UTF-8",
            "HOME": str(directory),
            "TMPDIR": str(directory),
        }
        try:
            process = await cls.launch(command, environment, directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        process._directory = directory
        return process

    def new_channel(self) -> int:
        """The number of a connection that is yet to be opened."""
        self._channels += 1
        self._open.add(self._channels)
        return self._channels

    def free_channel(self, channel: int) -> None:
        """Nothing more is asked of a connection."""
        self._open.discard(channel)

    def abandon(self) -> None:
        """Abandon a thread whose driver does not come to an end. The process is ended if no
        connection lives there, or if too many threads were left."""
        self._abandoned += 1
        if not self._open or self._abandoned >= MOST_ABANDONED:
            self.close()

    async def set_up(self, body: Any, kind: type[Body]) -> Body:
        """Load the driver. Raises: JvmError; TidegateError SOURCE_UNREACHABLE if the JVM does not
        start."""
        try:
            async with asyncio.timeout(START_S):
                return await self.ask(0, "setup", body, kind)
        except TimeoutError as error:
            self.close()
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"Java did not start within {START_S:g} s.",
                hint="Retry when the machine is less busy.",
            ) from error

    async def ask(self, channel: int, verb: str, body: Any, kind: type[Body]) -> Body:
        """Ask and wait. Raises: JvmError; TidegateError SOURCE_UNREACHABLE if the JVM has ended,
        SQL_UNREADABLE, ARGUMENT_INVALID for what cannot be sent."""
        _, pending = self.send(channel, verb, body)
        try:
            raw = await asyncio.shield(pending)
        except asyncio.CancelledError:
            pending.add_done_callback(retrieve)
            raise
        return decode_msgpack(raw, kind)

    def send(
        self, channel: int, verb: str, body: Any = None
    ) -> tuple[int, asyncio.Future[msgspec.Raw]]:
        """Ask. Returns the request's number, and the future of the answer, whose errors are those
        of `ask`. Raises: TidegateError SQL_UNREADABLE, ARGUMENT_INVALID."""
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        if not self.alive:
            future.set_exception(lost())
            return 0, future
        self._number += 1
        try:
            content = _encode(JvmRequest(self._number, channel, verb, body))
        except (UnicodeEncodeError, TypeError, OverflowError) as error:
            raise unsendable(error) from error
        self._pending[self._number] = future
        self.write(HEADER.pack(len(content)) + content)
        return self._number, future

    def interrupt(self, channel: int, number: int) -> None:
        """Have the driver end what a request runs; nothing if it has ended."""
        if self.alive and number in self._pending:
            content = _encode(JvmRequest(number, channel, INTERRUPT))
            self.write(HEADER.pack(len(content)) + content)

    def take_frame(self, content: bytes) -> None:
        try:
            reply = _decode(content)
        except msgspec.DecodeError:
            self.close()  # a driver has written here; what comes now cannot be trusted
            return
        pending = self._pending.pop(reply.number, None)
        if pending is None or pending.done():
            return
        if reply.fault is not None:
            pending.set_exception(JvmError(reply.fault))
        else:
            pending.set_result(reply.body)

    def fail_pending(self) -> None:
        pending, self._pending = self._pending, {}
        full = self._transport.get_returncode() == OUT_OF_MEMORY
        for future in pending.values():
            if not future.done():
                future.set_exception(_too_large() if full else lost())
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _too_large() -> TidegateError:
    return TidegateError(
        Code.LIMIT_BYTES,
        "The statement needed more memory than the Java process of its driver may have.",
        hint="Ask for fewer rows, or have the operator raise the source's option `heap`.",
        details={"cause": PROCESS},
    )
