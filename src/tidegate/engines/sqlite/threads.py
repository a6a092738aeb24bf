"""Threads that run statements: a pool of workers with a connection each.

Work is handed over by a queue and comes back by `call_soon_threadsafe`: a third of the cost of an
executor. Threads start when they are first needed and end in `close`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, get_native_id
from typing import Any, TypeVar

from tidegate.engines.common.errors import stopped
from tidegate.engines.sqlite.connection import ProgressHandler, Session
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

Result = TypeVar("Result")
Task = tuple[Callable[[Session], Any], "asyncio.Future[Any]"]

NICENESS = 5
"""Lower than the event loop's: long statements on all workers must not make quick ones wait."""

JOIN_S = 2.0
"""How long `close` waits for a thread that sits inside one opcode; it is a daemon, and left."""


class Worker:
    """One thread with its session, which it opens when it first has work."""

    __slots__ = ("_inbox", "_loop", "_open", "ended", "ending", "generation", "thread")

    def __init__(self, open_session: Callable[[], Session], generation: int, name: str) -> None:
        self._open = open_session
        self._inbox: SimpleQueue[Task | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.generation = generation
        self.ending = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.thread = Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def submit(self, work: Callable[[Session], Result]) -> asyncio.Future[Result]:
        """Do `work` in the thread, after what was submitted before. Not after `end`."""
        future: asyncio.Future[Result] = self._loop.create_future()
        self._inbox.put((work, future))
        return future

    def end(self) -> None:
        """Close the session and end the thread when all submitted work is done."""
        self.ending = True
        self._inbox.put(None)

    def _run(self) -> None:
        _give_way()
        session: Session | None = None
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
            self._tell(_settle, future, result, error)
            del task, work, future, result, error
        if session is not None:
            session.close()
        self._tell(_settle, self.ended, None, None)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _give_way() -> None:
    """Have this thread wait for the event loop's, where the system can order single threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)


class Pool:
    """Up to `size` workers; who finds none free waits in line. Used on the event loop only."""

    def __init__(self, open_session: Callable[[], Session], size: int, name: str) -> None:
        self._open = open_session
        self._size = size
        self._name = name
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._lost: set[Worker] = set()
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._generation = 0
        self._started = 0

    async def take(self, timeout_s: float) -> Worker:
        """A worker for the caller alone. Raises: TidegateError SOURCE_BUSY after `timeout_s`."""
        if self._idle:
            return self._idle.pop()
        if self._has_room():
            return self._start()
        waiter: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            raise TidegateError(
                Code.SOURCE_BUSY, f"All {self._size} workers of this source are busy."
            ) from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give(waiter.result())
            raise

    def give(self, worker: Worker) -> None:
        """Take a worker back."""
        if worker.ending:
            return
        if worker.generation != self._generation:
            self._forget(worker)
            self._serve_next()
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(worker)
                return
        self._idle.append(worker)

    def abandon(self, worker: Worker) -> None:
        """Write off a worker whose thread does not come back; it ends by itself when it does.

        As many as there are workers are replaced; more would take the processor from all others.
        """
        if worker not in self._workers:
            return
        self._forget(worker)
        self._lost.add(worker)
        worker.ended.add_done_callback(lambda _: self._found(worker))
        self._serve_next()

    def renew(self) -> None:
        """Have every worker open its session anew: idle ones at once, busy ones when they end."""
        self._generation += 1
        idle, self._idle = self._idle, []
        for worker in idle:
            self._forget(worker)

    async def close(self) -> None:
        """End all threads, and wait for them."""
        workers = list(self._workers)
        self.renew()
        for waiter in self._waiting:
            waiter.cancel()
        for worker in workers:
            if worker in self._workers:
                self._forget(worker)
        if workers:
            await asyncio.wait([worker.ended for worker in workers], timeout=JOIN_S)
        for worker in workers:
            if worker.ended.done():
                worker.thread.join()

    def _start(self) -> Worker:
        self._started += 1
        worker = Worker(self._open, self._generation, f"{self._name}-{self._started}")
        self._workers.add(worker)
        return worker

    def _has_room(self) -> bool:
        started = len(self._workers)
        return started < self._size and started + len(self._lost) < 2 * self._size

    def _found(self, worker: Worker) -> None:
        self._lost.discard(worker)
        self._serve_next()

    def _serve_next(self) -> None:
        while self._waiting and self._has_room():
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(self._start())

    def _forget(self, worker: Worker) -> None:
        self._workers.discard(worker)
        worker.end()


GRACE_S = 0.7
"""How long a thread may take to feel its brake. Then its caller is answered without it."""


class ThreadStatement:
    """A worker taken from its pool for one statement, until `done` or `close` gives it back.

    `finish` is run in the thread if the errand ends early. `running` holds the errands under way;
    this one keeps itself in it.
    """

    def __init__(
        self,
        pool: Pool,
        worker: Worker,
        progress_handler: ProgressHandler,
        cancellation: Cancellation,
        running: set[ThreadStatement],
        finish: Callable[[Session], None] | None = None,
    ) -> None:
        self._pool = pool
        self._worker: Worker | None = worker
        self._progress_handler = progress_handler
        self._cancellation = cancellation
        self._running = running
        self._finish = finish
        self._pending: asyncio.Future[Any] | None = None
        self._loop = asyncio.get_running_loop()
        self._alarm = self._loop.call_later(progress_handler.timeout_s, self.stop, "time")
        self._grace: asyncio.TimerHandle | None = None
        running.add(self)
        cancellation.listen(self._cancelled)

    @property
    def thread_id(self) -> int | None:
        """The system's number of the thread at work; None if there is none."""
        return None if self._worker is None else self._worker.thread.native_id

    async def do(self, work: Callable[[Session], Result]) -> Result:
        """Run `work` in the thread. The errand has ended if this raises.

        Raises: what `work` raises; TidegateError LIMIT_TIME, CALL_CANCELLED, SOURCE_NOT_CONNECTED.
        """
        worker = self._worker
        if worker is None or worker.ending:
            raise stopped(
                self._progress_handler.cause or "closed", self._progress_handler.timeout_s
            )
        self._pending = pending = worker.submit(work)
        try:
            result = await pending
        except BaseException:
            self._progress_handler.pull("cancelled")
            self._pending = None
            await self.close()
            raise
        self._pending = None
        return result

    def done(self) -> None:
        """The work has come to its end: give the worker back."""
        worker = self._let_go()
        if worker is not None:
            self._pool.give(worker)

    def stop(self, cause: str) -> None:
        """Pull the brake. If the thread does not feel it soon, its caller goes on without it."""
        self._progress_handler.pull(cause)
        if self._pending is None:
            self._end_early()
        elif self._grace is None:
            self._grace = self._loop.call_later(GRACE_S, self._give_up)

    async def close(self) -> None:
        """End the work if it has not come to its end, and wait for that. Safe to call twice."""
        if self._pending is not None:
            self._progress_handler.pull("cancelled")
        ending = self._end_early()
        if ending is not None:
            await asyncio.wait([ending], timeout=GRACE_S)

    def _end_early(self) -> asyncio.Future[None] | None:
        worker = self._let_go()
        if worker is None or worker.ending:
            return None
        finish = self._finish
        ending = worker.submit(lambda session: finish(session) if finish else None)
        timer = self._loop.call_later(GRACE_S, self._pool.abandon, worker)

        def ended(future: asyncio.Future[None]) -> None:
            timer.cancel()
            if future.cancelled() or future.exception() is not None:
                self._pool.abandon(worker)
            else:
                self._pool.give(worker)

        ending.add_done_callback(ended)
        return ending

    def _let_go(self) -> Worker | None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._alarm.cancel()
            if self._grace is not None:
                self._grace.cancel()
            self._cancellation.forget(self._cancelled)
            self._running.discard(self)
        return worker

    def _cancelled(self) -> None:
        self.stop(self._cancellation.reason or "cancelled")

    def _give_up(self) -> None:
        """The thread sits inside one opcode: answer the caller, and write the worker off."""
        pending = self._pending
        if pending is None or pending.done():
            return
        worker = self._let_go()
        if worker is not None:
            self._pool.abandon(worker)
        pending.set_exception(
            stopped(self._progress_handler.cause or "time", self._progress_handler.timeout_s)
        )


MOST_BYTES = 2 * 1024**3
LOOK_S = 0.5


class TempSpaceLimit:
    """Looks at the errands in `running` for as long as there are any."""

    def __init__(self, running: Collection[ThreadStatement]) -> None:
        self._running = running
        self._written: dict[ThreadStatement, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """An errand has begun."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        before, self._written = self._written, {}
        for running in list(self._running):
            written = _written_by(running.thread_id)
            if written is None:
                continue
            first = before.get(running, written)
            if written - first > MOST_BYTES:
                running.stop("space")
            else:
                self._written[running] = first
        if self._running:
            self.wake()


def _written_by(thread_id: int | None) -> int | None:
    """Bytes that a thread of ours has written in its life."""
    if thread_id is None:
        return None
    try:
        counts = Path(f"/proc/self/task/{thread_id}/io").read_bytes()
    except OSError:
        return None
    return int(counts.partition(b"wchar:")[2].split(None, 1)[0])
