"""A database server as an engine uses it: one pool of connections for each database on it.

An engine says how a connection is opened; what is sent on it is the engine's own
(`products/mysql/engine`, `engines/postgres`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic

from tidegate.engines.api import PoolWaits
from tidegate.engines.common.errors import closed
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.pool import ConnectionT, Pool, waits_of
from tidegate.engines.common.running_statement import (
    BorrowedConnection,
    RunningStatement,
    RunningStatements,
    end_all,
    start,
)
from tidegate.model.cancellation import NEVER, Cancellation

OWN_S = 10.0
"""The time limit of what we ask for ourselves."""


class ServerPool(Generic[ConnectionT]):
    """One server. `open_connection` connects to a database of it; None means `home`, where the
    source's URL leads and where `first` is connected."""

    def __init__(
        self,
        open_connection: Callable[[str | None], Awaitable[ConnectionT]],
        size: int,
        first: ConnectionT,
        home: str | None,
    ) -> None:
        self._open = open_connection
        self._size = size
        self.home = Pool(lambda: open_connection(None), size, first)
        self._pools: dict[str | None, Pool[ConnectionT]] = {None: self.home, home: self.home}
        self.running: RunningStatements[ConnectionT] = RunningStatements()
        self.closed = False

    @property
    def open_connections(self) -> int:
        """Those that are open to any database of the server, idle or not."""
        return sum(len(pool.connections) for pool in {*self._pools.values()})

    @property
    def waits(self) -> PoolWaits:
        """The waits for connections to any database of the server."""
        return waits_of({*self._pools.values()})

    def start(
        self,
        timeout_s: float,
        cancellation: Cancellation,
        database: str | None = None,
        *,
        writes: bool = False,
        limit_s: float | None = None,
    ) -> Awaitable[RunningStatement[ConnectionT]]:
        """A connection for one statement; the wait for it counts as the statement's time, of which
        `timeout_s` is left. Errors name `limit_s`.

        Raises: TidegateError SOURCE_BUSY, SOURCE_UNREACHABLE, SOURCE_NOT_CONNECTED.
        """
        pool = self._pool(database)
        return start(pool, timeout_s, cancellation, self.running, writes=writes, limit_s=limit_s)

    async def hold(
        self, timeout_s: float, cancellation: Cancellation, database: str | None = None
    ) -> HeldConnection[ConnectionT]:
        """A connection for one transaction, until it is released.

        Raises: TidegateError SOURCE_BUSY, CALL_CANCELLED, SOURCE_UNREACHABLE, SOURCE_NOT_CONNECTED.
        """
        pool = self._pool(database)
        return HeldConnection(pool, await pool.take(timeout_s, cancellation), self.running)

    def borrowed(
        self,
        timeout_s: float = OWN_S,
        cancellation: Cancellation = NEVER,
        database: str | None = None,
    ) -> BorrowedConnection[ConnectionT]:
        """A connection for questions of ours: `async with`."""
        return BorrowedConnection(self._pool(database), timeout_s, cancellation, self.running)

    def renew(self) -> None:
        """Replace every connection: idle ones now, the others when they are given back."""
        for pool in {*self._pools.values()}:
            pool.renew()

    def check_open(self) -> None:
        """Raises: TidegateError SOURCE_NOT_CONNECTED after `close`."""
        if self.closed:
            raise closed()

    async def close(self) -> None:
        """End what runs, and every connection. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        await end_all(set(self._pools.values()), self.running)

    def _pool(self, database: str | None) -> Pool[ConnectionT]:
        pool = self._pools.get(database)
        if pool is None:
            pool = self._pools[database] = Pool(lambda: self._open(database), self._size)
        return pool
