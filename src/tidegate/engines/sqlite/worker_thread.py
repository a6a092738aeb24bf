"""One thread of the pool that runs SQLite's statements, with a connection of its own.

Work is passed on by a queue and comes back by `call_soon_threadsafe`: a third of the cost of an
executor. A thread starts when it is first needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from threading import Thread, get_native_id
from typing import Any, ClassVar, TypeVar

from tidegate.engines.common.errors import lost
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.system.limits import give_way

Result = TypeVar("Result")
Task = tuple[Callable[[SqliteSession], Any], "asyncio.Future[Any]"]

NICENESS = 5
"""Added to that of the event loop, which made the thread: long statements on all workers must not
make quick ones wait."""

_numbers = count(1)


class WorkerThread:
    """One thread and its session, opened when it first has work (`pool.PooledConnection`).

    `progress_handler` is that of the statement it has. A thread inside one long operation cannot be
    ended: `close` answers who waits for it, and it ends by itself when it comes back.
    """

    late_s: ClassVar[float] = 0.0
    grace_s: ClassVar[float] = 0.7

    __slots__ = (
        "_at_work",
        "_closed",
        "_ended",
        "_idle",
        "_inbox",
        "_loop",
        "_open",
        "_pending",
        "_thread",
        "progress_handler",
    )

    def __init__(self, open_session: Callable[[], SqliteSession], name: str) -> None:
        self._open = open_session
        self._inbox: SimpleQueue[Task | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._at_work = 0
        self._pending: asyncio.Future[Any] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._closed = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.progress_handler: ProgressHandler | None = None
        self._thread = Thread(target=self._run, name=f"{name}-{next(_numbers)}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return not self._closed

    @property
    def busy(self) -> bool:
        return self._at_work > 0

    @property
    def gone(self) -> bool:
        return self._ended.done()

    @property
    def thread_id(self) -> int | None:
        """The system's number of the thread."""
        return self._thread.native_id

    def check(self) -> bool:
        return not self._closed

    async def do(self, work: Callable[[SqliteSession], Result]) -> Result:
        """Do `work` in the thread, after what it was given before.

        Raises: what `work` raises; TidegateError SOURCE_UNREACHABLE if the thread was closed.
        """
        if self._closed:
            raise lost()
        future: asyncio.Future[Result] = self._loop.create_future()
        self._pending = future
        self._at_work += 1
        self._inbox.put((work, future))
        return await future

    def settle_now(self) -> bool:
        return not self._at_work

    async def settle(self) -> None:
        """Wait until the thread is idle, and have it close the statement that is open."""
        while self._at_work:
            if self._closed:
                raise lost()
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)
        try:
            await self.do(SqliteSession.close_statement)
        except Exception as error:
            self.close()
            raise lost() from error

    async def reset(self) -> None:
        await self.settle()

    async def interrupt(self, cause: str) -> None:
        if self.progress_handler is not None:
            self.progress_handler.pull(cause)

    def close(self) -> None:
        """Close the session and end the thread when it comes back; a waiting caller is answered
        now."""
        if self._closed:
            return
        self._closed = True
        self._inbox.put(None)
        if self._pending is not None and not self._pending.done():
            self._pending.set_exception(lost())
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def closed(self) -> None:
        await asyncio.shield(self._ended)
        self._thread.join()

    def _run(self) -> None:
        _give_way()
        session: SqliteSession | None = None
        while (task := self._inbox.get()) is not None:
            work, future = task
            result: Any = None
            error: BaseException | None = None
            try:
                if session is None or session.closed:
                    session = self._open()
                result = work(session)
            except BaseException as caught:  # noqa: BLE001 - goes to the caller that waits
                error = caught
                if session is not None and not session.closed:
                    session.release_lock()
            self._tell(self._answer, future, result, error)
            del task, work, future, result, error
        if session is not None:
            session.close()
        self._tell(self._ended.set_result, None)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return  # the loop is closed: no task waits any more

    def _answer(
        self, future: asyncio.Future[Any], result: Any, error: BaseException | None
    ) -> None:
        self._at_work -= 1
        if not self._at_work and self._idle is not None:
            if not self._idle.done():
                self._idle.set_result(None)
            self._idle = None
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _give_way() -> None:
    """Have this thread wait for the event loop's, where the system can order single threads."""
    with suppress(OSError):
        give_way(get_native_id(), NICENESS)
