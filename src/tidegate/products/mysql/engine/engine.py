"""MySQL and MariaDB as an engine: inspect a statement, take a session, run it.

`inspect.py` says what a text may do, `connection.py` has the fence around it, and
`engines/common/running_statement.py` ends it when its time is up.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache, partial

from msgspec import structs

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    Lease,
    PoolWaits,
    StatementDescription,
)
from tidegate.engines.common.block_rows import BlockRows
from tidegate.engines.common.buffered_cursor import BufferBudget, BufferedCursor
from tidegate.engines.common.dry_run import UNREAD, unsupported
from tidegate.engines.common.errors import no_values
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.lazy_transaction import LazyTransaction
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    dry_run_query_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.row_edits import change_of, images_of
from tidegate.engines.common.row_images import image_of
from tidegate.engines.common.server_pool import ServerPool
from tidegate.engines.common.server_session import encode_statement
from tidegate.engines.common.undo_rows import outline_of
from tidegate.errors import Code, TidegateError
from tidegate.judging_thread import compute
from tidegate.model.cancellation import Cancellation
from tidegate.model.changes import ChangeKeeper, Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain
from tidegate.model.row_changes import ChangedRows, FoundRows
from tidegate.model.schema import Catalog, Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.transactions import TransactionModes
from tidegate.model.worker_share import own_share
from tidegate.products.mysql.engine import catalog
from tidegate.products.mysql.engine.account import privilege_warnings
from tidegate.products.mysql.engine.block import MysqlBlocks
from tidegate.products.mysql.engine.connection import MysqlSession
from tidegate.products.mysql.engine.cursor import MysqlCursor
from tidegate.products.mysql.engine.dry_run import run_dry
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.inspect import Inspector, check_change, check_names
from tidegate.products.mysql.engine.row_counts import RowCounter, uncounted
from tidegate.products.mysql.engine.transaction import check_run_as
from tidegate.products.mysql.engine.types import check_count, pack, read_fields
from tidegate.products.mysql.engine.url import Conninfo, parse_conninfo
from tidegate.sql import dialects
from tidegate.sql.dml_parser import parse_dml
from tidegate.sql.finding import Refusal
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.judge import judge
from tidegate.sql.lex import STRING, lex

_STARTED_WITHIN_S = 3

_CONNECTION_LIMIT = b"SELECT @@max_connections, @@max_user_connections"
_SHORT = 4_096
"""Characters of the longest text of which an answer is kept."""
_MAY_LEAVE = re.compile(
    r"(?i)@|\b(?:(?<!character )set|lock|into|use|prepare|call|temporary)\b|_id\s*\("
)
"""What could leave something on the session after a statement that reads; then it is reset."""

_LEXICAL_RULES = dialects.find("mysql").lexical_rules


class MysqlEngine:
    """One MySQL or MariaDB server. A schema is a database."""

    capabilities: Capabilities

    def __init__(
        self, login: RenewedLogin[Conninfo], first: MysqlSession, warnings: tuple[str, ...]
    ) -> None:
        places = own_share().of(login.target.pool)
        self.capabilities = Capabilities(
            inspects=True,
            schemas=False,
            several_databases=True,
            dry_runs=True,
            identities=True,
            prepares=True,
            multi_statement_transactions=True,
            undoes=True,
            edits=True,
            feeds=True,
            counts_changes=True,
            max_concurrency=places,
        )
        self._setting = first.setting
        self._account_s = first.limit_s

        async def open_session(_: str | None) -> MysqlSession:
            session = await MysqlSession.open_renewed(login)
            self._account_s = session.limit_s
            return session

        self._server = ServerPool(open_session, places, first, first.setting.database)
        self._login = login
        login.watch_lease(self._server.renew)
        self._opinions = Inspector(first.setting.database)
        self._started = 0
        self._status = Status(
            first.setting.database or "",
            first.setting.database,
            first.setting.server_version,
            warnings,
            identity=first.setting.identity,
        )

    @classmethod
    async def open(cls, source: Source) -> MysqlEngine:
        check_run_as(source.run_as)
        login = RenewedLogin(source, lambda source: parse_conninfo(source.url))
        first = await MysqlSession.open_renewed(login)
        try:
            grants = [str(row[0]) for row in await first.query_internal(b"SHOW GRANTS")]
        except ServerError:
            grants = []
        return cls(login, first, privilege_warnings(grants))

    @property
    def open_connections(self) -> int:
        return self._server.open_connections

    @property
    def pool_waits(self) -> PoolWaits:
        return self._server.waits

    @property
    def lease(self) -> Lease | None:
        return self._login.lease

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """The server's opinion, from preparing the text and from the views it reads; None on what
        it cannot prepare. Raises: TidegateError."""
        self._server.check_open()
        return await self._opinions.inspect(
            statement.text, judgement, self._server.borrowed(timeout_s)
        )

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        return await self._run(None, permit, cancellation)

    async def begin(
        self, permit: Permit, modes: TransactionModes, cancellation: Cancellation
    ) -> LazyTransaction[MysqlSession]:
        self._server.check_open()
        check_cancelled(cancellation)
        rows = BlockRows()
        blocks = MysqlBlocks(self._server, partial(self._run, rows=rows), rows)
        return LazyTransaction(modes, permit.request.database, blocks)

    async def _run(
        self,
        held: HeldConnection[MysqlSession] | None,
        permit: Permit,
        cancellation: Cancellation,
        *,
        rows: BlockRows | None = None,
    ) -> Cursor:
        """Run a statement, on the connection of a transaction if that has one; `rows` are those
        that the transaction has touched."""
        request, judgement = query_of(permit)
        self._server.check_open()
        check_cancelled(cancellation)
        explains = isinstance(request, Explain)
        text, params = request.statement.text, request.statement.params
        if explains:
            text = f"EXPLAIN {text}"
        encoded = encode_statement(text)
        reads, trusts = explains or permit.effect is Effect.READ, False
        database = request.schema or request.database
        check_names(judgement.tables, database or self._setting.database)
        timeout_s = self._limit_s(permit)
        if reads:
            borrowed = self._server.borrowed(timeout_s, cancellation)
            reads = await self._opinions.check_read(
                text, encoded, judgement, database, borrowed, permit.identity, explains=explains
            )
            if judgement.own or judgement.trusted:
                trusts = self._opinions.calls_trusted(judgement, database, permit.identity)
            if trusts and held is not None:
                raise TidegateError(
                    Code.SQL_FUNCTION,
                    "A function of a user is not called in a transaction that may change data:"
                    " nothing there keeps it from changing some.",
                    hint="Call it before the transaction's first change, or outside of one.",
                )
        else:
            check_change(text, judgement, permit)
            if permit.keeper is not None:
                kept = await self._run_kept(held, permit, permit.keeper, cancellation, rows)
                if kept is not None:
                    return kept
        if held is None:
            running = await self._server.start(timeout_s, cancellation, writes=not reads)
        else:
            running = await held.start(timeout_s, cancellation, writes=not reads)
        try:
            async with running as session:
                session.needs_reset = session.needs_reset or not reads or trusts or may_leave(text)
                if held is not None:
                    await session.be_ready_in_block()
                await session.run_as(permit.identity)
                await session.begin(running.timeout_ms, database)
                if not reads and held is None:
                    await session.open_transaction()
                elif trusts:
                    await session.open_reading()
                place = database or self._setting.database
                counter = None if reads else await RowCounter.begin(session, permit, place)
                binary = await _send(session, encoded, params, explains)
                head = await running.connection().line.answer()
                cursor = MysqlCursor(running, head, binary=binary, keeps=not explains)
                cursor.counter = counter
                await cursor.begin(head)
                return cursor
        finally:
            if not reads:
                self._opinions.forget()

    async def _run_kept(
        self,
        held: HeldConnection[MysqlSession] | None,
        permit: Permit,
        keeper: ChangeKeeper,
        cancellation: Cancellation,
        block: BlockRows | None,
    ) -> Cursor | None:
        """Run a change whose rows are kept, now or with those of its transaction; None if they
        cannot be, by its text alone."""
        from tidegate.products.mysql.engine import changes  # only to keep changes

        request, _ = query_of(permit)
        text, params = request.statement.text, request.statement.params
        outline = outline_of(text, "mysql", len(params or ()))
        if isinstance(outline, str):
            if block is not None:
                block.give_up(outline)
            await asyncio.to_thread(keeper.give_up, outline)
            return None
        timeout_s = self._limit_s(permit)
        database = request.schema or request.database
        place = database or self._setting.database
        owner = self._server if held is None else held
        running = await owner.start(timeout_s, cancellation, writes=True)
        try:
            async with running as session:
                session.needs_reset = True
                running.committing = held is None
                if held is not None:
                    await session.be_ready_in_block()
                await session.run_as(permit.identity)
                await session.begin(running.timeout_ms, database)
                change = changes.BoundChange(encode_statement(text), params, outline, place)
                if held is None or block is None:
                    ran = await changes.run_with_undo(session, change, permit, keeper)
                else:
                    ran = await changes.run_in_block(session, change, permit, keeper, block)
                running.committing = False
                running.release()
            return BufferedCursor(
                ran.columns, list(ran.rows), ran.affected, BufferBudget(), counted=ran.counted
            )
        finally:
            self._opinions.forget()

    async def uncounted(self, statement: Statement, judgement: Judgement, source: Source) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            return await uncounted(session, statement.text, judgement, self._setting.database)

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        from tidegate.products.mysql.engine import changes

        self._server.check_open()
        async with self._server.borrowed() as session:
            return await changes.reversibility(
                session, statement.text, len(statement.params or ()), self._setting.database
            )

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.products.mysql.engine import changes

        _, image = image_of(permit)
        self._server.check_open()
        timeout_s = self._limit_s(permit)
        async with self._server.borrowed(timeout_s, cancellation) as session:
            await session.run_as(permit.identity)
            await session.begin(max(1, round(timeout_s * 1000)), None)
            return await changes.compare(session, image)

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.products.mysql.engine import changes

        _, image = image_of(permit)
        self._server.check_open()
        running = await self._server.start(self._limit_s(permit), cancellation, writes=True)
        async with running as session:
            session.needs_reset = running.committing = True
            await session.run_as(permit.identity)
            await session.begin(running.timeout_ms, None)
            found = await changes.put_back(session, image, permit.keeper)
            running.committing = False
            running.release()
        return found

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        from tidegate.products.mysql.engine import row_changes  # needed only to edit rows

        request, timeout_s = images_of(permit), self._limit_s(permit)
        self._server.check_open()
        async with self._server.borrowed(timeout_s, cancellation) as session:
            await session.run_as(permit.identity)
            await session.begin(max(1, round(timeout_s * 1000)), None)
            return await row_changes.read_images(session, request)

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        from tidegate.products.mysql.engine import row_changes, row_feeds

        self._server.check_open()
        running = await self._server.start(self._limit_s(permit), cancellation, writes=True)
        async with running as session:
            session.needs_reset = True
            await session.run_as(permit.identity)
            await session.begin(running.timeout_ms, None)
            if change_of(permit).feed is not None:
                done = await row_feeds.add_rows(session, permit, running)
            else:
                done = await row_changes.change_rows(session, permit, running)
            running.committing = False
            running.release()
        return done

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        request, judgement = prepare_of(permit)
        self._server.check_open()
        check_cancelled(cancellation)
        text = request.statement.text
        encoded = encode_statement(text)
        database = request.schema or request.database
        check_names(judgement.tables, database or self._setting.database)
        timeout_s = self._limit_s(permit)
        borrowed = self._server.borrowed(timeout_s, cancellation)
        await self._opinions.check_read(
            text, encoded, judgement, database, borrowed, permit.identity, explains=False
        )
        async with self._server.borrowed(timeout_s, cancellation) as session:
            await session.run_as(permit.identity)
            await session.begin(max(1, round(timeout_s * 1000)), database)
            statement, _, parameters = await session.line.prepare(encoded)
            definitions = session.line.prepared_columns()
            session.line.forget(statement)
        columns, _, _ = read_fields(definitions)
        return StatementDescription(columns, ("",) * parameters)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        request, judgement = dry_run_query_of(permit)
        self._server.check_open()
        found = parse_dml(request.statement.text, "mysql")
        if isinstance(found, str):
            return DryRun(reason=found)
        refused = unsupported(found, request.statement.params)
        if refused is not None:
            return refused
        encoded = encode_statement(request.statement.text)
        check_change(request.statement.text, judgement, permit)
        query = found.query.text
        if query:
            # The gate has not seen this text: it is made of the statement here.
            judgement = await compute(query, judge, query, "mysql")
            opinion = await self._opinions.inspect(
                query, judgement, self._server.borrowed(permit.limits.timeout_s, cancellation)
            )
            if opinion is None or opinion.effect is not Effect.READ:
                return UNREAD
        database = request.schema or request.database
        check_names(judgement.tables, database or self._setting.database)
        limits = permit.limits
        async with self._server.borrowed(limits.timeout_s, cancellation) as session:
            await session.run_as(permit.identity)
            await session.begin(max(1, round(limits.timeout_s * 1000)), database)
            return await run_dry(
                session,
                encoded,
                request.statement.params or (),
                found,
                database or self._setting.database,
                limits.max_rows,
            )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = describe_of(permit)
        self._server.check_open()
        check_cancelled(cancellation)
        timeout_s = self._limit_s(permit)
        async with self._server.borrowed(timeout_s, cancellation) as session:
            if request.aspect in ("counts", "ddl"):  # the rest is kept for all callers
                await session.run_as(permit.identity)
            await session.begin(max(1, round(timeout_s * 1000)), None)
            mark = await self._mark(session)
            described = await catalog.describe(session, request)
        if isinstance(described, Catalog):
            return structs.replace(described, version=mark)
        return described

    async def schema_version(self) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            return await self._mark(session)

    async def read_connection_limit(self) -> int:
        self._server.check_open()
        async with self._server.borrowed() as session:
            ((most, of_account),) = await session.query_internal(_CONNECTION_LIMIT)
            return min(int(most), int(of_account) or int(most))

    def _limit_s(self, permit: Permit) -> float:
        """How long a statement may take: the account's own limit holds where it is stricter."""
        limit_s = permit.limits.timeout_s
        return min(limit_s, self._account_s) if self._account_s else limit_s

    async def close(self) -> None:
        self._login.close()
        await self._server.close()
        await self._login.give_back()

    async def _mark(self, session: MysqlSession) -> str:
        """When the server started, and how often schemas were changed since then."""
        rows = await session.query_internal(catalog.counters(session.setting.mariadb))
        started, counts = 0, 0
        for name, value, now in rows:
            if str(name).lower() == "uptime":
                started = int(now) - int(value)
            else:
                counts += int(value)
        if abs(started - self._started) > _STARTED_WITHIN_S:
            self._started = started
        return f"{self._started}.{counts}"


