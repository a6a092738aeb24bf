"""Decides who gets which connection to a server: a few, opened when needed, replaced when dead.

`Session` and `Line` say what an engine's connection must offer for that, and for `errand.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from tidegate.engines.common.errors import closed
from tidegate.errors import Code, TidegateError

IDLE_S = 300.0
"""How long a connection that nobody needs is kept."""


FREED_S = 15.0
"""How long making a connection free may take. Then it is given up."""


class Line(Protocol):
    """What carries a session's bytes."""

    @property
    def open(self) -> bool:
        """Whether nobody has hung up, as far as is known."""
        ...

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the server."""
        ...

    @property
    def unanswered(self) -> int:
        """What was sent and whose end has not been read."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the socket is closed."""
        ...

    def check(self) -> bool:
        """Whether the line still stands, as far as can be seen without asking the server."""
        ...

    def close(self) -> None:
        """Hang up; whoever waits is told. Safe to call twice."""
        ...

    async def closed(self) -> None:
        """Wait until the socket is closed."""
        ...


class Session(Protocol):
    """One connection with our settings, for one caller at a time.

    `dirty`: a statement may have changed more than data; `shaken`: a request to end a statement was
    sent, and may still be on its way.
    """

    needs_reset: bool
    interrupted: bool

    @property
    def line(self) -> Line: ...

    def settle_now(self) -> bool:
        """Read what is left to read, if it has come; whether the session is free for use."""
        ...

    async def settle(self) -> None:
        """Read what is left to read, and leave no transaction open. Raises: TidegateError."""
        ...

    async def reset(self) -> None:
        """Forget whatever statements have set or made. Raises: TidegateError."""
        ...

    async def interrupt(self) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises
        TidegateError."""
        ...


SessionT = TypeVar("SessionT", bound=Session)


class Pool(Generic[SessionT]):
    """Up to `size` sessions; who finds none free waits in line. Used on the event loop only."""

    def __init__(
        self,
        open_session: Callable[[], Awaitable[SessionT]],
        size: int,
        first: SessionT | None = None,
    ) -> None:
        self._open = open_session
        self._size = size
        self._idle: list[tuple[SessionT, float]] = []
        self._count = 0
        self._waiting: deque[asyncio.Future[SessionT | None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: set[Line] = set()
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        if first is not None:
            self._count = 1
            self._pass_on(first)

    async def take(self, timeout_s: float) -> SessionT:
        """A live session for the caller alone, with nothing left on it from before.

        Raises: TidegateError SOURCE_BUSY after `timeout_s`, SOURCE_UNREACHABLE,
        SOURCE_NOT_CONNECTED.
        """
        while not self._closed:
            if self._idle:
                session, _ = self._idle.pop()
                if session.line.check():
                    return session
                self.drop(session)
                continue
            if self._count < self._size:
                found: SessionT | None = await self._opened(timeout_s)
            else:
                found = await self._next(timeout_s)
            if found is not None:
                if not self._closed:
                    return found
                self.drop(found)
        raise closed()

    def give(self, session: SessionT, after: asyncio.Task[None] | None = None) -> None:
        """Take a session back: when `after`, a request to end its statement, has ended. One that is
        not yet free is made so first."""
        if self._closed or not session.line.open:
            if after is not None:
                self._tasks.add(after)
                after.add_done_callback(self._tasks.discard)
            self.drop(session)
        elif (
            after is not None
            or session.needs_reset
            or session.interrupted
            or not session.settle_now()
        ):
            task = self._loop.create_task(_freed(session, after))
            self._tasks.add(task)

            def ended(task: asyncio.Task[None]) -> None:
                self._tasks.discard(task)
                if task.cancelled() or task.exception() is not None:  # perhaps before it began
                    self.drop(session)
                else:
                    self._pass_on(session)

            task.add_done_callback(ended)
        else:
            self._pass_on(session)

    def drop(self, session: SessionT) -> None:
        """Hang up and make room for another."""
        session.line.close()
        self._gone = {line for line in self._gone if not line.gone}
        if not session.line.gone:
            self._gone.add(session.line)
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
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)  # for what is called when they are done
        idle, self._idle = self._idle, []
        for session, _ in idle:
            self.drop(session)
        for line in list(self._gone):
            await line.closed()

    async def _opened(self, timeout_s: float) -> SessionT:
        self._count += 1
        try:
            async with asyncio.timeout(timeout_s):
                return await self._open()
        except BaseException as error:
            self._count -= 1
            self._wake(None)
            if not isinstance(error, TimeoutError):
                raise
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"No connection to the server could be made within {timeout_s:.3g} s.",
        )

    async def _next(self, timeout_s: float) -> SessionT | None:
        """Wait in line; None means: look again."""
        waiter: asyncio.Future[SessionT | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            return await asyncio.wait_for(waiter, timeout_s)
        except (TimeoutError, asyncio.CancelledError) as error:
            if waiter.done() and not waiter.cancelled():  # it came in the same moment
                passed = waiter.result()
                if passed is None:
                    self._wake(None)
                else:
                    self._pass_on(passed)
            if isinstance(error, TimeoutError):
                raise TidegateError(
                    Code.SOURCE_BUSY, f"All {self._size} connections of this source are busy."
                ) from None
            raise

    def _pass_on(self, session: SessionT) -> None:
        if self._closed:
            self.drop(session)
        elif not self._wake(session):
            self._idle.append((session, self._loop.time()))
            if self._sweep is None:
                self._sweep = self._loop.call_later(IDLE_S, self._sweep_idle)

    def _wake(self, session: SessionT | None) -> bool:
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


async def _freed(session: Session, after: asyncio.Task[None] | None) -> None:
    """Make a session free for the next one. Raises: TidegateError if its line is lost, TimeoutError
    if nobody answers."""
    async with asyncio.timeout(FREED_S):
        if after is not None:
            await after
        await session.reset()
