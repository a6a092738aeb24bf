"""Transactions over several statements (`engines/common/lazy_transaction.py`).

The session stays `TRANSACTION READ ONLY`: START TRANSACTION READ WRITE lifts that for one
transaction alone. If the server ends it by itself, what follows is refused, and not committed one
by one. Within such a transaction the server has no fence for a statement that reads: it is prepared
before, and refused unless the server and the judge both take it for a read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tidegate.engines.api import Cursor
from tidegate.engines.common.block_rows import BlockRows
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.server_pool import ServerPool
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Query
from tidegate.model.statements import Effect
from tidegate.model.transactions import MarkTransaction, TransactionModes
from tidegate.products.mysql.engine.connection import MysqlSession
from tidegate.sql.dialects import find

_quote = find("mysql").quote


class MysqlBlocks:
    """The sessions of an engine, as transactions use them."""

    def __init__(
        self,
        server: ServerPool[MysqlSession],
        run: Callable[
            [HeldConnection[MysqlSession] | None, Permit, Cancellation], Awaitable[Cursor]
        ],
        rows: BlockRows,
    ) -> None:
        """`rows` are those that the transaction has touched: `run` adds to them."""
        self._server = server
        self._rows = rows
        self.run = run

    async def is_change(self, permit: Permit) -> bool:
        return isinstance(permit.request, Query) and permit.effect > Effect.READ

    async def hold(
        self,
        modes: TransactionModes,
        database: str | None,
        timeout_s: float,
        cancellation: Cancellation,
    ) -> HeldConnection[MysqlSession]:
        return await self._server.hold(timeout_s, cancellation)

    async def enter(
        self, connection: MysqlSession, modes: TransactionModes, timeout_s: float
    ) -> None:
        isolation = (modes.isolation or "read committed").upper()
        await connection.enter_block(isolation.encode(), writes=modes.reads_only is False)

    async def mark(self, connection: MysqlSession, request: MarkTransaction) -> None:
        verb = "RELEASE SAVEPOINT" if request.action == "release" else request.action.upper()
        await connection.execute_in_block(f"{verb} {_quote(request.name)}".encode())
        self._rows.marked(request)

    async def keep(self, connection: MysqlSession, permit: Permit) -> None:
        from tidegate.products.mysql.engine.changes import keep_block  # only to keep changes

        if permit.keeper is not None:
            await connection.be_ready_in_block()
            await keep_block(connection, self._rows, permit.keeper)

    async def commit(self, connection: MysqlSession) -> None:
        await connection.commit_block()

    async def leave(self, connection: MysqlSession) -> None:
        await connection.leave_block()
