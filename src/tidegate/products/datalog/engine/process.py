"""The gate's end of one worker: a JVM that answers several requests at once.

The worker's end is `clojure/tidegate/worker.clj`, which says what the frames are.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from tidegate.engines.worker.framed_process import FramedProcess, unsendable
from tidegate.engines.worker.frames import HEADER
from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.engine.errors import Fault
from tidegate.products.datalog.engine.worker_directory import make_directory, remove_directory
from tidegate.typed_values import json_decoder

START_S = 60.0
"""How long a worker may take until it greets: seconds where there is a cache, and longer on a
machine that is busy."""

OUT_OF_MEMORY = 3
"""The exit status of a JVM that ran out of memory."""


class Answer(msgspec.Struct, frozen=True):
    """What a worker says to the request of the same number. `items` is how many the whole of a
    result has of which `result` may hold fewer."""

    number: int
    result: msgspec.Raw = msgspec.Raw(b"null")
    items: int | None = None
    corrected: bool = False
    fault: Fault | None = None


class Lost(Exception):
    """The worker ended before it answered; `full`: because it had too little memory."""

    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self.full = full


_encode = msgspec.json.Encoder().encode
_decode = json_decoder(Answer).decode


class DatalevinProcess(FramedProcess):
    """One JVM with Datalevin in it."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0
        self._directory: Path | None = None

    @classmethod
    async def start(cls, command: list[str], directory: Path) -> DatalevinProcess:
        """Start a worker whose private files are in `directory`, which is removed when it ends.

        Raises: TidegateError SOURCE_UNREACHABLE if it does not start; Lost if it ends at once.
        """
        environment = {"LANG": "C.UTF-8", "HOME": str(directory), "TMPDIR": str(directory)}
        try:
            process = await cls.launch(command, environment, directory)
        except BaseException:
            remove_directory(directory)
            raise
        process._directory = directory
        greeting = process._expect(0)
        try:
            async with asyncio.timeout(START_S):
                await greeting
        except TimeoutError as error:
            process.close()
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"Datalevin did not start within {START_S:g} s.",
                hint="Retry when the machine is less busy.",
            ) from error
        except BaseException:
            process.close()
            raise
        return process

    @staticmethod
    async def new_directory() -> Path:
        """A private directory for a worker's files."""
        return await asyncio.to_thread(make_directory)

    def send(self, request: dict[str, Any]) -> asyncio.Future[Answer]:
        """Ask. The future's error is Lost if the worker ends first.

        Raises: TidegateError SQL_UNREADABLE, ARGUMENT_INVALID for what cannot be sent.
        """
        self._number += 1
        number = self._number
        try:
            content = _encode({"number": number, **request})
        except (UnicodeEncodeError, TypeError, OverflowError, ValueError) as error:
            raise unsendable(error) from error
        future = self._expect(number)
        if not self.alive:
            del self._pending[number]
            future.set_exception(Lost())
            return future
        self.write(HEADER.pack(len(content)) + content)
        return future

    def take_frame(self, content: bytes) -> None:
        try:
            answer = _decode(content)
        except msgspec.MsgspecError:
            self.close()  # what it says cannot be trusted any more
            return
        pending = self._pending.pop(answer.number, None)
        if pending is not None and not pending.done():
            pending.set_result(answer)

    def fail_pending(self) -> None:
        pending, self._pending = self._pending, {}
        full = self._transport.get_returncode() == OUT_OF_MEMORY
        for future in pending.values():
            if not future.done():
                future.set_exception(Lost(full=full))
        if self._directory is not None:
            remove_directory(self._directory)

    def _expect(self, number: int) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._pending[number] = future
        return future
