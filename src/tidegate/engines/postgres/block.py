"""A transaction over several statements, on a session that it holds.

Each statement is one group: its settings (time limit, search path, role), then itself. In a
transaction that may change data a statement that was judged to read runs in a subtransaction that
only reads, so that the server enforces it as it does outside. A result that is read in parts is a
cursor of the server, so that other statements can run between its parts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple

from psycopg.pq.abc import PGresult

from tidegate.engines.api import Cursor, Row, RowCollector
from tidegate.engines.common.block_rows import BlockRows
from tidegate.engines.common.buffered_cursor import BufferBudget, BufferedCursor
from tidegate.engines.common.errors import lost
from tidegate.engines.common.held_connection import HeldConnection, ReaderCancellation
from tidegate.engines.common.running_statement import LEAST_S, RunningStatement
from tidegate.engines.common.server_pool import OWN_S
from tidegate.engines.common.undo_rows import outline_of
from tidegate.engines.postgres.command_protocol import FAILED, Params
from tidegate.engines.postgres.connection import COMMIT, ROLLBACK, CatalogRules, PostgresSession
from tidegate.engines.postgres.cursor import CHUNKS, ChunkReader, PostgresCursor
from tidegate.engines.postgres.data_rows import ENCODED_VALUES, DataRowPostgresCursor
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.row_counts import counter_of
from tidegate.engines.postgres.schema_state import SAME_RULES
from tidegate.engines.postgres.transaction import TransactionSettings, Tuning, settings_query
from tidegate.engines.postgres.types import Reader, Rows, TypeCache, shape_of
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.changes import ChangeKeeper
from tidegate.model.decisions import Permit
from tidegate.model.results import Column
from tidegate.model.sources import Identity
from tidegate.model.transactions import MarkTransaction, TransactionModes
from tidegate.sql.dialects import find

FETCH_ROWS = 512
"""Rows of a cursor that are fetched at once for a reader that does not say how many it wants."""

_quote = find("postgres").quote
_READ_ONLY = b"SET TRANSACTION READ ONLY"
_Command = tuple[bytes, Params]


class _Guard:
    """The subtransaction in which a statement only reads. Its name is one that no client uses for a
    savepoint of its own: one that fails leaves it, and the client goes back past it."""

    def __init__(self, name: str) -> None:
        self.before: list[_Command] = [(f"SAVEPOINT {name}".encode(), None), (_READ_ONLY, None)]
        self.after: list[_Command] = [(f"RELEASE SAVEPOINT {name}".encode(), None)]


class BlockStatement(NamedTuple):
    """A statement that was admitted, and what it runs with. `left_s` is what is left of
    `limit_s`. `form` is the format code in which its rows go on as the server has encoded them;
    None: they are decoded."""

    text: str
    encoded: bytes
    params: Params
    schema: bytes | None
    identity: Identity | None
    tuning: Tuning
    left_s: float
    limit_s: float
    writes: bool
    as_cursor: bool
    types: TypeCache
    form: int | None = None
    permit: Permit | None = None


RunStatement = Callable[
    ["PostgresTransaction", Permit, Cancellation],
    Awaitable[Cursor],
]


class PostgresTransaction:
    """`engines.api.EngineTransaction` on a session of the pool."""

    def __init__(
        self,
        held: HeldConnection[PostgresSession],
        modes: TransactionModes,
        database: str | None,
        run: RunStatement,
    ) -> None:
        """`run` admits a statement and starts it here."""
        self._held = held
        self._modes = modes
        self._run = run
        self._writes = modes.reads_only is False
        self._guard = _Guard(f"tidegate_{os.urandom(8).hex()}") if self._writes else None
        self._cursors = 0
        self._rows = BlockRows()
        self.database = database
        self.settings_seen: set[str] = set()
        """The names of the settings that statements had here so far."""

    @property
    def writes(self) -> bool:
        """Whether it may change data."""
        return self._writes

    @property
    def sees_changes(self) -> bool:
        """Whether each statement sees what others have committed by then."""
        return (self._modes.isolation or "read committed") == "read committed"

    async def has_rules(self, rules: CatalogRules) -> bool:
        """Whether the catalog has, as the transaction sees it now, the rules by which a statement
        was judged. Raises: TidegateError."""
        if rules.seen is None:
            return True
        moment, state = rules.seen
        running = await self._held.start(OWN_S, NEVER, short=True)
        async with running as session:
            query = (SAME_RULES, [moment.encode(), state.encode()])
            result = await session.begin_in_block(query, before=0)
            found = None if result.status in FAILED else result.get_value(0, 0)
            await session.be_ready_in_block()
            running.release()
        return found == b"t"

    @property
    def idle_s(self) -> float:
        return self._held.idle_s

    async def begin(self, timeout_s: float, cancellation: Cancellation) -> None:
        """Begin it at the server. Raises: TidegateError; the connection is given back then."""
        try:
            running = await self._held.start(timeout_s, cancellation)
            async with running as session:
                await session.enter_block(_begin(self._modes))
                running.release()
        except BaseException:
            await self.rollback()
            raise

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        return await self._run(self, permit, cancellation)

    async def start(self, statement: BlockStatement, cancellation: Cancellation) -> Cursor:
        """Start an admitted statement. Raises: TidegateError."""
        permit = statement.permit
        if statement.writes and permit is not None and permit.keeper is not None:
            kept = await self._start_kept(statement, permit, permit.keeper, cancellation)
            if kept is not None:
                return kept
        if statement.as_cursor:
            self._cursors += 1
            name = b"tidegate_%d" % self._cursors
            return await PartsCursor.open(self._held, statement, name, self._guard, cancellation)
        follower = ReaderCancellation()
        follower.follow(cancellation)
        try:
            running = await self._held.start(
                statement.left_s, follower, writes=statement.writes, limit_s=statement.limit_s
            )
            async with running as session:
                guard = None if statement.writes else self._guard
                counter = counter_of(statement.permit) if statement.writes else None
                if counter is not None and counter.before is not None:
                    look = (counter.before, None)
                    counter.begin(await session.begin_in_block(look, before=0))
                before = _before(statement, session, running.timeout_ms, guard)
                after = [] if guard is None else guard.after
                first = await session.begin_in_block(
                    *before,
                    (statement.encoded, statement.params),
                    *after,
                    before=len(before),
                    after=len(after),
                    identity=statement.identity,
                    form=statement.form or 0,
                )
                if first.status in FAILED:
                    raise translate(first)
                types, shape = statement.types, shape_of(first)
                columns, reader = types.known(shape) or await types.columns(shape)
                text = statement.text
                if statement.form is None:
                    cursor = BlockCursor(running, first, columns, reader, text, follower)
                else:
                    cursor = DataRowBlockCursor(
                        running, first, columns, ENCODED_VALUES, text, follower
                    )
                cursor.counter = counter
                if first.status in CHUNKS:
                    cursor.look_for_end()
                else:
                    await cursor.finish(first)
                return cursor
        except BaseException:
            follower.stop_following()
            raise

    async def _start_kept(
        self,
        statement: BlockStatement,
        permit: Permit,
        keeper: ChangeKeeper,
        cancellation: Cancellation,
    ) -> Cursor | None:
        """Run a change whose rows are kept at the COMMIT; None if they cannot be, by its text
        alone."""
        from tidegate.engines.postgres import changes  # needed only where changes are kept

        params = statement.params or ()
        outline = outline_of(statement.text, "postgres", len(params))
        if isinstance(outline, str):
            self._rows.give_up(outline)
            await asyncio.to_thread(keeper.give_up, outline)
            return None
        running = await self._held.start(
            statement.left_s, cancellation, writes=True, limit_s=statement.limit_s
        )
        async with running as session:
            await session.be_ready_in_block()
            settings = _before(statement, session, running.timeout_ms, None)
            change = changes.Change(
                *(statement.encoded, params, outline, permit, keeper.max_bytes),
                statement.tuning,
            )
            ran = await changes.run_in_block(session, settings, change, keeper, self._rows)
            columns, reader = await statement.types.columns(shape_of(ran.result))
            width = ran.width
            rows: list[Row] = [row[:width] for row in reader.rows(ran.result)] if width else []
            running.release()
        budget, counted = BufferBudget(), ran.counted
        return BufferedCursor(columns[:width], rows, ran.affected, budget, counted=counted)

    async def mark(self, permit: Permit, cancellation: Cancellation) -> None:
        request = permit.request
        if not isinstance(request, MarkTransaction):
            raise TidegateError(Code.UNSUPPORTED, "A transaction has savepoints, and no more.")
        if request.action == "read only":
            command = _READ_ONLY
        else:
            verb = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(
                request.action, "ROLLBACK TO SAVEPOINT"
            )
            command = f"{verb} {_quote(request.name)}".encode()
        running = await self._held.start(permit.limits.timeout_s, cancellation, short=True)
        async with running as session:
            result = await session.begin_in_block((command, None), before=0)
            if result.status in FAILED:
                raise translate(result)
            running.release()
        self._rows.marked(request)

    async def commit(self, permit: Permit, cancellation: Cancellation) -> None:
        """A transaction that only reads is rolled back, which changes nothing."""
        if not self._writes:
            await self.rollback()
            return
        try:
            running = await self._held.start(permit.limits.timeout_s, cancellation, writes=True)
            async with running as session:
                counter = counter_of(permit)
                if counter is not None:
                    await counter.start(session)
                    await counter.end(session, 0, deferred=True)
                if permit.keeper is not None:
                    from tidegate.engines.postgres.changes import keep_block

                    await session.be_ready_in_block()
                    tuned = tuple([(name, "") for name in sorted(self.settings_seen)])
                    await keep_block(session, self._rows, permit.keeper, tuned)
                running.committing = True
                result = await session.end(COMMIT)
                if result.status in FAILED:
                    raise translate(result)
                if result.command_status != COMMIT:
                    raise TidegateError(
                        Code.SQL_FAILED,
                        "The transaction had failed: it was rolled back.",
                        details={"sqlstate": "25P02"},
                    )
                running.release()
        finally:
            self._release()

    async def rollback(self) -> None:
        held = self._held
        if held.alive:
            try:
                running = await held.start(OWN_S, NEVER, short=True)
                async with running as session:
                    await session.end(ROLLBACK)
                    running.release()
            except TidegateError:
                held.drop()  # the server rolls back what loses its connection
        self._release()

    def _release(self) -> None:
        session = self._held.connection
        if session is not None:
            session.in_block = False
        self._held.release()


class BlockCursor(PostgresCursor):
    """A statement of a transaction. One that is not read to its end is, when it is closed: to
    interrupt it would spoil the transaction."""

    __slots__ = ("_follower",)

    def __init__(
        self,
        running: RunningStatement[PostgresSession],
        first: PGresult,
        columns: tuple[Column, ...],
        reader: ChunkReader,
        text: str,
        follower: ReaderCancellation,
    ) -> None:
        super().__init__(running, first, columns, reader, text, commits=False)
        self._follower = follower

    async def close(self) -> None:
        try:
            while await self._more():
                pass
        except TidegateError:
            pass  # the transaction shows it at its next statement
        finally:
            self._follower.stop_following()
            await super().close()


class DataRowBlockCursor(BlockCursor, DataRowPostgresCursor):
    """The same, whose rows go on as the server has encoded them."""

    __slots__ = ()


class PartsCursor:
    """A result that is read in parts: `DECLARE`, and a `FETCH` for each part. Between two of them
    the connection is free for other statements."""

    __slots__ = (
        "_cancellation",
        "_ended",
        "_first",
        "_guard",
        "_held",
        "_name",
        "_reader",
        "_statement",
        "affected",
        "columns",
    )

    def __init__(
        self,
        held: HeldConnection[PostgresSession],
        statement: BlockStatement,
        name: bytes,
        guard: _Guard | None,
        cancellation: ReaderCancellation,
    ) -> None:
        self.columns: tuple[Column, ...] = ()
        self.affected = 0
        self._held = held
        self._statement = statement
        self._name = name
        self._guard = guard
        self._cancellation = cancellation
        self._reader: Reader | None = None
        self._ended = False
        self._first: Rows = []

    @classmethod
    async def open(
        cls,
        held: HeldConnection[PostgresSession],
        statement: BlockStatement,
        name: bytes,
        guard: _Guard | None,
        cancellation: Cancellation,
    ) -> PartsCursor:
        """Declare the cursor and find its columns. Raises: TidegateError."""
        follower = ReaderCancellation()
        follower.follow(cancellation)
        cursor = cls(held, statement, name, guard, follower)
        declare = b"DECLARE %s NO SCROLL CURSOR FOR %s" % (name, statement.encoded)
        try:
            cursor._first = await cursor._fetched(1, (declare, statement.params))
        except BaseException:
            follower.stop_following()
            raise
        return cursor

    async def fetch(self, max_rows: int) -> list[Row]:
        first, self._first = self._first[:max_rows], self._first[max_rows:]
        rows: list[Row] = list(first)
        if not self._ended and len(rows) < max_rows:
            rows += await self._fetched(max_rows - len(rows))
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(await self.fetch(min(wanted, FETCH_ROWS)))

    async def close(self) -> None:
        self._cancellation.stop_following()
        if self._ended or not self._held.alive:
            return
        self._ended = True
        try:
            running = await self._held.start(OWN_S, NEVER, short=True)
            async with running as session:
                await session.begin_in_block((b"CLOSE " + self._name, None), before=0)
                running.release()
        except TidegateError:
            pass  # in a transaction that has failed there are no cursors any more

    async def _fetched(self, count: int, *declare: _Command) -> Rows:
        statement = self._statement
        began = monotonic()
        left_s = statement.left_s if declare else statement.limit_s
        running = await self._held.start(
            max(LEAST_S, left_s - (monotonic() - began)),
            self._cancellation,
            limit_s=statement.limit_s,
            short=True,
        )
        rows: Rows = []
        async with running as session:
            guard = self._guard
            before = _before(statement, session, running.timeout_ms, guard)
            after = [] if guard is None else guard.after
            fetch = b"FETCH FORWARD %d FROM %s" % (count, self._name)
            result = await session.begin_in_block(
                *before,
                *declare,
                (fetch, None),
                *after,
                before=len(before) + len(declare),
                after=len(after),
                identity=statement.identity,
            )
            if self._reader is None and result.status not in FAILED:
                types, shape = statement.types, shape_of(result)
                self.columns, self._reader = types.known(shape) or await types.columns(shape)
            while result.status in CHUNKS and self._reader is not None:
                rows += self._reader.rows(result)
                following = await session.line.result()
                if following is None:
                    raise lost()
                result = following
            if result.status in FAILED:
                raise translate(result)
            running.release()
        self._ended = len(rows) < count
        return rows


def _before(
    statement: BlockStatement, session: PostgresSession, timeout_ms: int, guard: _Guard | None
) -> list[_Command]:
    """The commands before a statement: each sets all that an earlier one may have set."""
    path = statement.schema or session.setting.path.encode()
    settings = TransactionSettings(timeout_ms, path, statement.identity, statement.tuning)
    return [settings_query(settings), *(() if guard is None else guard.before)]


def _begin(modes: TransactionModes) -> bytes:
    words = [f"ISOLATION LEVEL {(modes.isolation or 'read committed').upper()}"]
    words.append("READ WRITE" if modes.reads_only is False else "READ ONLY")
    if modes.deferrable is not None:
        words.append("DEFERRABLE" if modes.deferrable else "NOT DEFERRABLE")
    return f"BEGIN {' '.join(words)}".encode()
