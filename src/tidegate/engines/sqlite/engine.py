"""SQLite as an engine: a statement runs inline on the event loop, or in a thread.

A hop to a thread costs ten times what a point query costs. So a statement with a simple program is
first tried inline, within a budget of about a millisecond; what does not end well in it runs in a
thread and is remembered. `docs/explanation/decisions/0003-sqlite-inline-reads.md` has the figures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from time import perf_counter
from typing import ClassVar, TypeVar

import apsw

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    PoolWaits,
    StatementDescription,
)
from tidegate.engines.common.dry_run import UNREAD, unsupported
from tidegate.engines.common.errors import closed, stopped
from tidegate.engines.common.held_connection import HeldConnection
from tidegate.engines.common.lazy_transaction import LazyTransaction
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    describes_change,
    dry_run_query_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.pool import Pool, waits_of
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.common.row_edits import change_of, images_of
from tidegate.engines.common.row_images import image_of
from tidegate.engines.common.running_statement import (
    RunningStatement,
    RunningStatements,
    end_all,
    start,
)
from tidegate.engines.common.url import FileUrl
from tidegate.engines.registry import resolve_options
from tidegate.engines.sqlite import catalog
from tidegate.engines.sqlite.apsw_types import changesets
from tidegate.engines.sqlite.block import SqliteBlocks
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.cost_estimate import SHORT_NEEDLE
from tidegate.engines.sqlite.cursor import Effort, ReadyCursor, StreamCursor
from tidegate.engines.sqlite.dry_run import run_dry
from tidegate.engines.sqlite.inline_executor import InlineExecutor
from tidegate.engines.sqlite.inspect import CachedStatement, Mode, StatementCache, prepare
from tidegate.engines.sqlite.temp_space import TempSpaceLimit
from tidegate.engines.sqlite.transaction import Execution
from tidegate.engines.sqlite.url import check_writable, read_url
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.changes import Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain
from tidegate.model.row_changes import ChangedRows, FoundRows
from tidegate.model.schema import Databases, Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.transactions import TransactionModes
from tidegate.results.column_kinds import column_of
from tidegate.sql.dml_parser import parse_dml
from tidegate.sql.fingerprint import fingerprint

READERS = 8
CACHED_TEXT = 32_768
QUICK_S = 0.0003
SLOW_S = 0.002
WAIT_S = 10.0
_QUOTED = re.compile(r"""'[^']*(?:''[^']*)*'|"[^"]*"|`[^`]*`""")
_QUERY = re.compile(r"\s*(?:select|with|values)\b", re.IGNORECASE)
CHECKED_S = 0.0001
"""How long a check of the file holds, so that the steps of one call share it."""

Answer = TypeVar("Answer")
Threads = Pool[WorkerThread]

_REPLACES = re.compile(r"\breplace\b", re.IGNORECASE)
_REPLACING = """SELECT 1 FROM sqlite_schema WHERE (type = 'trigger' AND sql LIKE '%replace%')
  OR (type IN ('table', 'index') AND sql LIKE '%conflict%replace%') LIMIT 1"""
"""What removes rows that SQLite does not count."""


