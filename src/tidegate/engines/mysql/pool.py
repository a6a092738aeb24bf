"""Decides who gets which connection: a few, opened when needed, replaced when they are dead."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tidegate.engines.mysql.line import Line
from tidegate.engines.mysql.session import Session
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
        self._gone: set[Line] = set()
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
                if session.line.open:
                    return session
                self.drop(session)
                continue
            if self._count < self._size:
                found: Session | None = await self._opened()
            else:
                found = await self._next(timeout_s)
            if found is not None:
                if not self._closed:
                    return found
                self.drop(found)
        raise GateError(Code.SOURCE_NOT_CONNECTED, "The source is closed.")

    def give(self, session: Session) -> None:
        """Take a session back. One that is not yet free is made so first."""
        if self._closed or not session.line.open:
            self.drop(session)
        elif session.dirty or session.shaken or session.line.unanswered:
            self._keep(session, self._reset(session))
        else:
            self._pass_on(session)

    def give_after(self, session: Session, request: asyncio.Task[None]) -> None:
        """Take a session back once a request to end its statement has come to its end."""
        if not session.line.open:
            self._resetting.add(request)
            request.add_done_callback(self._resetting.discard)
            self.drop(session)
            return
        self._keep(session, self._reset_after(session, request))

    def drop(self, session: Session) -> None:
        """Hang up and make room for another."""
        line = session.line
        line.close()
        self._gone = {each for each in self._gone if not each.gone}
        self._gone.add(line)
        self._count -= 1
        self._wake(None)

    def refuse(self) -> None:
        """Give no session to anybody from now on."""
        self._closed = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def close(self) -> None:
        """Close every session that is not taken; those that are end when they are given back."""
        self.refuse()
        if self._sweep is not None:
            self._sweep.cancel()
        for task in list(self._resetting):
            task.cancel()
        if self._resetting:
            await asyncio.wait(self._resetting)
            await asyncio.sleep(0)  # for what is called when they are done
        idle, self._idle = self._idle, []
        for session, _ in idle:
            self.drop(session)
        for line in list(self._gone):
            await line.closed()

    async def _opened(self) -> Session:
        self._count += 1
        try:
            return await self._open()
        except BaseException:
            self._count -= 1
            self._wake(None)
            raise

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

    def _keep(self, session: Session, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._resetting.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._resetting.discard(task)
            if task.cancelled():  # perhaps before it began
                self.drop(session)

        task.add_done_callback(ended)

    async def _reset_after(self, session: Session, request: asyncio.Task[None]) -> None:
        await request
        await self._reset(session)

    async def _reset(self, session: Session) -> None:
        try:
            await session.reset()
        except GateError:
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
