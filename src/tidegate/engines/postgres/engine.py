"""PostgreSQL as an engine: a statement is inspected, gets a session, and runs.

Everything runs in a transaction of its own: `connection.py` has the fence around it, `inspect.py`
says what a text may do, and `engines/common/running_statement.py` ends it when its time is up.
"""

from __future__ import annotations

import asyncio
import re
from time import monotonic
from typing import NamedTuple

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    Lease,
    PoolWaits,
    Row,
    StatementDescription,
)
from tidegate.engines.common.buffered_cursor import BufferBudget, BufferedCursor
from tidegate.engines.common.dry_run import UNREAD, unsupported
from tidegate.engines.common.errors import SEVERAL_ROWS, lost
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    dry_run_query_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.roles import role_refused
from tidegate.engines.common.row_edits import change_of, images_of
from tidegate.engines.common.row_images import image_of
from tidegate.engines.common.running_statement import LEAST_S, RunningStatement
from tidegate.engines.common.server_pool import OWN_S, ServerPool
from tidegate.engines.common.server_session import encode_statement
from tidegate.engines.common.undo_rows import outline_of
from tidegate.engines.postgres import catalog
from tidegate.engines.postgres.block import BlockStatement, PostgresTransaction
from tidegate.engines.postgres.command_protocol import FAILED
from tidegate.engines.postgres.connection import CHUNK_ROWS, MAX_TRIES, PostgresSession
from tidegate.engines.postgres.copy_out import CopyCursor
from tidegate.engines.postgres.cursor import CHUNKS, PostgresCursor
from tidegate.engines.postgres.data_rows import (
    ENCODED_VALUES,
    DataRowPostgresCursor,
    sink_of,
)
from tidegate.engines.postgres.databases import Database, Databases, is_approved_as_is
from tidegate.engines.postgres.dry_run import run_dry
from tidegate.engines.postgres.errors import NO_ROLE_OUTSIDE, failed_outside, translate
from tidegate.engines.postgres.inspect import CATALOG_RULE
from tidegate.engines.postgres.parameters import dump
from tidegate.engines.postgres.row_counts import UNCOUNTED, RowCounter, counter_of
from tidegate.engines.postgres.schema_state import (
    PinnedSchema,
    RulesChangedError,
    SchemaVersion,
)
from tidegate.engines.postgres.session_settings import applied, completed, path_of, settled
from tidegate.engines.postgres.transaction import (
    TransactionSettings,
    Tuning,
    check_run_as,
    may_tune,
)
from tidegate.engines.postgres.types import shape_of
from tidegate.engines.postgres.url import Conninfo, own_login_only, parse_conninfo
from tidegate.errors import Code, TidegateError
from tidegate.judging_thread import compute
from tidegate.model.cancellation import Cancellation
from tidegate.model.changes import ChangeKeeper, Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.requests import EngineRequest, Explain, Query
from tidegate.model.results import DataRowSink
from tidegate.model.row_changes import ChangedRows, FoundRows
from tidegate.model.schema import Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.transactions import TransactionModes
from tidegate.model.worker_share import own_share
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import parse_dml
from tidegate.sql.judge import judge

_quote = find("postgres").quote

SUPERUSER = (
    "the account is a superuser: no privilege that was not granted stops it, so give this source a"
    " role with CONNECT, USAGE and SELECT alone",
)

_WITH = re.compile(r"\bwith\b", re.IGNORECASE)
_CONNECTION_LIMIT = (
    b"SELECT least(current_setting('max_connections')::int"
    b" - current_setting('superuser_reserved_connections')::int"
    b" - coalesce(current_setting('reserved_connections', true)::int, 0),"
    b" (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),"
    b" (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()))"
)
GENERIC_PLAN = ("plan_cache_mode", "force_generic_plan")
_PLACEHOLDER = re.compile(r"\$(\d+)")


class _Admitted(NamedTuple):
    """A statement that its permit covers, as far as the catalog knows. `left_s` is what is left of
    its time limit, `limit_s`; `tuning` are the settings that it runs with."""

    request: Query | Explain
    judgement: Judgement
    opinion: Judgement
    text: str
    encoded: bytes
    params: list[bytes | None]
    schema: bytes | None
    left_s: float
    limit_s: float
    tuning: Tuning