class SqliteEngine:
    """One SQLite file, or one database in memory."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        explains_as_json=False,
        inspects=True,
        schemas=False,
        dry_runs=True,
        prepares=True,
        multi_statement_transactions=True,
        undoes=changesets.there,
        edits=True,
        feeds=True,
        counts_changes=True,
    )

    def __init__(
        self, file: FileUrl, inline: SqliteSession, readers: Threads, writer: Threads
    ) -> None:
        self._file = file
        self._identity = _identity_of(file)
        self._checked_until = 0.0
        self._readers = readers
        self._writer = writer
        self._plans = StatementCache()
        self._inline = InlineExecutor(file, inline, self._plans)
        self._running: RunningStatements[WorkerThread] = RunningStatements()
        self._spills = TempSpaceLimit(self._running)
        self._closed = False
        self._status = Status(
            database=file.name,
            schema="main",
            server_version=f"SQLite {apsw.sqlite_lib_version()}",
        )

    @classmethod
    async def open(cls, source: Source) -> SqliteEngine:
        file = read_url(source.url, resolve_options(source))
        name = f"sqlite-{source.name}"
        readers = _threads(lambda: SqliteSession(file), READERS, name)
        writer = _threads(lambda: SqliteSession(file, writes=True), 1, f"{name}-writer")
        worker = await readers.take(WAIT_S)
        try:
            inline = await worker.do(lambda _: SqliteSession(file, inline=True))
        except BaseException:
            await readers.close()
            raise
        readers.give(worker)
        return cls(file, inline, readers, writer)

    @property
    def open_connections(self) -> int:
        return len(self._readers.connections) + len(self._writer.connections)

    @property
    def pool_waits(self) -> PoolWaits:
        return waits_of([self._readers, self._writer])

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """SQLite's opinion, from its authorizer; None if it cannot prepare the text."""
        plan = self._plans.recent.get(statement.text) or self._plans.get(statement.text)
        if plan is not None:
            return plan.judgement  # `run` sees whether the file is still the one it was made for
        self._check_open()
        try:
            return (await self._plan(statement.text, statement.fingerprint)).judgement
        except TidegateError as error:
            if error.code is Code.SQL_MULTIPLE:
                return Judgement(
                    effect=Effect.UNKNOWN,
                    rule="sqlite.one_statement",
                    reason=error.message,
                    code=error.code.value,
                )
            return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        if permit.identity is not None:
            refuse_identity(permit)
        request, _ = query_of(permit)
        self._check_open()
        if cancellation.reason is not None:
            raise stopped(cancellation.reason)
        statement = request.statement
        text = statement.text
        known = self._plans.recent.get(text) or self._plans.get(text)
        plan = known or await self._plan(statement.text, statement.fingerprint)
        explain = isinstance(request, Explain)
        _check_permit(permit, plan, explain)
        statement = _check_parameters(plan, statement, explain)
        session = self._inline.session
        if plan.inline and not explain and session is not None:
            done = session.attempt(plan, statement)
            if session.closed:
                self._inline.reopen()
            if done is not None:
                columns, rows, seconds = done
                if seconds > SLOW_S:
                    plan.was_late()
                elif plan.late:
                    plan.was_in_time()
                return ReadyCursor(columns, rows)
            plan.was_slow()
            await self._inline.renew(self._readers)
        return await self._run_in_worker(permit, plan, statement, cancellation, explain)

    async def _run_in_worker(
        self,
        permit: Permit,
        plan: CachedStatement,
        statement: Statement,
        cancellation: Cancellation,
        explain: bool,
    ) -> StreamCursor:
        writes = not explain and not plan.reads
        if writes:
            check_writable(self._file)
        pool = self._writer if writes else self._readers
        progress_handler = ProgressHandler(permit.limits.timeout_s)
        cursor = StreamCursor(await self._begin(pool, progress_handler, cancellation, writes))
        if not writes:
            self._spills.wake()
        await cursor.begin(
            lambda session: Execution(
                *(session, plan, statement, progress_handler),
                writes=writes,
                explain=explain,
                permit=permit,
            ),
            permit.limits.max_rows + 1,
        )
        if plan.changes_schema:
            self._plans.clear()
        elif not writes and not explain and _is_quick(cursor.effort):
            plan.was_quick()
        return cursor

    async def begin(
        self, permit: Permit, modes: TransactionModes, cancellation: Cancellation
    ) -> LazyTransaction[WorkerThread]:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        blocks = SqliteBlocks(self._hold, self._run_held, self._is_change)
        return LazyTransaction(modes, permit.request.database, blocks)

    async def _hold(
        self, writes: bool, timeout_s: float, cancellation: Cancellation
    ) -> HeldConnection[WorkerThread]:
        """A thread for one transaction."""
        if writes:
            check_writable(self._file)
        pool = self._writer if writes else self._readers
        return HeldConnection(pool, await pool.take(timeout_s, cancellation), self._running)

    async def _is_change(self, permit: Permit) -> bool:
        request, _ = query_of(permit)
        self._check_open()
        plan = await self._plan(request.statement.text, request.statement.fingerprint)
        return not isinstance(request, Explain) and not plan.reads

    async def _run_held(
        self,
        held: HeldConnection[WorkerThread] | None,
        permit: Permit,
        cancellation: Cancellation,
    ) -> Cursor:
        """Run a statement on the connection of a transaction; without one as outside."""
        if held is None:
            return await self.run(permit, cancellation)
        refuse_identity(permit)
        request, _ = query_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        plan = await self._plan(request.statement.text, request.statement.fingerprint)
        explain = isinstance(request, Explain)
        _check_permit(permit, plan, explain)
        statement = _check_parameters(plan, request.statement, explain)
        writes = not explain and not plan.reads
        progress_handler = ProgressHandler(permit.limits.timeout_s)
        running = await held.start(permit.limits.timeout_s, cancellation, writes=writes)
        running.connection().progress_handler = progress_handler
        cursor = StreamCursor(running)
        await cursor.begin(
            lambda session: Execution(
                *(session, plan, statement, progress_handler),
                writes=writes,
                explain=explain,
                permit=permit,
            ),
            permit.limits.max_rows + 1,
        )
        return cursor

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        refuse_identity(permit)
        request, _ = prepare_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        text = request.statement.text
        plan = self._plans.get(text) or await self._plan(text)
        changes = describes_change(permit) and plan.judgement.effect is Effect.WRITE
        if not changes:
            _check_permit(permit, plan, False)
        progress_handler = ProgressHandler(permit.limits.timeout_s)

        def work(session: SqliteSession) -> StatementDescription:
            with session.stepping(
                progress_handler, text=text, takes_quoted_texts=plan.takes_quoted_texts
            ):
                # SQLite sees that another process changed the schema only when something runs.
                session.load_schema()
                with session.mode(Mode.OBSERVE if changes else Mode.READ):
                    compiled = session.compile_statement(text)
            columns = [column_of(name, declared or "") for name, declared in compiled.description]
            return StatementDescription(tuple(columns), ("",) * compiled.parameters)

        return await self._ask(progress_handler, cancellation, work)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        refuse_identity(permit)
        request, _ = dry_run_query_of(permit)
        self._check_open()
        check_writable(self._file)
        text = request.statement.text
        found = parse_dml(text, "sqlite")
        if isinstance(found, str):
            return DryRun(reason=found)
        refused = unsupported(found, request.statement.params)
        if refused is not None:
            return refused
        plan = self._plans.get(text) or await self._plan(text)
        _check_permit(permit, plan, False)
        if found.query.text and not (await self._plan(found.query.text)).reads:
            return UNREAD
        progress_handler = ProgressHandler(permit.limits.timeout_s)

        def work(session: SqliteSession) -> DryRun:
            return run_dry(
                session, progress_handler, request.statement, found, permit.limits.max_rows
            )

        return await self._ask(progress_handler, cancellation, work, self._writer)

    async def uncounted(self, statement: Statement, judgement: Judgement, source: Source) -> str:
        self._check_open()
        if _REPLACES.search(statement.text) is None:
            progress_handler = ProgressHandler(WAIT_S)

            def work(session: SqliteSession) -> bool:
                with session.stepping(progress_handler), session.mode(Mode.OWN):
                    return bool(session.connection.execute(_REPLACING).fetchall())

            if not await self._ask(progress_handler, NEVER, work):
                return ""
        return "rows that REPLACE removes"

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        from tidegate.engines.sqlite import changes  # needed only where changes are kept

        self._check_open()
        check_writable(self._file)
        progress_handler = ProgressHandler(WAIT_S)

        def work(session: SqliteSession) -> Reversibility:
            with session.stepping(progress_handler):
                session.load_schema()
                with session.foreign_keys():
                    return changes.reversibility(session, statement)

        # Not on the connection that writes: a transaction may hold it.
        return await self._ask(progress_handler, NEVER, work)

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.engines.sqlite import changes

        refuse_identity(permit)
        _, image = image_of(permit)
        self._check_open()
        progress_handler = ProgressHandler(permit.limits.timeout_s)

        def work(session: SqliteSession) -> Comparison:
            return changes.compare(session, progress_handler, image)

        return await self._ask(progress_handler, cancellation, work)

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        from tidegate.engines.sqlite import changes

        refuse_identity(permit)
        _, image = image_of(permit)
        self._check_open()
        check_writable(self._file)
        progress_handler = ProgressHandler(permit.limits.timeout_s)
        running = await self._begin(self._writer, progress_handler, cancellation, writes=True)

        def work(session: SqliteSession) -> Comparison:
            return changes.put_back(session, progress_handler, image, permit.keeper)

        async with running as worker:
            found = await worker.do(work)
            running.release()
        return found

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        from tidegate.engines.sqlite import row_changes  # needed only to edit rows

        refuse_identity(permit)
        request = images_of(permit)
        self._check_open()
        progress_handler = ProgressHandler(permit.limits.timeout_s)

        def work(session: SqliteSession) -> FoundRows:
            return row_changes.read_images(session, progress_handler, request)

        return await self._ask(progress_handler, cancellation, work)

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        from tidegate.engines.sqlite import row_changes, row_feeds

        refuse_identity(permit)
        self._check_open()
        check_writable(self._file)
        progress_handler = ProgressHandler(permit.limits.timeout_s)
        running = await self._begin(self._writer, progress_handler, cancellation, writes=True)

        def work(session: SqliteSession) -> ChangedRows:
            if change_of(permit).feed is not None:
                return row_feeds.add_rows(session, progress_handler, permit)
            return row_changes.change_rows(session, progress_handler, permit)

        async with running as worker:
            done = await worker.do(work)
            running.release()
        return done

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        if request.aspect == "databases":
            return Databases((self._status.database,))
        progress_handler = ProgressHandler(permit.limits.timeout_s)

        def work(session: SqliteSession) -> Description:
            return catalog.describe(
                session, progress_handler, request, self._status, self._identity
            )

        return await self._ask(progress_handler, cancellation, work)

    async def schema_version(self) -> str:
        self._check_open()
        stamp = self._inline.schema_version(self._identity)
        if stamp is not None:
            return stamp
        progress_handler = ProgressHandler(WAIT_S)
        identity = self._identity

        def work(session: SqliteSession) -> str:
            with session.stepping(progress_handler):
                return catalog.schema_version(session, identity)

        return await self._ask(progress_handler, NEVER, work)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._spills.close()
        await end_all((self._readers, self._writer), self._running)
        self._inline.close()

    async def _begin(
        self,
        pool: Threads,
        progress_handler: ProgressHandler,
        cancellation: Cancellation,
        writes: bool = False,
    ) -> RunningStatement[WorkerThread]:
        """A thread for one statement."""
        timeout_s = progress_handler.timeout_s
        running = await start(pool, timeout_s, cancellation, self._running, writes=writes)
        running.connection().progress_handler = progress_handler
        return running

    async def _ask(
        self,
        progress_handler: ProgressHandler,
        cancellation: Cancellation,
        work: Callable[[SqliteSession], Answer],
        pool: Threads | None = None,
    ) -> Answer:
        """Have a thread answer one question."""
        running = await self._begin(pool or self._readers, progress_handler, cancellation)
        async with running as worker:
            answer = await worker.do(work)
            running.release()
        return answer

    async def _plan(self, text: str, fingerprinted: str | None = None) -> CachedStatement:
        """The plan of a text: from the cache, from a similar text, or prepared by SQLite."""
        plan = self._plans.get(text)
        if plan is None:
            short = len(text) <= CACHED_TEXT
            alike = await self._plan_alike(text, fingerprinted) if short else None
            plan = alike or await self._prepare(text)
            if short:
                self._plans.put(text, plan)
        return plan

    async def _plan_alike(self, text: str, alike: str | None) -> CachedStatement | None:
        """The plan of a query, from one that differs in plain values only; None if it is unknown.

        A read of cheap or bounded steps is what all texts like it are: SQLite checks the text
        itself when it runs, and the inline budget holds whatever its values are.
        """
        # What does not begin like a query is no read as a rule: SQLite need not prepare it twice.
        if not _QUERY.match(text) or _holds_long_string(text):
            return None
        alike = alike or fingerprint(text)
        if alike == text:
            return None
        known = self._plans.get(alike)
        if known is None:
            try:
                known = await self._prepare(alike)
            except TidegateError:
                return None  # preparing the text itself reports why
            self._plans.put(alike, known)
        return known.for_likeness() if known.reads and known.fits_inline else None

    async def _prepare(self, text: str) -> CachedStatement:
        """Have SQLite prepare a text: on the event loop if that takes little time."""
        plan = self._inline.prepare(text)
        if plan is None:
            await self._inline.renew(self._readers)
            progress_handler = ProgressHandler(WAIT_S)

            def work(session: SqliteSession) -> CachedStatement:
                with session.stepping(progress_handler, text=text, takes_quoted_texts=False):
                    return prepare(session, text)

            plan = await self._ask(progress_handler, NEVER, work)
        return plan

    def _check_open(self) -> None:
        """See that the file is still the one that was opened; open a new one in its place."""
        if self._closed:
            raise closed()
        now = perf_counter()
        inline = self._inline
        if now < self._checked_until and (inline.session is not None or inline.renewing):
            return
        identity = _identity_of(self._file)
        self._checked_until = now + CHECKED_S
        if identity == self._identity and (inline.session is not None or inline.renewing):
            return
        self._plans.clear()
        self._readers.renew()
        self._writer.renew()
        self._inline.reopen()
        self._identity = identity


