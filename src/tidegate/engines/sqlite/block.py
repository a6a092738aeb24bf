"""Transactions over several statements (`engines/common/lazy_transaction.py`).

SQLite has one writer at a time, and a file without a write-ahead log takes no change while a
snapshot is open. So a block holds a connection as late as it can, and the one that writes from its
first change on: BEGIN IMMEDIATE then cannot fail because another one has written meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from tidegate.engines.api import Cursor
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.server_pool import OWN_S
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.transactions import MarkTransaction, TransactionModes
from tidegate.sql.dialects import find

_quote = find("sqlite").quote


class SqliteBlocks:
    """The threads of an engine, as transactions use them."""

    def __init__(
        self,
        hold: Callable[[bool, float, Cancellation], Awaitable[HeldConnection[WorkerThread]]],
        run: Callable[
            [HeldConnection[WorkerThread] | None, Permit, Cancellation], Awaitable[Cursor]
        ],
        is_change: Callable[[Permit], Awaitable[bool]],
    ) -> None:
        self._hold = hold
        self.run = run
        self.is_change = is_change

    async def hold(
        self,
        modes: TransactionModes,
        database: str | None,
        timeout_s: float,
        cancellation: Cancellation,
    ) -> HeldConnection[WorkerThread]:
        return await self._hold(modes.reads_only is False, timeout_s, cancellation)

    async def enter(
        self, connection: WorkerThread, modes: TransactionModes, timeout_s: float
    ) -> None:
        writes = modes.reads_only is False
        await _do(connection, lambda session: session.enter_block(writes=writes), timeout_s)

    async def mark(self, connection: WorkerThread, request: MarkTransaction) -> None:
        text = f"{request.action.upper()} {_quote(request.name)}"
        await _do(connection, lambda session: session.execute_in_block(text))

    async def keep(self, connection: WorkerThread, permit: Permit) -> None:
        keeper = permit.keeper
        if keeper is not None:
            work = partial(SqliteSession.keep_block, keeper=keeper)
            await _do(connection, work, permit.limits.timeout_s)

    async def commit(self, connection: WorkerThread) -> None:
        await _do(connection, SqliteSession.commit_block)

    async def leave(self, connection: WorkerThread) -> None:
        await _do(connection, SqliteSession.leave_block)


async def _do(
    worker: WorkerThread, work: Callable[[SqliteSession], None], timeout_s: float = OWN_S
) -> None:
    """Have the thread do something of ours. Raises: TidegateError."""
    worker.progress_handler = progress_handler = ProgressHandler(timeout_s)

    def stepped(session: SqliteSession) -> None:
        with session.stepping(progress_handler):
            work(session)

    await worker.do(stepped)
