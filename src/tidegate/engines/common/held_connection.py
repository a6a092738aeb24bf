"""A connection that one transaction keeps for several statements.

It replaces the pool for them: each is a `RunningStatement` with its own time limit
and cancellation, which gives the connection back here. The pool gets it when the transaction ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Generic

from tidegate.engines.common.pool import ConnectionT, Pool
from tidegate.engines.common.running_statement import RunningStatement, RunningStatements
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import READ_ENOUGH, Cancellation


class HeldConnection(Generic[ConnectionT]):
    """A connection of `pool`, until `release`. Used on the event loop only."""

    def __init__(
        self,
        pool: Pool[ConnectionT],
        connection: ConnectionT,
        running: RunningStatements[ConnectionT],
    ) -> None:
        self._pool = pool
        self._connection: ConnectionT | None = connection
        self._running = running
        self._loop = asyncio.get_running_loop()
        self._under_way = False
        self._short = False
        self._free = asyncio.Event()
        self._free.set()
        self._interrupt: asyncio.Task[None] | None = None
        self._used_at = self._loop.time()

    @property
    def idle_s(self) -> float:
        """Seconds since the last statement ended; 0 while one is under way."""
        return 0.0 if self._under_way else self._loop.time() - self._used_at

    @property
    def alive(self) -> bool:
        """Whether the connection can be used, as far as is known."""
        return self._connection is not None and self._connection.alive

    @property
    def connection(self) -> ConnectionT | None:
        """The connection; None after `release`."""
        return self._connection

    async def start(
        self,
        timeout_s: float,
        cancellation: Cancellation,
        *,
        writes: bool = False,
        limit_s: float | None = None,
        short: bool = False,
    ) -> RunningStatement[ConnectionT]:
        """Begin the next statement. A `short` one ends by itself, and the next one waits for it.

        Raises: TidegateError SOURCE_NOT_CONNECTED after `release`, UNSUPPORTED while another one
        gives its rows.
        """
        while self._under_way or self._interrupt is not None:
            if self._interrupt is not None:
                await asyncio.wait({self._interrupt})
                self._interrupt = None
            elif self._short:
                await self._free.wait()
            else:
                raise TidegateError(
                    Code.UNSUPPORTED,
                    "Another result of this transaction is still being read.",
                    hint="Read it to its end or close it, then send the statement.",
                )
        connection = self._connection
        if connection is None or not connection.alive:
            raise TidegateError(
                Code.SOURCE_NOT_CONNECTED,
                "The connection of the transaction was lost. Its changes were not kept.",
                hint="Roll back, and begin again.",
            )
        self._under_way, self._short = True, short
        self._free.clear()
        return RunningStatement(
            self, connection, timeout_s, cancellation, self._running, writes=writes, limit_s=limit_s
        )

    def give(self, connection: ConnectionT, after: asyncio.Task[None] | None = None) -> None:
        """Take the connection back from a statement that has ended (`running_statement.Owner`)."""
        self._interrupt, self._under_way = after, False
        self._used_at = self._loop.time()
        self._free.set()

    def release(self) -> None:
        """Give the connection to the pool, which makes it ready for the next caller. Safe to call
        twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            interrupt, self._interrupt = self._interrupt, None
            self._pool.give(connection, interrupt)

    def drop(self) -> None:
        """Close the connection. Safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.drop(connection)


class ReaderCancellation(Cancellation):
    """The cancellation of a statement whose transaction goes on when its reader wants no more
    rows: that alone does not stop what runs. `stop_following` ends it."""

    _caller: Cancellation | None = None
    _relay: Callable[[], None] | None = None

    def follow(self, caller: Cancellation) -> None:
        """Be cancelled when the caller is, for any other reason."""

        def relay() -> None:
            if caller.reason is not None and caller.reason != READ_ENOUGH:
                self.cancel(caller.reason)

        self._caller, self._relay = caller, relay
        caller.listen(relay)

    def stop_following(self) -> None:
        """Forget the caller."""
        if self._caller is not None and self._relay is not None:
            with suppress(ValueError):
                self._caller.forget(self._relay)
        self._caller = self._relay = None