def _is_quick(effort: Effort | None) -> bool:
    """Whether what took so much would not keep others from the event loop."""
    return effort is not None and effort.cpu_s < QUICK_S and effort.wall_s < SLOW_S


def _threads(open_session: Callable[[], SqliteSession], size: int, name: str) -> Threads:
    async def open_thread() -> WorkerThread:
        return WorkerThread(open_session, name)

    return Pool(open_thread, size)


def _check_permit(permit: Permit, plan: CachedStatement, explain: bool) -> None:
    """Fail closed if SQLite sees more than the permit allows. Raises: TidegateError POLICY_*."""
    judgement = plan.judgement
    administered = permit.judgement is not None and permit.judgement.administration is not None
    if (
        judgement.code is None
        and (explain or judgement.effect <= permit.effect)
        and (explain or administered or not plan.vacuums)
    ):
        return
    if judgement.code == Code.SQL_FUNCTION.value:
        code = Code.SQL_FUNCTION
    else:
        code = Code.POLICY_READ_ONLY if permit.effect is Effect.READ else Code.POLICY_DENIED
    raise TidegateError(code, judgement.reason, details={"effect": judgement.effect.label})


def _check_parameters(plan: CachedStatement, statement: Statement, explain: bool) -> Statement:
    given = 0 if statement.params is None else len(statement.params)
    if given == plan.parameters:
        return statement
    if explain and given == 0:
        return Statement(statement.text, (None,) * plan.parameters)
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The statement has {plan.parameters} placeholders, and {given} parameters were given.",
    )


def _holds_long_string(text: str) -> bool:
    """Whether what may be searched for is long: the bound on values depends on its length."""
    return any(
        len(quoted) > SHORT_NEEDLE + 2 for quoted in _QUOTED.findall(text) if quoted[0] == "'"
    )


def _identity_of(file: FileUrl) -> str:
    """What tells the file from another at its path. Raises: TidegateError SOURCE_UNREACHABLE."""
    if file.path is None:
        return "memory"
    try:
        found = os.stat(file.path)  # noqa: PTH116 - a third of the cost of Path.stat, on each call
    except OSError as error:
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"There is no database file at {file.path} any more.",
            details={"path": file.path},
        ) from error
    return f"{found.st_dev:x}.{found.st_ino:x}"
