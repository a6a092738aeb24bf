"""Decides how a statement on a server is told to end: by time, by its caller, or because we close.
Who sends statements to a server of its own (`pool.Session`) runs each of them as an statement."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import Any, Generic, Literal

from tidegate.engines.common.errors import lost, outcome_unknown, stopped
from tidegate.engines.common.pool import Pool, SessionT
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

LATE_S = 0.25
"""The server ends a statement itself when its time is over; this much later we ask it to."""

DRAIN_S = 0.002
"""How long the rest of a result is read and thrown away: cheaper than a second connection."""

NUDGE_S = 0.1
"""Between requests to end a statement: one that comes just before it begins is lost."""

GRACE_S = 2.0
"""How long the server may take to obey. Then the connection is given up."""


class RunningStatement(Generic[SessionT]):
    """A session taken from its pool for one statement, until `done` or `close` gives it back.

    `async with statement` ends it if what is done within fails, and raises what the failure is
    called. `running` holds the errands under way.
    """

    __slots__ = (
        "_alarm",
        "_cancellation",
        "_grace",
        "_loop",
        "_nudge",
        "_over",
        "_pool",
        "_request",
        "_running",
        "cause",
        "committing",
        "held",
        "timeout_s",
        "writes",
    )

    def __init__(
        self,
        pool: Pool[SessionT],
        session: SessionT,
        timeout_s: float,
        cancellation: Cancellation,
        running: set[RunningStatement[SessionT]],
        *,
        writes: bool = False,
    ) -> None:
        self._pool = pool
        self._cancellation = cancellation
        self._running = running
        self._loop = asyncio.get_running_loop()
        self.held: SessionT | None = session
        self.timeout_s = timeout_s
        self.writes = writes
        self.cause: str | None = None
        """Why it was told to end; None if it was not."""
        self.committing = False
        """Whether the server may commit on its own now: if the connection breaks, the outcome of a
        change is not known."""
        self._over: asyncio.Future[None] | None = None
        self._request: asyncio.Task[None] | None = None
        self._nudge: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._alarm = self._loop.call_later(timeout_s + LATE_S, self.stop, "time")
        running.add(self)
        cancellation.listen(self._cancelled)

    @property
    def timeout_ms(self) -> int:
        """The time limit as a server is told it."""
        return max(1, round(self.timeout_s * 1000))

    def session(self) -> SessionT:
        """The session. Raises: TidegateError if the statement was told to end."""
        if self.held is None or self.cause is not None:
            raise stopped(self.cause or "closed", self.timeout_s)
        return self.held

    def release(self) -> None:
        """The statement has come to its end: give the session back."""
        session, self.held = self.held, None
        if session is None:
            return
        for timer in (self._alarm, self._nudge, self._grace):
            if timer is not None:
                timer.cancel()
        self._cancellation.forget(self._cancelled)
        self._running.discard(self)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
        request = self._request
        self._pool.give(session, None if request is None or request.done() else request)

    def stop(self, cause: str) -> None:
        """End the statement in the server; whoever waits for it will hear of that."""
        if self.held is None:
            return
        if self.cause is None:
            self.cause = cause
        if self._request is None:
            self._press()
            self._grace = self._loop.call_later(GRACE_S, self._give_up)

    def failure(self, error: TidegateError) -> TidegateError:
        """The coded error of what went wrong, told by its cause."""
        if self.committing and error.code is Code.SOURCE_UNREACHABLE:
            return outcome_unknown()
        if self.cause is not None:
            return stopped(self.cause, self.timeout_s)
        if error.code is Code.LIMIT_TIME:
            return stopped("time", self.timeout_s)
        if error.code is Code.SOURCE_UNREACHABLE and self.writes:
            return lost(writing=True)
        return error

    async def close(self) -> None:
        """End the statement if it has not come to its end, and wait for that. Never raises
        TidegateError; safe to call twice."""
        session = self.held
        if session is None:
            return
        try:
            if self._request is None and not self.writes:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_S):
                        await session.settle()
                        return
            if session.line.unanswered:
                self.stop("cancelled")
            if self._request is not None:
                await asyncio.wait({self._request}, timeout=GRACE_S)
            await session.settle()
        except TidegateError:
            pass  # the line is closed; the pool sees that
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            self.release()

    async def end(self) -> None:
        """See that it ends, whoever uses it: one who waits for rows closes it himself."""
        if self.held is None:
            return
        if not self.held.line.awaited:
            await self.close()
            return
        self._over = self._loop.create_future()
        await self._over

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: object, error: BaseException | None, _: object
    ) -> Literal[False]:
        if error is None or self.held is None:  # all is well, or was told already
            return False
        failure = self.failure(error) if isinstance(error, TidegateError) else error
        await self.close()
        if failure is not error:
            raise failure from error
        return False

    def _cancelled(self) -> None:
        self.stop(self._cancellation.reason or "cancelled")

    def _press(self) -> None:
        """Ask the server, and again until the statement has ended."""
        if self.held is None:
            return
        if self._request is None or self._request.done():
            self.held.interrupted = True
            self._request = self._loop.create_task(self.held.interrupt())
        self._nudge = self._loop.call_later(NUDGE_S, self._press)

    def _give_up(self) -> None:
        """The server does not answer: hang up."""
        if self.held is not None:
            self.held.line.close()


class BorrowedSession(Generic[SessionT]):
    """A session for questions of ours: `async with`. Errors are told by what caused them."""

    __slots__ = ("_cancellation", "_pool", "_running", "_statement", "_timeout_s")

    def __init__(
        self,
        pool: Pool[SessionT],
        timeout_s: float,
        cancellation: Cancellation,
        running: set[RunningStatement[SessionT]],
    ) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._cancellation = cancellation
        self._running = running
        self._statement: RunningStatement[SessionT] | None = None

    async def __aenter__(self) -> SessionT:
        session = await self._pool.take(self._timeout_s)
        self._statement = RunningStatement(
            self._pool, session, self._timeout_s, self._cancellation, self._running
        )
        return session

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> Literal[False]:
        statement, self._statement = self._statement, None
        if statement is None:
            return False
        if error is None:
            statement.release()
        return await statement.__aexit__(kind, error, trace)


async def end_all(pools: Collection[Pool[Any]], running: Collection[RunningStatement[Any]]) -> None:
    """Close a source: end what runs, then every connection."""
    for pool in pools:
        pool.refuse()  # first: what begins while others end would be ended by nobody
    under_way = list(running)
    for statement in under_way:
        statement.stop("closed")
    if under_way:
        await asyncio.gather(*[statement.end() for statement in under_way])
    for pool in pools:
        await pool.close()
