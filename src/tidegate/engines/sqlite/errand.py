"""Decides how the event loop deals with work in a thread: waits, stops it, gives up on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from tidegate.cancellation import Cancellation
from tidegate.engines.faults import stopped
from tidegate.engines.sqlite.brake import Brake
from tidegate.engines.sqlite.session import Session
from tidegate.engines.sqlite.worker import Pool, Worker

Result = TypeVar("Result")

GRACE_S = 0.7
"""How long a thread may take to feel its brake. Then its caller is answered without it."""


class Errand:
    """A worker taken from its pool for one statement, until `done` or `close` gives it back.

    `finish` is run in the thread if the errand ends early. `running` holds the errands under way;
    this one keeps itself in it.
    """

    def __init__(
        self,
        pool: Pool,
        worker: Worker,
        brake: Brake,
        cancellation: Cancellation,
        running: set[Errand],
        finish: Callable[[Session], None] | None = None,
    ) -> None:
        self._pool = pool
        self._worker: Worker | None = worker
        self._brake = brake
        self._cancellation = cancellation
        self._running = running
        self._finish = finish
        self._pending: asyncio.Future[Any] | None = None
        self._loop = asyncio.get_running_loop()
        self._alarm = self._loop.call_later(brake.timeout_s, self.stop, "time")
        self._grace: asyncio.TimerHandle | None = None
        running.add(self)
        cancellation.listen(self._cancelled)

    @property
    def thread_id(self) -> int | None:
        """The system's number of the thread at work; None if there is none."""
        return None if self._worker is None else self._worker.thread.native_id

    async def do(self, work: Callable[[Session], Result]) -> Result:
        """Run `work` in the thread. The errand has ended if this raises.

        Raises: what `work` raises; GateError LIMIT_TIME, CALL_CANCELLED, SOURCE_NOT_CONNECTED.
        """
        worker = self._worker
        if worker is None or worker.ending:
            raise stopped(self._brake.cause or "closed", self._brake.timeout_s)
        self._pending = pending = worker.submit(work)
        try:
            result = await pending
        except BaseException:
            self._brake.pull("cancelled")
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
        self._brake.pull(cause)
        if self._pending is None:
            self._end_early()
        elif self._grace is None:
            self._grace = self._loop.call_later(GRACE_S, self._give_up)

    async def close(self) -> None:
        """End the work if it has not come to its end, and wait for that. Safe to call twice."""
        if self._pending is not None:
            self._brake.pull("cancelled")
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
        pending.set_exception(stopped(self._brake.cause or "time", self._brake.timeout_s))
