"""A bounded pool of connections to one database, the same for every engine.

A connection is what runs one statement at a time for one caller: a session at a server, a thread
with a handle of its own, a worker process. `PooledConnection` says what it must offer to be pooled
here and to carry a statement (`running_statement.py`). An engine says how one is opened.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tidegate.engines.api import PoolWaits
from tidegate.engines.common.errors import closed, stopped
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation

IDLE_S = 300.0
"""How long an idle connection is kept, in seconds. The last one stays."""

RESET_S = 15.0
"""How long a connection may take to become ready for the next caller. Then it is dropped."""

CLOSE_S = 5.0
"""How long `Pool.close` waits for what it closes, such as a thread inside one long operation."""


class PooledConnection(Protocol):
    """One connection, for one caller at a time. Used on the event loop only."""

    late_s: ClassVar[float]
    """How much later than its time limit a statement is interrupted from here: more than 0 where
    the database enforces the limit itself."""
    grace_s: ClassVar[float]
    """How long a statement may take to end after an interrupt. Then the connection is closed."""

    @property
    def alive(self) -> bool:
        """Whether it can be used, as far as is known."""
        ...

    @property
    def busy(self) -> bool:
        """Whether something was asked whose end has not been read."""
        ...

    @property
    def gone(self) -> bool:
        """Whether nothing is left of it: the socket is closed, the thread or process has ended."""
        ...

    def check(self) -> bool:
        """Whether it can be used, by a local check that sends nothing and never waits."""
        ...

    def settle_now(self) -> bool:
        """Read what is left of the last statement, if it has come. Returns whether the connection
        is ready for the next caller."""
        ...

    async def settle(self) -> None:
        """Wait for the end of what was asked, and leave no statement or transaction open.

        Raises: TidegateError if the connection is lost.
        """
        ...

    async def reset(self) -> None:
        """Make it ready for the next caller: forget what statements have set or made.

        Raises: TidegateError.
        """
        ...

    async def interrupt(self, cause: str) -> None:
        """Have the database end what runs; does nothing if nothing runs. Never raises
        TidegateError."""
        ...

    def close(self) -> None:
        """Close it at once; a task that waits for an answer gets an error. Safe to call twice."""
        ...

    async def closed(self) -> None:
        """Wait until it is `gone`."""
        ...


ConnectionT = TypeVar("ConnectionT", bound=PooledConnection)


class Pool(Generic[ConnectionT]):
    """Up to `size` connections. Callers that find none free are served in the order they came.

    A connection that was dropped and has not ended yet (a thread inside one long operation) does
    not count; but there are never more than twice `size`, those included.
    """

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[ConnectionT]],
        size: int,
        first: ConnectionT | None = None,
        *,
        open_s: float = 0.0,
    ) -> None:
        """`first` is open already. Opening one may take the caller's time limit, or `open_s` if
        that is longer."""
        self._open = open_connection
        self._size = size
        self._open_s = open_s
        self._all: set[ConnectionT] = set()
        self._idle: list[tuple[ConnectionT, float]] = []
        self._outdated: set[ConnectionT] = set()
        self._reserved = 0
        """Places of connections that are being opened, or will be by a caller just woken."""
        self._waiting: deque[asyncio.Future[ConnectionT | None]] = deque()
        self._resets: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self.waits = 0
        self.waited_s = 0.0
        """How many callers found none idle, and how long they waited in all."""
        if first is not None:
            self._all.add(first)
            self._pass_on(first)

    @property
    def connections(self) -> frozenset[ConnectionT]:
        """Those that are open, idle or not."""
        return frozenset(self._all)

    async def take(self, timeout_s: float, cancellation: Cancellation = NEVER) -> ConnectionT:
        """A live connection for the caller alone, with nothing left on it from before.

        Raises: TidegateError SOURCE_BUSY after `timeout_s`, CALL_CANCELLED for a caller that waits
        in line no more, SOURCE_UNREACHABLE, SOURCE_NOT_CONNECTED, and what opening one raises.
        """
        idle = self.take_now()
        if idle is not None:
            return idle
        began = self._loop.time()
        exactly = perf_counter()  # some loops count whole milliseconds, and by their rounds
        try:
            return await self._wait(timeout_s, began, cancellation)
        finally:
            self.waits += 1
            self.waited_s += perf_counter() - exactly

    async def _wait(
        self, timeout_s: float, began: float, cancellation: Cancellation
    ) -> ConnectionT:
        """A connection that is opened, or given back by another caller."""
        if self._has_room():
            self._reserved += 1
            return await self._open_reserved(timeout_s)
        until = began + timeout_s
        found = await self._next(timeout_s, cancellation)
        if found is None:
            return await self._open_reserved(max(0.0, until - self._loop.time()))
        if self._closed:
            self.drop(found)
            raise closed()
        return found

    def take_now(self) -> ConnectionT | None:
        """As `take`, if one is idle; else None. Raises: TidegateError SOURCE_NOT_CONNECTED."""
        if self._closed:
            raise closed()
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.check():
                return connection
            self.drop(connection)
        return None

    def give(self, connection: ConnectionT, after: asyncio.Task[None] | None = None) -> None:
        """Take a connection back: when `after`, an interrupt under way, has ended. One that is not
        ready for the next caller is reset first."""
        if self._closed or not connection.alive or connection in self._outdated:
            if after is not None:
                self._resets.add(after)
                after.add_done_callback(self._resets.discard)
            self.drop(connection)
        elif after is None and connection.settle_now():
            self._pass_on(connection)
        else:
            self._reset(connection, after)

    def drop(self, connection: ConnectionT) -> None:
        """Close a connection and make room for another."""
        connection.close()
        if connection not in self._all:
            return
        self._all.discard(connection)
        self._outdated.discard(connection)
        if not connection.gone:
            task = self._loop.create_task(connection.closed())
            self._closing.add(task)
            task.add_done_callback(self._has_ended)
        self._wake()

    def take_idle(self) -> list[ConnectionT]:
        """Take all idle connections. The caller gives each of them back."""
        idle, self._idle = self._idle, []
        return [connection for connection, _ in idle]

    def renew(self) -> None:
        """Replace every connection: idle ones now, the others when they are given back."""
        self._outdated |= self._all
        for connection in self.take_idle():
            self.drop(connection)

    def refuse(self) -> None:
        """Give out no more connections, and fail the tasks that wait for one."""
        self._closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._reserved += 1
                waiter.set_result(None)

    async def close(self) -> None:
        """Close every connection, and wait for their end. Safe to call twice."""
        self.refuse()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        resets = set(self._resets)
        for task in resets:
            task.cancel()
        if resets:
            await asyncio.wait(resets)
        self._idle = []
        for connection in list(self._all):
            self.drop(connection)
        if self._closing:
            _, late = await asyncio.wait(set(self._closing), timeout=CLOSE_S)
            for task in late:
                task.cancel()

    def _has_room(self) -> bool:
        used = len(self._all) + self._reserved
        return used < self._size and used + len(self._closing) < 2 * self._size

    async def _open_reserved(self, timeout_s: float) -> ConnectionT:
        """Open a connection in a place that is reserved for it."""
        timeout_s = max(timeout_s, self._open_s)
        try:
            if self._closed:
                raise closed()
            async with asyncio.timeout(timeout_s):
                connection = await self._open()
        except BaseException as error:
            self._reserved -= 1
            self._wake()
            if not isinstance(error, TimeoutError):
                raise
        else:
            self._reserved -= 1
            if self._closed:  # who closed the pool did not wait for this one
                connection.close()
                await connection.closed()
                raise closed()
            self._all.add(connection)
            return connection
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"No connection to the server could be made within {timeout_s:.3g} s.",
        )

    async def _next(self, timeout_s: float, cancellation: Cancellation) -> ConnectionT | None:
        """Wait in line for a connection, or for a place to open one in (None)."""
        waiter: asyncio.Future[ConnectionT | None] = self._loop.create_future()
        self._waiting.append(waiter)

        def leave() -> None:
            if not waiter.done():
                waiter.set_exception(stopped(cancellation.reason or "cancelled"))

        cancellation.listen(leave)
        try:
            return await asyncio.wait_for(waiter, timeout_s)
        except (TimeoutError, asyncio.CancelledError) as error:
            came = waiter.done() and not waiter.cancelled() and waiter.exception() is None
            if came:  # in the same moment
                passed = waiter.result()
                if passed is None:
                    self._reserved -= 1
                    self._wake()
                else:
                    self._pass_on(passed)
            if isinstance(error, TimeoutError):
                raise TidegateError(
                    Code.SOURCE_BUSY, f"All {self._size} connections of this source are busy."
                ) from None
            raise
        finally:
            cancellation.forget(leave)

    def _pass_on(self, connection: ConnectionT) -> None:
        """Hand a connection to the caller who has waited longest, or keep it."""
        if self._closed or connection in self._outdated:
            self.drop(connection)
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._idle.append((connection, self._loop.time()))
        if self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_S, self._sweep_idle)

    def _wake(self) -> None:
        """Let those who have waited longest open connections where there is room."""
        while self._waiting and self._has_room():
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._reserved += 1
                waiter.set_result(None)

    def _reset(self, connection: ConnectionT, after: asyncio.Task[None] | None) -> None:
        task = self._loop.create_task(_ready(connection, after))
        self._resets.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._resets.discard(task)
            if task.cancelled() or task.exception() is not None:  # perhaps before it began
                self.drop(connection)
            else:
                self._pass_on(connection)

        task.add_done_callback(ended)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled():
            task.exception()
        self._wake()

    def _sweep_idle(self) -> None:
        """Close what has not been used for long, the last one excepted."""
        self._sweep = None
        before = self._loop.time() - IDLE_S
        while len(self._idle) > 1 and self._idle[0][1] <= before:
            connection, _ = self._idle.pop(0)
            self.drop(connection)
        if len(self._idle) > 1:
            self._sweep = self._loop.call_later(IDLE_S, self._sweep_idle)


def waits_of(pools: Iterable[Pool[Any]]) -> PoolWaits:
    """The waits for connections of all these pools."""
    found = list(pools)
    return PoolWaits(sum(each.waits for each in found), sum(each.waited_s for each in found))


async def _ready(connection: PooledConnection, after: asyncio.Task[None] | None) -> None:
    """Make a connection ready for the next caller. Raises: TidegateError if it is lost,
    TimeoutError if the server does not answer."""
    async with asyncio.timeout(RESET_S):
        if after is not None:
            await after
        await connection.reset()
