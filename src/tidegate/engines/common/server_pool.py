"""Decides how a database server is used by an engine: a pool of sessions for each database on it,
and each statement an errand of its own until the source is closed.

An engine gives how a session is opened; what is sent on it is the engine's own (`engines/mysql`,
`engines/postgres`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic

from tidegate.engines.common.errors import closed
from tidegate.engines.common.pool import Pool, SessionT
from tidegate.engines.common.running_statement import BorrowedSession, RunningStatement, end_all
from tidegate.model.cancellation import NEVER, Cancellation

OWN_S = 10.0
"""The time limit of what we ask for ourselves."""

LEAST_S = 0.001
"""What the wait for a session leaves of a time limit at least. A shorter wait takes nothing of it:
a session that was told the same limit before need not be told again."""


class ServerPool(Generic[SessionT]):
    """One server. `open_session` connects to a database of it, None standing for `home`, where the
    source's URL leads and where `first` is connected."""

    def __init__(
        self,
        open_session: Callable[[str | None], Awaitable[SessionT]],
        size: int,
        first: SessionT,
        home: str | None,
    ) -> None:
        self._open = open_session
        self._size = size
        self.home = Pool(lambda: open_session(None), size, first)
        self._pools: dict[str | None, Pool[SessionT]] = {None: self.home, home: self.home}
        self.running: set[RunningStatement[SessionT]] = set()
        self._closed = False

    async def start(
        self,
        timeout_s: float,
        cancellation: Cancellation,
        database: str | None = None,
        *,
        writes: bool = False,
    ) -> RunningStatement[SessionT]:
        """A session for one statement; the wait for it counts as the statement's time.

        Raises: TidegateError SOURCE_BUSY, SOURCE_UNREACHABLE, SOURCE_NOT_CONNECTED.
        """
        pool = self._pool(database)
        began = monotonic()
        session = await pool.take(timeout_s)
        waited = monotonic() - began
        left_s = timeout_s if waited < LEAST_S else max(LEAST_S, timeout_s - waited)
        return RunningStatement(pool, session, left_s, cancellation, self.running, writes=writes)

    def borrowed(
        self,
        timeout_s: float = OWN_S,
        cancellation: Cancellation = NEVER,
        database: str | None = None,
    ) -> BorrowedSession[SessionT]:
        """A session for questions of ours: `async with`."""
        return BorrowedSession(self._pool(database), timeout_s, cancellation, self.running)

    def check_open(self) -> None:
        """Raises: TidegateError SOURCE_NOT_CONNECTED after `close`."""
        if self._closed:
            raise closed()

    async def close(self) -> None:
        """End what runs, and every connection. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await end_all(set(self._pools.values()), self.running)

    def _pool(self, database: str | None) -> Pool[SessionT]:
        pool = self._pools.get(database)
        if pool is None:
            pool = self._pools[database] = Pool(lambda: self._open(database), self._size)
        return pool
