"""A statement under way: one class for every engine.

It holds a connection from its pool, and ends the statement by its time limit, by its caller, or
because the source is closed. How a database is interrupted, and what a connection does to be ready
again, is the connection's own (`pool.PooledConnection`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator
from math import inf
from time import monotonic
from typing import Any, Generic, Literal, Protocol, TypeVar

from tidegate.engines.common.errors import PROCESS, lost, outcome_unknown, stopped
from tidegate.engines.common.pool import ConnectionT, Pool, PooledConnection
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

LEAST_S = 0.001
"""The least that the wait for a connection leaves of a time limit, in seconds. A shorter wait is
not deducted: a session that already has the same limit need not set it again."""

DRAIN_S = 0.002
"""How long the rest of a result is read and thrown away: cheaper than an interrupt."""

INTERRUPT_S = 0.1
"""Between interrupts: one that arrives just before the statement begins has no effect."""

_LEAST_GRACE_S = 0.5
"""The least that the server of a read has to obey an interrupt."""

_LEAST_OF_LIMIT = 0.95
"""The part of a time limit before which no server has reached it, by whatever clock."""

CLOCK_S = 0.002
"""A timer may fire so much before its time."""

_OwnedT = TypeVar("_OwnedT", bound=PooledConnection, contravariant=True)


class Owner(Protocol[_OwnedT]):
    """What a statement has its connection from: a pool, or a transaction."""

    def give(self, connection: _OwnedT, after: asyncio.Task[None] | None = None) -> None:
        """Take the connection back: when `after`, an interrupt under way, has ended."""
        ...


class RunningStatement(Generic[ConnectionT]):
    """A connection taken from its pool for one statement, until `release` or `close`.

    `async with statement as connection:` guards each use of the connection. If what is done within
    fails, the statement is ended, and the error raised says why it failed. A statement that has to
    end while its connection is not in use is closed in the background.
    """

    __slots__ = (
        "_cancellation",
        "_closing",
        "_earliest",
        "_ending",
        "_grace",
        "_interrupts",
        "_loop",
        "_over",
        "_pool",
        "_request",
        "_running",
        "_uses",
        "cause",
        "committing",
        "held",
        "limit_s",
        "on_release",
        "timeout_s",
        "until",
        "writes",
    )

    def __init__(
        self,
        pool: Owner[ConnectionT],
        connection: ConnectionT,
        timeout_s: float,
        cancellation: Cancellation,
        running: RunningStatements[ConnectionT],
        *,
        writes: bool = False,
        limit_s: float | None = None,
    ) -> None:
        """`timeout_s` is what is left of `limit_s`, the limit that errors name. `running` holds
        the statements under way."""
        self._pool = pool
        self._cancellation = cancellation
        self._running = running
        self._loop = asyncio.get_running_loop()
        self.held: ConnectionT | None = connection
        self.timeout_s = timeout_s
        self.limit_s = timeout_s if limit_s is None else limit_s
        self.writes = writes
        self.cause: str | None = None
        """Why it has to end; None if it has not."""
        self.on_release: Callable[[], None] | None = None
        """Called once, when the connection is given back. Who begins the statement sets it before
        anything is awaited."""
        self.committing = False
        """Whether the server may commit on its own now: if the connection breaks, the outcome of a
        change is not known."""
        self._uses = 0
        self._closing = False
        self._over: asyncio.Future[None] | None = None
        self._request: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._interrupts: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._earliest = self._loop.time() + timeout_s * _LEAST_OF_LIMIT
        self.until = self._loop.time() + timeout_s + connection.late_s
        """When it is stopped, by the clock of the event loop."""
        running.add(self, self._loop)
        cancellation.listen(self._cancelled)

    @property
    def timeout_ms(self) -> int:
        """The time limit in milliseconds, as it is sent to a server."""
        return max(1, round(self.timeout_s * 1000))

    def connection(self) -> ConnectionT:
        """The connection. Raises: TidegateError if the statement has ended or has to end."""
        if self.held is None or self.cause is not None:
            raise stopped(self.cause or "closed", self.limit_s)
        return self.held

    def release(self) -> None:
        """The statement has come to its end: give the connection back."""
        connection, self.held = self.held, None
        if connection is None:
            return
        if self._interrupts is not None:
            self._interrupts.cancel()
        if self._grace is not None:
            self._grace.cancel()
        self._cancellation.forget(self._cancelled)
        self._running.discard(self)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
        request = self._request
        self._pool.give(connection, None if request is None or request.done() else request)
        if self.on_release is not None:
            self.on_release()

    def stop(self, cause: str) -> None:
        """Have the database end the statement. A caller that waits for it gets an error that names
        the cause: `time`, `space`, `closed`, or the caller's reason."""
        if self.held is None:
            return
        if self.cause is None:
            self.cause = cause
        self._arm()
        if self._interrupts is None:
            self._interrupt()
        if not self._uses:
            self._end_soon()

    def failure(self, error: TidegateError) -> TidegateError:
        """The error that the caller gets for `error`."""
        if self.committing and error.code is Code.SOURCE_UNREACHABLE:
            return outcome_unknown()
        cause = self.cause
        if cause is None and error.code is Code.LIMIT_TIME:
            if "sqlstate" in error.details and self._loop.time() < self._earliest:
                # A trigger chooses the number of its error: that of a time limit proves none.
                return TidegateError(Code.SQL_FAILED, error.message, details=error.details)
            cause = "time"
        if cause is not None:
            failure = stopped(cause, self.limit_s)
            if error.details.get("cause") == PROCESS:  # what else it held is lost with it
                failure.details["cause"] = PROCESS
            return failure
        dead = self.held is not None and not self.held.alive
        if self.writes and dead and error.code is Code.SOURCE_UNREACHABLE:
            return error.with_hint(lost(writing=True).hint)
        return error

    async def close(self) -> None:
        """End the statement if it has not come to its end, and wait for that. Never raises
        TidegateError; safe to call twice."""
        connection = self.held
        if connection is None:
            return
        if self._closing:
            await self._released()
            return
        self._closing = True
        try:
            if connection.busy and self.cause is None and not self.writes:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_S):
                        await connection.settle()
                        return
            if connection.busy:
                self.stop("cancelled")
            self._arm()
            if self._request is not None and connection.alive:
                await asyncio.wait({self._request}, timeout=connection.grace_s)
            await connection.settle()
        except TidegateError:
            pass  # the connection is closed; the pool sees that
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            self.release()

    async def end(self) -> None:
        """Wait until it has ended, even if another task uses its connection."""
        if self.held is None:
            return
        if self._uses:
            await self._released()
        else:
            await self.close()

    async def __aenter__(self) -> ConnectionT:
        connection = self.held
        if connection is None or self.cause is not None:
            await self.close()
            raise stopped(self.cause or "closed", self.limit_s)
        self._uses += 1
        return connection

    async def __aexit__(
        self, kind: object, error: BaseException | None, _: object
    ) -> Literal[False]:
        self._uses -= 1
        if self.held is None:  # it has ended, and an error says why already
            return False
        if error is None:
            if self.cause is not None and not self._uses:
                self._end_soon()
            return False
        failure = self.failure(error) if isinstance(error, TidegateError) else error
        await self.close()
        if failure is not error:
            raise failure from error
        return False

    def _cancelled(self) -> None:
        self.stop(self._cancellation.reason or "cancelled")

    def _interrupt(self) -> None:
        """Interrupt the statement, and again until it has ended."""
        connection = self.held
        if connection is None:
            return
        if connection.busy and (self._request is None or self._request.done()):
            self._request = self._loop.create_task(connection.interrupt(self.cause or "cancelled"))
        self._interrupts = self._loop.call_later(INTERRUPT_S, self._interrupt)

    def _arm(self) -> None:
        if self._grace is None and self.held is not None:
            grace_s = self.held.grace_s
            if not self.writes:  # on a line that is silent, a short limit is not long exceeded
                grace_s = min(grace_s, max(_LEAST_GRACE_S, self.limit_s))
            self._grace = self._loop.call_later(grace_s, self._give_up)

    def _give_up(self) -> None:
        """The database does not obey: close the connection."""
        if self.held is not None:
            self.held.close()

    def _end_soon(self) -> None:
        if not self._closing and self._ending is None:
            self._ending = self._loop.create_task(self.close())

    async def _released(self) -> None:
        if self._over is None:
            self._over = self._loop.create_future()
        await asyncio.shield(self._over)