def _limit_of(session: PostgresSession) -> float:
    """The account's own time limit of statements in seconds; 0: none."""
    return session.setting.limit_ms / 1000


def _target_of(source: Source) -> Conninfo:
    """Raises: TidegateError SOURCE_URL, POLICY_DENIED."""
    target = parse_conninfo(source.url)
    return own_login_only(target) if source.temporary else target


class PostgresEngine:
    """One PostgreSQL server, and the databases on it that are asked for."""

    capabilities: Capabilities

    def __init__(
        self,
        login: RenewedLogin[Conninfo],
        first: PostgresSession,
        identity: str = "",
        functions: tuple[str, ...] = (),
    ) -> None:
        places = own_share().of(login.target.pool)
        self.capabilities = Capabilities(
            inspects=True,
            several_databases=True,
            dry_runs=True,
            identities=True,
            checks_schema=True,
            prepares=True,
            multi_statement_transactions=True,
            undoes=True,
            edits=True,
            feeds=True,
            notices=True,
            counts_changes=True,
            max_concurrency=places,
        )
        self._setting = first.setting

        self._account_s = _limit_of(first)

        async def open_session(database: str | None) -> PostgresSession:
            others = {} if database is None else {"dbname": database}
            session = await login.open(lambda target: PostgresSession.open(target, **others))
            self._account_s = _limit_of(session)
            return session

        self._server = ServerPool(open_session, places, first, first.setting.database)
        self._login = login
        login.watch_lease(self._server.renew)
        self._databases = Databases(self._server, open_session, first.setting.database, functions)
        self._schema = SchemaVersion()
        self._status = Status(
            first.setting.database,
            first.setting.schema,
            first.setting.server_version,
            SUPERUSER if first.line.parameter(b"is_superuser") == "on" else (),
            first.setting.arrived,
            identity,
        )

    @classmethod
    async def open(cls, source: Source) -> PostgresEngine:
        check_run_as(source.run_as)
        login = RenewedLogin(source, _target_of)
        first = await login.open(PostgresSession.open)
        return cls(login, first, await first.identity(), source.functions)

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
        """The catalog's opinion, joined with the judge's; None on what neither can read.

        Raises: TidegateError.
        """
        text = statement.text
        try:
            self._server.check_open()
            joined = self._databases.home.watch.known(text, judgement)
            if joined is None:
                joined = await self._databases.joined(text, judgement, timeout_s)
        except TidegateError as error:
            if error.code is not Code.SQL_FAILED:
                raise
            return None  # the server cannot read it, and reports that again in `run`
        unread = joined.effect is Effect.UNKNOWN and joined.rule != CATALOG_RULE
        return None if unread else joined

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        rows = CHUNK_ROWS
        for _ in range(MAX_TRIES):
            try:
                return await self._run(permit, cancellation, rows)
            except RulesChangedError:
                # In its own transaction the catalog is another than the one by which it was judged.
                self._databases.of(permit.request.database).watch.wake()
            except TidegateError as error:
                several = error.details.get("cause") == SEVERAL_ROWS
                if permit.effect > Effect.READ or not several or rows == 1:
                    raise
                rows = 1  # nothing of it is shown, and one row fits at a time
        raise RulesChangedError

    async def _run(self, permit: Permit, cancellation: Cancellation, rows: int) -> Cursor:
        """Run what is permitted; a read gives so many rows at once."""
        admitted = await self._admit(permit, cancellation, looks_now=permit.keeper is not None)
        request, judgement, opinion, text, encoded, params, schema, left_s, limit_s, tuning = (
            admitted
        )
        explains = isinstance(request, Explain)
        administration = None if explains else opinion.administration
        copies = administration is not None and administration.runs_query
        writes = not explains and permit.effect > Effect.READ and not copies
        outside = judgement.outside_transaction
        if writes and permit.keeper is not None and not outside:
            kept = await self._run_kept(permit, admitted, permit.keeper, cancellation)
            if kept is not None:
                return kept
        running = await self._server.start(
            left_s,
            cancellation,
            request.database,
            writes=writes,
            limit_s=limit_s,
        )
        databases = self._databases
        settings = TransactionSettings(running.timeout_ms, schema, permit.identity, tuning)
        sink = None if explains or request.sink is None else sink_of(request)
        try:
            async with running as session:
                # What a function of a user leaves on its session is no other caller's.
                session.needs_reset = writes or bool(opinion.own)
                session.chunk_rows = rows
                database = databases.asked.get(request.database) or databases.of(request.database)
                session.prepared.follow(database.watch.names_state)
                if copies:
                    return await self._copy(running, session, encoded, settings)
                if not explains and outside:
                    if permit.identity is not None:
                        raise role_refused(NO_ROLE_OUTSIDE)
                    first = await session.begin_outside(encoded, params, settings)
                    if first.status in FAILED:
                        raise failed_outside(first)
                    return await self._cursor(running, first, text, database, sink)
                binary = (
                    not writes
                    and sink is not None
                    and sink.form == 1
                    and await self._is_binary(permit, sink, session, encoded, settings)
                )
                if explains and params and not request.statement.params:
                    # With NULL in the place of each value it would be seen that nothing is found;
                    # GENERIC_PLAN of PostgreSQL 16 takes no placeholders in this protocol.
                    encoded = await session.prepare_plan(
                        encode_statement(request.statement.text), len(params), schema
                    )
                    params, settings = [], settings._replace(tuning=(*tuning, GENERIC_PLAN))
                as_is = judgement.administration is not None and is_approved_as_is(judgement)
                rules = None if as_is else database.watch
                counter = None
                if writes:
                    counter = counter_of(permit)
                    before = None
                    if counter is not None and counter.before is not None:
                        before = counter.before, counter.begin
                    first = await session.begin_change(
                        encoded, params, settings, before=before, rules=rules
                    )
                else:
                    first = await session.begin_read(
                        *(encoded, params, settings),
                        pin=self._pin(permit, request),
                        form=int(binary),
                        rules=rules,
                    )
                if first.status in FAILED:
                    raise translate(first)
                return await self._cursor(
                    *(running, first, text, database, sink), form=int(binary), counter=counter
                )
        finally:
            if writes:
                self._databases.of(request.database).watch.wake()

    async def _run_kept(
        self,
        permit: Permit,
        admitted: _Admitted,
        keeper: ChangeKeeper,
        cancellation: Cancellation,
    ) -> Cursor | None:
        """Run a change whose rows are kept; None if they cannot be, by its text alone."""
        from tidegate.engines.postgres import changes  # needed only where changes are kept

        outline = outline_of(admitted.text, "postgres", len(admitted.params))
        if isinstance(outline, str):
            await asyncio.to_thread(keeper.give_up, outline)
            return None
        database = admitted.request.database
        running = await self._server.start(
            *(admitted.left_s, cancellation, database),
            writes=True,
            limit_s=admitted.limit_s,
        )
        try:
            async with running as session:
                session.needs_reset = running.committing = True
                settings = TransactionSettings(
                    running.timeout_ms, admitted.schema, permit.identity, admitted.tuning
                )
                ran = await changes.run_with_undo(
                    session, admitted.encoded, admitted.params, outline, settings, permit, keeper
                )
                running.committing = False
                shape, width = shape_of(ran.result), ran.width
                columns, reader = await self._databases.of(database).types.columns(shape)
                rows: list[Row] = [row[:width] for row in reader.rows(ran.result)] if width else []
                running.release()
            return BufferedCursor(
                columns[:width], rows, ran.affected, BufferBudget(), counted=ran.counted
            )
        finally:
            self._databases.of(database).watch.wake()

    async def uncounted(self, statement: Statement, judgement: Judgement, source: Source) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            ((off, by_triggers, foreign),) = await session.query_internal(UNCOUNTED)
        if off == "true":
            return "the rows of triggers and foreign keys (`track_counts` is off)"
        plain = judgement.verb != "select" and _WITH.search(statement.text) is None
        if by_triggers == "true" or (foreign == "true" and not plain):
            return "rows of foreign tables that triggers or queries in WITH change"
        return ""

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        from tidegate.engines.postgres import changes

        self._server.check_open()
        async with self._server.borrowed() as session:
            settings = TransactionSettings(round(OWN_S * 1000))
            parameters = len(statement.params or ())
            return await changes.reversibility(session, statement.text, parameters, settings)

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.engines.postgres import changes

        request, image = image_of(permit)
        self._server.check_open()
        timeout_s = permit.limits.timeout_s
        async with self._server.borrowed(timeout_s, cancellation, request.database) as session:
            settings = TransactionSettings(max(1, round(timeout_s * 1000)), None, permit.identity)
            return await changes.compare(session, image, settings)

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.engines.postgres import changes

        request, image = image_of(permit)
        self._server.check_open()
        timeout_s = permit.limits.timeout_s
        running = await self._server.start(
            *(timeout_s, cancellation, request.database), writes=True, limit_s=timeout_s
        )
        async with running as session:
            session.needs_reset = running.committing = True
            settings = TransactionSettings(running.timeout_ms, None, permit.identity)
            found = await changes.put_back(session, image, settings, permit.keeper)
            running.committing = False
            running.release()
        return found

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        from tidegate.engines.postgres import row_changes  # needed only to edit rows

        request, timeout_s = images_of(permit), permit.limits.timeout_s
        self._server.check_open()
        async with self._server.borrowed(timeout_s, cancellation, request.database) as session:
            settings = TransactionSettings(max(1, round(timeout_s * 1000)), None, permit.identity)
            return await row_changes.read_images(session, request, settings)

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        from tidegate.engines.postgres import row_changes, row_feeds

        timeout_s, database = permit.limits.timeout_s, permit.request.database
        self._server.check_open()
        running = await self._server.start(
            *(timeout_s, cancellation, database), writes=True, limit_s=timeout_s
        )
        async with running as session:
            session.needs_reset = True
            settings = TransactionSettings(running.timeout_ms, None, permit.identity)
            if change_of(permit).feed is not None:
                done = await row_feeds.add_rows(session, permit, settings, running)
            else:
                done = await row_changes.change_rows(session, permit, settings, running)
            running.committing = False
            running.release()
        return done

    async def _admit(
        self, permit: Permit, cancellation: Cancellation, *, looks_now: bool = False
    ) -> _Admitted:
        """The statement of a permit, once it is known to do no more than that allows. `looks_now`:
        by the catalog as it is now, where the statement's own transaction cannot tell.

        Raises: TidegateError.
        """
        request, judgement = query_of(permit, may_tune)
        self._server.check_open()
        check_cancelled(cancellation)
        explains = isinstance(request, Explain)
        text, values = request.statement.text, request.statement.params
        params = dump(values) if values else []
        if explains:
            params = params or [None] * _placeholders(text)
            text = f"EXPLAIN {text}"
        encoded = encode_statement(text)
        schema, tuning = None, request.tuning
        if request.settings or request.schema is not None:
            schema = self._path(request)
            tuning = applied(request, self._setting.arrived) + tuning
        left_s = limit_s = self._limit_s(permit)
        if looks_now:
            self._databases.of(request.database).watch.wake()
        known = self._databases.asked.get(request.database)
        opinion = None if known is None else known.watch.known(text, judgement)
        if opinion is None:
            until = monotonic() + left_s
            opinion = await self._databases.joined(
                text,
                judgement,
                left_s,
                cancellation,
                database=request.database,
                schema=schema,
                tuning=tuning,
            )
            left_s = max(LEAST_S, until - monotonic())
        if opinion.effect > (Effect.READ if explains else permit.effect) or (
            permit.identity is not None and opinion.effect is Effect.SESSION
        ):
            await self._databases.refuse(encoded, opinion, permit, request.database)
        return _Admitted(
            *(request, judgement, opinion, text, encoded, params, schema, left_s, limit_s),
            tuning,
        )

    async def begin(
        self, permit: Permit, modes: TransactionModes, cancellation: Cancellation
    ) -> PostgresTransaction:
        self._server.check_open()
        check_cancelled(cancellation)
        database, timeout_s = permit.request.database, self._limit_s(permit)
        until = monotonic() + timeout_s
        held = await self._server.hold(timeout_s, cancellation, database)
        transaction = PostgresTransaction(held, modes, database, self._run_in)
        await transaction.begin(max(LEAST_S, until - monotonic()), cancellation)
        return transaction

    async def _admit_in(
        self, transaction: PostgresTransaction, permit: Permit, cancellation: Cancellation
    ) -> _Admitted:
        """As `_admit`, by the catalog as the transaction sees it. Raises: TidegateError."""
        if not transaction.sees_changes:
            return await self._admit(permit, cancellation, looks_now=True)
        watch = self._databases.of(permit.request.database).watch
        for _ in range(MAX_TRIES):
            admitted = await self._admit(permit, cancellation)
            if is_approved_as_is(admitted.judgement) or await transaction.has_rules(watch):
                return admitted
            watch.wake()
        raise RulesChangedError

    async def _run_in(
        self, transaction: PostgresTransaction, permit: Permit, cancellation: Cancellation
    ) -> Cursor:
        """Run a statement in a transaction over several. Raises: TidegateError."""
        admitted = await self._admit_in(transaction, permit, cancellation)
        request, judgement = admitted.request, admitted.judgement
        reads = isinstance(request, Explain) or permit.effect is Effect.READ
        if request.database != transaction.database:
            raise TidegateError(Code.UNSUPPORTED, "A transaction stays in its database.")
        if judgement.outside_transaction or admitted.opinion.administration is not None:
            raise TidegateError(
                Code.UNSUPPORTED, "This does not run in a transaction over several statements."
            )
        database, sink = self._databases.of(request.database), sink_of(request)
        key = database.key(admitted.encoded, admitted.schema)
        statement = BlockStatement(
            admitted.text,
            admitted.encoded,
            admitted.params,
            admitted.schema,
            permit.identity,
            completed(admitted.tuning, transaction.settings_seen, self._setting.arrived),
            admitted.left_s,
            admitted.limit_s,
            writes=not reads,
            as_cursor=isinstance(request, Query)
            and request.in_parts
            and reads
            and judgement.verb == "select",
            types=database.types,
            form=database.binary.form_in_block(sink, key, types_may_differ=transaction.writes),
            permit=permit,
        )
        try:
            cursor = await transaction.start(statement, cancellation)
            await database.binary.check_cursor(sink, key, cursor, statement.form)
            return cursor
        finally:
            if not reads:
                database.watch.wake()

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        request, _ = prepare_of(permit)
        self._server.check_open()
        check_cancelled(cancellation)
        encoded = encode_statement(request.statement.text)
        schema, tuning = self._path(request), applied(request, self._setting.arrived)
        timeout_s = self._limit_s(permit)
        async with self._server.borrowed(timeout_s, cancellation, request.database) as session:
            timeout_ms = max(1, round(timeout_s * 1000))
            settings = TransactionSettings(timeout_ms, schema, permit.identity, tuning)
            found = await session.described(encoded, settings)
        types = self._databases.of(request.database).types
        columns, _ = await types.columns(shape_of(found))
        taken = tuple([(b"", found.param_type(at), -1) for at in range(found.nparams)])
        parameters, _ = await types.columns(taken)
        return StatementDescription(columns, tuple([each.type for each in parameters]))

    async def _cursor(
        self,
        running: RunningStatement[PostgresSession],
        first: PGresult,
        text: str,
        database: Database,
        sink: DataRowSink | None = None,
        form: int = 0,
        counter: RowCounter | None = None,
    ) -> Cursor:
        types, shape = database.types, shape_of(first)
        columns, reader = types.known(shape) or await types.columns(shape)
        if sink is not None and sink.form == form:
            if form:
                database.binary.check(sink, columns)
            cursor = DataRowPostgresCursor(running, first, columns, ENCODED_VALUES, text)
        else:
            cursor = PostgresCursor(running, first, columns, reader, text)
        cursor.counter = counter
        if first.status in CHUNKS:
            cursor.look_for_end()
        else:
            await cursor.finish(first)
        return cursor

    async def _is_binary(
        self,
        permit: Permit,
        sink: DataRowSink,
        session: PostgresSession,
        encoded: bytes,
        settings: TransactionSettings,
    ) -> bool:
        """Whether a read is to give the binary format, for which its sink asks: if it takes it of
        every column. The server is asked for the columns, once for each statement."""
        database = self._databases.of(permit.request.database)
        key = database.key(encoded, settings.schema)
        fits = database.binary.of(key)
        if fits is None:
            found = await session.described(encoded, settings)
            columns, _ = await database.types.columns(shape_of(found))
            fits = database.binary.note(key, sink.takes_binary(columns))
        return fits

    async def _copy(
        self,
        running: RunningStatement[PostgresSession],
        session: PostgresSession,
        encoded: bytes,
        settings: TransactionSettings,
    ) -> Cursor:
        first = await session.begin_copy(encoded, settings)
        if first.status == ExecStatus.COPY_OUT:
            return CopyCursor(running)
        session.close()
        raise translate(first) if first.status in FAILED else lost()

    def _pin(self, permit: Permit, request: Query | Explain) -> PinnedSchema | None:
        """The version of the schema that a read needs, in the source's own database."""
        if permit.schema_version is None or request.database is not None:
            return None
        return PinnedSchema(self._schema, permit.schema_version)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        request, judged = dry_run_query_of(permit)
        self._server.check_open()
        found = parse_dml(request.statement.text, "postgres")
        if isinstance(found, str):
            return DryRun(reason=found)
        refused = unsupported(found, request.statement.params)
        if refused is not None:
            return refused
        encoded = encode_statement(request.statement.text)
        schema, tuning = self._path(request), applied(request, self._setting.arrived)

        async def joined(text: str, judgement: Judgement) -> Judgement:
            return await self._databases.joined(
                text,
                judgement,
                permit.limits.timeout_s,
                cancellation,
                database=request.database,
                schema=schema,
                tuning=tuning,
            )

        opinion = await joined(request.statement.text, judged)
        if opinion.effect > permit.effect:
            await self._databases.refuse(encoded, opinion, permit, request.database)
        query = found.query.text
        # The gate has not seen this text: it is made of the statement here.
        if query:
            judgement = await compute(query, judge, query, "postgres")
            if (await joined(query, judgement)).effect is not Effect.READ:
                return UNREAD
        limits = permit.limits
        async with self._server.borrowed(
            limits.timeout_s, cancellation, request.database
        ) as session:
            session.needs_reset = True
            timeout_ms = max(1, round(limits.timeout_s * 1000))
            settings = TransactionSettings(timeout_ms, schema, permit.identity, tuning)
            params = dump(request.statement.params)
            return await run_dry(session, encoded, params, found, settings, limits.max_rows)

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = describe_of(permit)
        self._server.check_open()
        check_cancelled(cancellation)
        timeout_s = self._limit_s(permit)
        async with self._server.borrowed(timeout_s, cancellation, request.database) as session:
            timeout_ms = max(1, round(timeout_s * 1000))
            if request.aspect == "settings":
                return await settled(session, request, timeout_ms)
            return await catalog.describe(session, request, timeout_ms, permit.identity)

    async def schema_version(self) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            return await self._schema.current(session, round(OWN_S * 1000))

    async def read_connection_limit(self) -> int:
        self._server.check_open()
        async with self._server.borrowed() as session:
            ((limit,),) = await session.query_internal(_CONNECTION_LIMIT)
            return int(limit)

    async def close(self) -> None:
        self._login.close()
        await self._server.close()
        await self._login.give_back()

    def _path(self, request: EngineRequest) -> bytes | None:
        """The search path of a request; None for the source's own."""
        path = path_of(request, self._setting.user)
        if path is None and request.schema is not None:
            return f"{_quote(request.schema)}, {self._setting.path}".encode()
        return path

    def _limit_s(self, permit: Permit) -> float:
        """How long a statement may take: the account's own limit holds where it is stricter."""
        limit_s = permit.limits.timeout_s
        return min(limit_s, self._account_s) if self._account_s else limit_s


def _placeholders(text: str) -> int:
    """How many values a statement takes; 0 where its numbers are no placeholders."""
    count = max([int(number) for number in _PLACEHOLDER.findall(text)], default=0)
    return count if count < 1000 else 0
