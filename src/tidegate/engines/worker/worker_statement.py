"""Decides when a statement in a worker process is told to end, and when its process is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from tidegate.engines.common.errors import stopped
from tidegate.engines.worker.frames import unpack
from tidegate.engines.worker.process import WorkerProcess
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

Body = TypeVar("Body")

NUDGE_S = 0.1
"""Between interrupts: one that comes just before a statement starts is lost."""

NUDGES = 7
"""After so many of them the process is killed."""


class WorkerStatement:
    """A worker that has one statement, until `done` or `close`.

    `release` takes the worker back, alive or not. `running` holds the errands under way.
    """

    def __init__(
        self,
        worker: WorkerProcess,
        deadline: float,
        timeout_s: float,
        cancellation: Cancellation,
        running: set[WorkerStatement],
        release: Callable[[WorkerProcess], None],
    ) -> None:
        self._worker: WorkerProcess | None = worker
        self._timeout_s = timeout_s
        self._cancellation = cancellation
        self._running = running
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._cause: str | None = None
        self._nudges = 0
        self._closing = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._nudge: asyncio.TimerHandle | None = None
        self._alarm = self._loop.call_at(deadline, self.stop, "time")
        running.add(self)
        cancellation.listen(self._cancelled)

    async def ask(self, verb: str, body: Any, kind: type[Body]) -> Body:
        """Have the worker answer. The errand has ended if this raises.

        Raises: TidegateError of the worker; LIMIT_TIME, CALL_CANCELLED, SOURCE_NOT_CONNECTED.
        """
        worker = self._worker
        if worker is None or self._cause is not None:
            self.stop("closed")
            raise stopped(self._cause or "closed", self._timeout_s)
        try:
            pending = worker.send(verb, body)
        except (UnicodeEncodeError, TypeError) as error:
            self._end()
            raise _unsendable(error) from error
        try:
            raw = await asyncio.shield(pending)
        except TidegateError:
            self._end()
            if self._cause is not None:
                raise stopped(self._cause, self._timeout_s) from None
            raise
        except BaseException:
            self.stop("cancelled")
            pending.add_done_callback(self._answered)
            raise
        return unpack(raw, kind)

    def done(self) -> None:
        """The statement has come to its end: give the worker back."""
        self._end()

    def stop(self, cause: str) -> None:
        """Interrupt the statement, again and again, and at last kill the process."""
        if self._cause is None:
            self._cause = cause
        if self._worker is None or self._nudge is not None:
            return
        if self._worker.busy:
            self._press()
        else:
            self._finish()

    async def close(self) -> None:
        """End the statement if it has not ended, and wait for that. Safe to call twice."""
        if self._worker is not None:
            self.stop("cancelled")
            await asyncio.wait([self._ended], timeout=2 * NUDGES * NUDGE_S)

    def _press(self) -> None:
        worker = self._worker
        if worker is None or self._closing:
            return
        if not worker.alive or not worker.busy:
            self._finish()
        elif self._nudges >= NUDGES:
            worker.kill()
            self._end()
        else:
            self._nudges += 1
            worker.interrupt()
            self._nudge = self._loop.call_later(NUDGE_S, self._press)

    def _finish(self) -> None:
        """The worker is idle, but its statement may still be open: have it closed."""
        worker = self._worker
        if worker is None or self._closing:
            return
        if self._nudge is not None:
            self._nudge.cancel()
        if not worker.alive:
            self._end()
            return
        self._closing = True
        worker.send("close").add_done_callback(self._answered)
        self._nudge = self._loop.call_later(NUDGE_S * NUDGES, self._give_up)

    def _answered(self, future: asyncio.Future[Any]) -> None:
        """Nobody waits for this answer any more; go on to the end."""
        future.exception()
        if self._closing:
            self._end()
        elif self._worker is not None:
            self._finish()

    def _give_up(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._end()

    def _cancelled(self) -> None:
        self.stop(self._cancellation.reason or "cancelled")

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        self._alarm.cancel()
        if self._nudge is not None:
            self._nudge.cancel()
        self._cancellation.forget(self._cancelled)
        self._running.discard(self)
        self._ended.set_result(None)
        self._release(worker)


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
