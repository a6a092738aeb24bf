"""Decides how a statement under way is told to end: by time, by its caller, or because we close."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

from tidegate.engines.mysql.faults import INTERRUPTED, ServerError, lost, stopped, translate
from tidegate.engines.mysql.pool import Pool
from tidegate.engines.mysql.session import ROLLBACK, Session
from tidegate.errors import Code, GateError
from tidegate.types import Cancellation

LATE_S = 0.25
"""The server ends a statement itself when its time is over; this much later we ask it to."""

DRAIN_S = 0.003
"""How long the rest of a result is read and thrown away: cheaper than a second connection."""

GRACE_S = 2.0
"""How long the server may take to obey. Then the connection is given up."""


class Errand:
    """A session taken from its pool for one statement, until `done` or `close` gives it back."""

    __slots__ = (
        "_alarm",
        "_cancellation",
        "_grace",
        "_loop",
        "_over",
        "_pool",
        "_request",
        "_running",
        "cause",
        "keeps",
        "session",
        "timeout_s",
        "writes",
    )

    def __init__(
        self,
        pool: Pool,
        session: Session,
        timeout_s: float,
        cancellation: Cancellation,
        running: set[Errand],
        *,
        writes: bool = False,
    ) -> None:
        self._pool = pool
        self._cancellation = cancellation
        self._running = running
        self._loop = asyncio.get_running_loop()
        self.session: Session | None = session
        self.timeout_s = timeout_s
        self.writes = writes
        self.keeps = True
        """Whether a change is committed at its end; an explanation is not."""
        self.cause: str | None = None
        self._request: asyncio.Task[None] | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] | None = None
        self._alarm = self._loop.call_later(timeout_s + LATE_S, self.stop, "time")
        running.add(self)
        cancellation.listen(self._cancelled)

    def held(self) -> Session:
        """The session. Raises: GateError if the statement was told to end."""
        if self.session is None or self.cause is not None:
            raise stopped(self.cause or "closed", self.timeout_s)
        return self.session

    def done(self) -> None:
        """The statement has come to its end: give the session back."""
        session = self._let_go()
        if session is None:
            return
        if self._request is not None and not self._request.done():
            self._pool.give_after(session, self._request)
        else:
            self._pool.give(session)

    def stop(self, cause: str) -> None:
        """End the statement in the server; whoever waits for it will hear of that."""
        if self.session is None:
            return
        if self.cause is None:
            self.cause = cause
        if self._request is None:
            self.session.shaken = True
            self._request = self._loop.create_task(self.session.interrupt())
            self._grace = self._loop.call_later(GRACE_S, self._give_up)

    def failure(self, error: GateError | ServerError) -> GateError:
        """The coded error of what went wrong, told by its cause."""
        if self.cause is not None:
            return stopped(self.cause, self.timeout_s)
        if isinstance(error, ServerError):
            if error.number in INTERRUPTED:
                return stopped("time" if error.number != 1317 else "cancelled", self.timeout_s)
            return translate(error)
        return lost(self.writes) if error.code is Code.SOURCE_UNREACHABLE else error

    async def close(self) -> None:
        """End the statement if it has not come to its end, and wait for that. Never raises
        GateError; safe to call twice."""
        session = self.session
        if session is None:
            return
        try:
            if self._request is None and not self.writes:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_S):
                        await session.line.settle()
                        return
            if session.line.unanswered:
                self.stop("cancelled")
            if self._request is not None:
                await asyncio.wait({self._request}, timeout=GRACE_S)
            if self.writes:
                with contextlib.suppress(ServerError):
                    await session.end(ROLLBACK)
            await session.line.settle()
        except GateError:
            pass  # the line is closed; `done` sees that
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            self.done()

    async def end(self) -> None:
        """See that it ends, whoever uses it: one who waits for rows closes it himself."""
        if self.session is None:
            return
        if not self.session.line.awaited:
            await self.close()
            return
        self._over = self._loop.create_future()
        await self._over

    def _cancelled(self) -> None:
        self.stop(self._cancellation.reason or "cancelled")

    def _give_up(self) -> None:
        """The server does not answer: hang up."""
        if self.session is not None:
            self.session.line.close()

    def _let_go(self) -> Session | None:
        session, self.session = self.session, None
        if session is not None:
            self._alarm.cancel()
            if self._grace is not None:
                self._grace.cancel()
            self._cancellation.forget(self._cancelled)
            self._running.discard(self)
            if self._over is not None and not self._over.done():
                self._over.set_result(None)
        return session


class Borrowed:
    """A session for questions of ours: `async with`. Errors are told by what caused them."""

    def __init__(
        self, pool: Pool, timeout_s: float, cancellation: Cancellation, running: set[Errand]
    ) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._cancellation = cancellation
        self._running = running
        self._errand: Errand | None = None

    async def __aenter__(self) -> Session:
        session = await self._pool.take(self._timeout_s)
        self._errand = Errand(
            self._pool, session, self._timeout_s, self._cancellation, self._running
        )
        return session

    async def __aexit__(
        self, kind: object, error: BaseException | None, _: object
    ) -> Literal[False]:
        errand, self._errand = self._errand, None
        if errand is None:
            return False
        if error is None:
            errand.done()
            return False
        failure = errand.failure(error) if isinstance(error, (GateError, ServerError)) else None
        await errand.close()
        if failure is not None and failure is not error:
            raise failure from error
        return False
