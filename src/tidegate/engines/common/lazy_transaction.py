"""A transaction that takes its connection late.

As long as a block only reads, and did not ask for one snapshot, its reads run as outside: under the
database's own fence for reads, and without holding anything. Its first change or savepoint takes a
connection, until the end. So what a block that may change data reads before its first change is
kept from changing anything by the database itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable
from time import monotonic
from typing import Generic, Protocol

from msgspec import structs

from tidegate.engines.api import Cursor
from tidegate.engines.common.buffered_cursor import BufferBudget, BufferedCursor
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.pool import ConnectionT
from tidegate.engines.common.running_statement import LEAST_S
from tidegate.engines.common.server_pool import OWN_S
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Query
from tidegate.model.transactions import MarkTransaction, TransactionModes

_SNAPSHOTS = ("repeatable read", "serializable")
_PLAIN = re.compile(r"[a-z0-9_]{1,60}")


class BlockConnections(Protocol[ConnectionT]):
    """What an engine does for its transactions. All but `leave` raise TidegateError."""

    def is_change(self, permit: Permit, /) -> Awaitable[bool]:
        """Whether the permit's statement changes data."""
        ...

    async def hold(
        self,
        modes: TransactionModes,
        database: str | None,
        timeout_s: float,
        cancellation: Cancellation,
    ) -> HeldConnection[ConnectionT]:
        """Take a connection."""
        ...

    async def enter(
        self, connection: ConnectionT, modes: TransactionModes, timeout_s: float
    ) -> None:
        """Begin the transaction on it."""
        ...

    async def mark(self, connection: ConnectionT, request: MarkTransaction) -> None:
        """Set a savepoint, let go of it, or go back to it."""
        ...

    async def keep(self, connection: ConnectionT, permit: Permit) -> None:
        """Give the permit's keeper the rows of the changes, before they are committed."""
        ...

    async def commit(self, connection: ConnectionT) -> None:
        """Keep the changes."""
        ...

    async def leave(self, connection: ConnectionT) -> None:
        """Undo what is left open. Raises: TidegateError if the connection has to be closed."""
        ...

    def run(
        self,
        held: HeldConnection[ConnectionT] | None,
        permit: Permit,
        cancellation: Cancellation,
        /,
    ) -> Awaitable[Cursor]:
        """Run a statement on the connection, or as outside if there is none."""
        ...


class LazyTransaction(Generic[ConnectionT]):
    """`engines.api.EngineTransaction` on a connection of the pool, once it has one."""

    def __init__(
        self,
        modes: TransactionModes,
        database: str | None,
        connections: BlockConnections[ConnectionT],
    ) -> None:
        self._modes = modes
        self._database = database
        self._connections = connections
        self._writes = modes.reads_only is False
        self._keeps_snapshot = modes.isolation in _SNAPSHOTS
        self._held: HeldConnection[ConnectionT] | None = None
        self._buffers = BufferBudget()
        self._ended = False
        self._used_at = monotonic()

    @property
    def idle_s(self) -> float:
        return monotonic() - self._used_at if self._held is None else self._held.idle_s

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        self._check_open()
        request = permit.request
        if request.database != self._database:
            raise TidegateError(Code.UNSUPPORTED, "A transaction stays in its database.")
        changes = await self._connections.is_change(permit)
        if changes and not self._writes:
            raise TidegateError(Code.POLICY_READ_ONLY, "The transaction only reads.")
        if self._held is None and (changes or self._keeps_snapshot):
            await self._begin(permit.limits.timeout_s, cancellation)
        cursor = await self._connections.run(self._held, permit, cancellation)
        if self._held is not None and isinstance(request, Query) and request.in_parts:
            most = request.limits.max_rows + 1
            cursor = await BufferedCursor.of(cursor, most, self._buffers)
        self._used_at = monotonic()
        return cursor

    async def mark(self, permit: Permit, cancellation: Cancellation) -> None:
        self._check_open()
        request = permit.request
        if not isinstance(request, MarkTransaction):
            raise TidegateError(Code.UNSUPPORTED, "A transaction has savepoints, and no more.")
        if request.action == "read only":
            self._writes = False
            return
        if self._held is None:
            if not self._writes:
                return  # nothing is held, and nothing can be undone
            await self._begin(permit.limits.timeout_s, cancellation)
        held = self._open_held()
        running = await held.start(permit.limits.timeout_s, cancellation, short=True)
        async with running as connection:
            await self._connections.mark(connection, _by_exact_name(request))
            running.release()

    async def commit(self, permit: Permit, cancellation: Cancellation) -> None:
        self._check_open()
        try:
            if self._held is not None:
                held, timeout_s = self._held, permit.limits.timeout_s
                running = await held.start(timeout_s, cancellation, writes=True)
                async with running as connection:
                    if permit.keeper is not None:
                        await self._connections.keep(connection, permit)
                    running.committing = True
                    await self._connections.commit(connection)
                    running.release()
        finally:
            await self.rollback()

    async def rollback(self) -> None:
        held, self._ended = self._held, True
        if held is None:
            return
        if held.alive:
            try:
                running = await held.start(OWN_S, NEVER, short=True)
                async with running as connection:
                    await self._connections.leave(connection)
                    running.release()
            except TidegateError:
                held.drop()  # the database undoes what loses its connection
        held.release()

    async def _begin(self, timeout_s: float, cancellation: Cancellation) -> None:
        until = monotonic() + timeout_s
        modes = self._modes
        held = await self._connections.hold(modes, self._database, timeout_s, cancellation)
        try:
            left_s = max(LEAST_S, until - monotonic())
            running = await held.start(left_s, cancellation, short=True)
            async with running as connection:
                await self._connections.enter(connection, modes, left_s)
                running.release()
        except BaseException:
            held.drop()
            raise
        self._held = held

    def _open_held(self) -> HeldConnection[ConnectionT]:
        if self._held is None:
            raise TidegateError(Code.INTERNAL, "A transaction without a connection.")
        return self._held

    def _check_open(self) -> None:
        if self._ended:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "The transaction has ended.")


def _by_exact_name(request: MarkTransaction) -> MarkTransaction:
    """The request with a name that the database takes for no other one. Databases here compare the
    names of savepoints without case, and perhaps without accents: what a caller goes back to would
    not be what is known of it here."""
    if _PLAIN.fullmatch(request.name):
        return request
    name = hashlib.sha256(request.name.encode("utf-8", "surrogatepass")).hexdigest()
    return structs.replace(request, name=f"s-{name[:40]}")
