"""Decides who gets which connection: a few, opened when needed, replaced when they are dead."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from tidegate.engines.postgres.session import Session
from tidegate.errors import Code, GateError

IDLE_S = 300.0
"""How long a connection that nobody needs is kept."""


class Pool:
    """Up to `size` sessions; who finds none free waits in line. Used on the event loop only."""

    def __init__(
        self,
        open_session: Callable[[], Awaitable[Session]],
        size: int,
        first: Session | None = None,
    ) -> None:
        self._open = open_session
        self._size = size
        self._idle: list[tuple[Session, float]] = []
        self._count = 0
        self._waiting: deque[asyncio.Future[Session | None]] = deque()
        self._resetting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        if first is not None:
            self._count = 1
            self._pass_on(first)

    async def take(self, timeout_s: float) -> Session:
        """A live session for the caller alone, with nothing left on it from before.

        Raises: GateError SOURCE_BUSY after `timeout_s`, SOURCE_UNREACHABLE, SOURCE_NOT_CONNECTED.
        """
        while not self._closed:
            if self._idle:
                session, _ = self._idle.pop()
                if session.line.check():
                    return session
                self._count -= 1
            elif self._count < self._size:
                return await self._opened()
            else:
                passed = await self._next(timeout_s)
                if passed is not None and self._closed:
                    self.drop(passed)
                elif passed is not None:
                    return passed
        raise _closed()

    def give(self, session: Session) -> None:
        """Take a session back. One that is not yet free is made so first."""
        if self._closed or not session.line.open:
            self.drop(session)
        elif session.dirty or session.shaken or not session.settle_now():
            task = self._loop.create_task(self._reset(session))
            self._resetting.add(task)

            def ended(task: asyncio.Task[None]) -> None:
                self._resetting.discard(task)
                if task.cancelled():  # before it began
                    self.drop(session)

            task.add_done_callback(ended)
        else:
            self._pass_on(session)

    def drop(self, session: Session) -> None:
        """Hang up and make room for another."""
        session.line.close()
        self._count -= 1
        self._wake(None)

    def refuse(self) -> None:
        """Give out no further session."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def close(self) -> None:
        """Close every session that is not taken; those that are end when they are given back."""
        self.refuse()
        for task in list(self._resetting):
            task.cancel()
        if self._resetting:
            await asyncio.wait(self._resetting)
        idle, self._idle = self._idle, []
        for session, _ in idle:
            self.drop(session)

    async def _opened(self) -> Session:
        self._count += 1
        try:
            session = await self._open()
        except BaseException:
            self._count -= 1
            self._wake(None)
            raise
        if self._closed:
            self.drop(session)
            raise _closed()
        return session

    async def _next(self, timeout_s: float) -> Session | None:
        """Wait in line; None means: look again."""
        waiter: asyncio.Future[Session | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            return await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            raise GateError(
                Code.SOURCE_BUSY, f"All {self._size} connections of this source are busy."
            ) from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                passed = waiter.result()
                if passed is not None:
                    self._pass_on(passed)
            raise

    async def _reset(self, session: Session) -> None:
        try:
            await session.reset()
        except (GateError, asyncio.CancelledError):
            self.drop(session)
        else:
            self._pass_on(session)

    def _pass_on(self, session: Session) -> None:
        if self._closed:
            self.drop(session)
        elif not self._wake(session):
            self._idle.append((session, self._loop.time()))
            if self._sweep is None:
                self._sweep = self._loop.call_later(IDLE_S, self._sweep_idle)

    def _wake(self, session: Session | None) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(session)
                return True
        return False

    def _sweep_idle(self) -> None:
        """Close what has not been used for long, the last one excepted."""
        self._sweep = None
        before = self._loop.time() - IDLE_S
        while len(self._idle) > 1 and self._idle[0][1] <= before:
            session, _ = self._idle.pop(0)
            self.drop(session)
        if len(self._idle) > 1:
            self._sweep = self._loop.call_later(IDLE_S, self._sweep_idle)


def _closed() -> GateError:
    return GateError(Code.SOURCE_NOT_CONNECTED, "The source was closed meanwhile.")