class RunningStatements(Generic[ConnectionT]):
    """The statements under way on one source, with one timer for the time limits of all."""

    __slots__ = ("_all", "_due_at", "_timer")

    def __init__(self) -> None:
        self._all: set[RunningStatement[ConnectionT]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = inf

    def __iter__(self) -> Iterator[RunningStatement[ConnectionT]]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(
        self, statement: RunningStatement[ConnectionT], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Stop the statement when its time is up, unless it is discarded before."""
        self._all.add(statement)
        if statement.until < self._due_at:
            self._look_at(statement.until, loop)

    def discard(self, statement: RunningStatement[ConnectionT]) -> None:
        """Forget a statement that has ended."""
        self._all.discard(statement)

    def forget_limits(self) -> None:
        """Stop the timer: what runs is being ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._due_at = None, inf

    def _look_at(self, due_at: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_at = due_at
        self._timer = loop.call_at(due_at, self._stop_late, loop)

    def _stop_late(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._due_at = None, inf
        now, later = loop.time() + CLOCK_S, inf
        for statement in list(self._all):
            if statement.until > now:
                later = min(later, statement.until)
            elif statement.cause is None:
                statement.stop("time")
        if later < inf:
            self._look_at(later, loop)


async def start(
    pool: Pool[ConnectionT],
    timeout_s: float,
    cancellation: Cancellation,
    running: RunningStatements[ConnectionT],
    *,
    writes: bool = False,
    limit_s: float | None = None,
) -> RunningStatement[ConnectionT]:
    """Take a connection for one statement; the wait for it counts as the statement's time.

    Raises: as `Pool.take`.
    """
    left_s, connection = timeout_s, pool.take_now()
    if connection is None:
        began = monotonic()
        connection = await pool.take(timeout_s, cancellation)
        waited = monotonic() - began
        left_s = timeout_s if waited < LEAST_S else max(LEAST_S, timeout_s - waited)
    return RunningStatement(
        pool,
        connection,
        left_s,
        cancellation,
        running,
        writes=writes,
        limit_s=timeout_s if limit_s is None else limit_s,
    )


class BorrowedConnection(Generic[ConnectionT]):
    """A connection for questions of ours: `async with`. It is given back at the end of the block;
    errors are those of a `RunningStatement`."""

    __slots__ = ("_cancellation", "_pool", "_running", "_statement", "_timeout_s")

    def __init__(
        self,
        pool: Pool[ConnectionT],
        timeout_s: float,
        cancellation: Cancellation,
        running: RunningStatements[ConnectionT],
    ) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._cancellation = cancellation
        self._running = running
        self._statement: RunningStatement[ConnectionT] | None = None

    async def __aenter__(self) -> ConnectionT:
        statement = await start(self._pool, self._timeout_s, self._cancellation, self._running)
        self._statement = statement
        return await statement.__aenter__()

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> Literal[False]:
        statement, self._statement = self._statement, None
        if statement is None:
            return False
        if error is None:
            statement.release()
        return await statement.__aexit__(kind, error, trace)


async def end_all(pools: Collection[Pool[Any]], running: RunningStatements[Any]) -> None:
    """Close a source: end what runs, then every connection."""
    for pool in pools:
        pool.refuse()  # first: a statement that began now would not be ended
    running.forget_limits()
    under_way = list(running)
    for statement in under_way:
        statement.stop("closed")
    if under_way:
        await asyncio.gather(*[statement.end() for statement in under_way])
    for pool in pools:
        await pool.close()