def may_leave(text: str) -> bool:
    """Whether a statement that reads could leave something on its session. Values do not count, so
    that texts alike get one answer: a masked statement has hundreds of tokens."""
    if len(text) > _SHORT:
        return bool(_MAY_LEAVE.search(text))
    return _kept_answer(fingerprint(text))


def find_out_leaving(text: str) -> bool:
    """`may_leave` of this very text."""
    if _MAY_LEAVE.search(text) is None:
        return False
    try:
        tokens = lex(text, _LEXICAL_RULES)
    except Refusal:
        return True
    # Strings set nothing: a mask of mail addresses searches for `@` in each.
    return _MAY_LEAVE.search(" ".join([t.text for t in tokens if t.kind != STRING])) is not None


_kept_answer = lru_cache(maxsize=1024)(find_out_leaving)


async def _send(
    session: MysqlSession, encoded: bytes, params: tuple[object, ...] | None, explains: bool
) -> bool:
    """Send a statement. Returns whether its rows come by the binary protocol."""
    line = session.line
    if params is None and not (explains and b"?" in encoded):
        line.query(encoded)
        return False
    statement, _, count = await line.prepare(encoded)
    try:
        if explains and params is None and count:
            raise no_values()
        check_count(count, params)
        line.execute(statement, pack(params or ()))
    except TidegateError:
        line.forget(statement)
        raise
    return True
