"""A transaction over several statements.

SQLite has one writer at a time, and a file without a write-ahead log takes no change while a
snapshot is open. So as long as a block only reads, and did not ask for one snapshot, its reads run
as outside and hold nothing. Its first change or savepoint takes the connection that writes, until
the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic

from tidegate.engines.api import Cursor
from tidegate.engines.common.buffered_cursor import BufferedCursor
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.common.server_pool import OWN_S
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Query
from tidegate.model.transactions import MarkTransaction, TransactionModes
from tidegate.sql.dialects import find

Held = HeldConnection[WorkerThread]
RunHeld = Callable[[Held | None, Permit, Cancellation], Awaitable[Cursor]]
_quote = find("sqlite").quote
_SNAPSHOTS = ("repeatable read", "serializable")


class SqliteTransaction:
    """`engines.api.EngineTransaction` on a thread of the pool, once it has one."""

    def __init__(
        self,
        modes: TransactionModes,
        hold: Callable[[bool, float], Awaitable[Held]],
        run: RunHeld,
        changes: Callable[[Permit], Awaitable[bool]],
    ) -> None:
        """`hold` gives a connection, `run` runs a statement on one or as outside, and `changes`
        says whether a permit's statement is a change."""
        self._writes = modes.reads_only is False
        self._keeps_snapshot = modes.isolation in _SNAPSHOTS
        self._hold = hold
        self._run = run
        self._changes = changes
        self._held: Held | None = None
        self._ended = False
        self._used_at = monotonic()

    @property
    def idle_s(self) -> float:
        return monotonic() - self._used_at if self._held is None else self._held.idle_s

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        self._check_open()
        changes = await self._changes(permit)
        if changes and not self._writes:
            raise TidegateError(Code.POLICY_READ_ONLY, "The transaction only reads.")
        if self._held is None and (changes or self._keeps_snapshot):
            await self._begin(permit.limits.timeout_s, cancellation)
        cursor = await self._run(self._held, permit, cancellation)
        request = permit.request
        if self._held is not None and isinstance(request, Query) and request.in_parts:
            cursor = await BufferedCursor.of(cursor, request.limits.max_rows + 1)
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
        if self._held is None and not self._writes:
            return  # nothing is held, and nothing can be undone
        if self._held is None:
            await self._begin(permit.limits.timeout_s, cancellation)
        verb = request.action.upper()
        text = f"{verb} {_quote(request.name)}"
        await self._own(lambda session: session.execute_in_block(text), OWN_S, cancellation)

    async def commit(self, permit: Permit, cancellation: Cancellation) -> None:
        self._check_open()
        try:
            if self._held is not None:
                await self._own(SqliteSession.commit_block, OWN_S, cancellation, commits=True)
        finally:
            await self.rollback()

    async def rollback(self) -> None:
        held, self._ended = self._held, True
        if held is None:
            return
        if held.alive:
            try:
                await self._own(SqliteSession.leave_block, OWN_S, NEVER)
            except TidegateError:
                held.drop()  # closing the connection undoes what it has open
        held.release()

    async def _begin(self, timeout_s: float, cancellation: Cancellation) -> None:
        held = self._held = await self._hold(self._writes, timeout_s)
        try:
            writes = self._writes
            await self._own(
                lambda session: session.enter_block(writes=writes), timeout_s, cancellation
            )
        except BaseException:
            self._held = None
            held.drop()
            raise

    async def _own(
        self,
        work: Callable[[SqliteSession], None],
        timeout_s: float,
        cancellation: Cancellation,
        *,
        commits: bool = False,
    ) -> None:
        """Have the thread do something of ours. Raises: TidegateError."""
        held = self._held
        if held is None:
            return
        progress_handler = ProgressHandler(timeout_s)
        running: RunningStatement[WorkerThread] = await held.start(
            timeout_s, cancellation, writes=commits, short=True
        )
        running.connection().progress_handler = progress_handler

        def stepped(session: SqliteSession) -> None:
            with session.stepping(progress_handler):
                work(session)

        async with running as worker:
            running.committing = commits
            await worker.do(stepped)
            running.release()

    def _check_open(self) -> None:
        if self._ended:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "The transaction has ended.")
