"""DuckDB as an engine: which worker runs a statement, and which may have the file.

DuckDB lets one process write a file, or several read it, so the workers share a lock of many
readers or one writer. The driver is never imported here: it lives in worker processes
(`worker.py`), which can be killed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import ClassVar, Self

import msgspec

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    PoolWaits,
    RowsConflictError,
    StatementDescription,
)
from tidegate.engines.common.buffered_cursor import BufferBudget, BufferedCursor
from tidegate.engines.common.errors import closed
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    dry_run_query_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.pool import Pool, waits_of
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.common.row_edits import change_of, images_of
from tidegate.engines.common.row_images import image_of, too_many_rows
from tidegate.engines.common.running_statement import (
    RunningStatement,
    RunningStatements,
    end_all,
    start,
)
from tidegate.engines.registry import resolve_options
from tidegate.engines.worker.framed_process import START_S
from tidegate.engines.worker.process import Body, WorkerProcess
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.changes import ChangeKeeper, Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain, Prepare, Query
from tidegate.model.row_changes import ChangedRows, FoundRows, RowFeed
from tidegate.model.schema import Databases, Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.worker_share import own_share
from tidegate.products.duckdb.engine.cursor import ProcessCursor
from tidegate.products.duckdb.engine.messages import (
    UNPLANNED,
    Change,
    Changed,
    CompareOrRestore,
    EditedRows,
    EditRows,
    FeedTable,
    Greeting,
    Look,
    Metadata,
    Opinion,
    Prepared,
    PutBack,
    Question,
    ReadByKeys,
    Run,
    Version,
)
from tidegate.products.duckdb.engine.url import DuckUrl
from tidegate.results.column_kinds import column_of
from tidegate.sql.fingerprint import fingerprint


class ReaderWriterLock:
    """A line for one file. A writer waits for those who read, later readers for the writer."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._line: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @property
    def quiet(self) -> bool:
        """Whether no statement has the file or waits for it."""
        return not self._readers and not self._writing and not self._line

    async def begin(self, *, writes: bool, timeout_s: float) -> None:
        """Wait for a turn. Raises: TidegateError SOURCE_BUSY after `timeout_s`."""
        if not self._line and self._fits(writes):
            self._enter(writes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((writes, turn))
        try:
            await asyncio.wait_for(turn, timeout_s)
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.end(writes=writes)
            else:
                self._advance()
            if isinstance(error, TimeoutError):
                raise TidegateError(
                    Code.SOURCE_BUSY, "Another statement of this source uses the database file."
                ) from None
            raise

    def end(self, *, writes: bool) -> None:
        """Give the turn back."""
        if writes:
            self._writing = False
        else:
            self._readers -= 1
        self._advance()

    def _fits(self, writes: bool) -> bool:
        return not self._writing and not (writes and self._readers)

    def _enter(self, writes: bool) -> None:
        if writes:
            self._writing = True
        else:
            self._readers += 1

    def _advance(self) -> None:
        while self._line:
            writes, turn = self._line[0]
            if not turn.done():
                if not self._fits(writes):
                    return
                self._enter(writes)
                turn.set_result(None)
            self._line.popleft()


MODULE = "tidegate.products.duckdb.engine.worker"

HOLD_S = 2.0
"""How long the file is kept open after the last statement, in seconds. Meanwhile no other process
can write it."""

OPINIONS = 1_024
OPINION_TEXT = 32_768
ALIKE_TEXT = 4_096
"""Characters of the longest text whose fingerprint is taken; of a longer one it saves little."""


class DuckdbEngine:
    """One DuckDB file, or one database in memory."""

    base_capabilities: ClassVar[Capabilities] = Capabilities(
        inspects=True,
        explains_changes=False,
        dry_runs=True,
        prepares=True,
        counts_changes=True,
        undoes=True,
        edits=True,
        feeds=True,
    )
    """The capabilities, except the concurrency, which the URL sets."""
    capabilities: Capabilities

    wait_s: ClassVar[float] = 10.0
    """How long our own questions, which no permit limits, may take."""

    def __init__(self, url: DuckUrl) -> None:
        workers = own_share().of(url.workers)
        self.capabilities = msgspec.structs.replace(self.base_capabilities, max_concurrency=workers)
        self._url = url
        self._pool = Pool(self._start, workers, open_s=START_S)
        self._turns = ReaderWriterLock()
        self._running: RunningStatements[WorkerProcess] = RunningStatements()
        self._opinions: dict[str, Judgement | None] = {}
        self._opinions_of = ""
        """The state of the file that they are about: views and macros may be others in the next."""
        self._stamp: tuple[str, str] = ("", "")
        self._release_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._status = Status("", None, "")

    @classmethod
    async def open(cls, source: Source) -> DuckdbEngine:
        return await cls._opened(DuckUrl(source.url, resolve_options(source)), source)

    @classmethod
    async def _opened(cls, url: DuckUrl, source: Source) -> Self:
        if source.masks or source.filters:
            url.setup = msgspec.structs.replace(url.setup, plans_as_written=True)
        engine = cls(url)
        try:
            greeting = await engine._ask("greet", Version(engine._url.version()), Greeting)
        except BaseException:
            await engine.close()
            raise
        engine._status = greeting.status
        return engine

    @property
    def open_connections(self) -> int:
        return len(self._pool.connections)

    @property
    def pool_waits(self) -> PoolWaits:
        return waits_of([self._pool])

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """The opinion of DuckDB's parser and planner, from the cache where it was asked before.

        Of a read, the opinion of one that differs in plain values only is taken, if DuckDB could
        plan that: there may be no column 7 to order by. The database is opened so that a read
        cannot write, whatever its values are."""
        self._check_open()
        text, own = statement.text, list(judgement.own)
        url, version = self._url, self._url.version()
        is_in_memory = url.file.path is None and url.setup.folder is None
        if version != self._opinions_of or is_in_memory:
            self._opinions.clear()
            self._opinions_of = version
        if text in self._opinions:
            return self._opinions[text]
        alike = "" if own or judgement.effect is not Effect.READ else _alike(statement)
        if alike and alike != text:
            found = await self._opinion(alike, own)
            if found is not None and found.effect is Effect.READ and found.rule != UNPLANNED:
                return found
        return await self._opinion(text, own)

    async def _opinion(self, text: str, own: list[str]) -> Judgement | None:
        if text in self._opinions:
            return self._opinions[text]
        version = self._url.version()
        opinion = await self._ask("inspect", Question(version, text, own), Opinion)
        if len(text) <= OPINION_TEXT and not own and version == self._opinions_of:
            if len(self._opinions) >= OPINIONS:
                self._opinions.clear()
            self._opinions[text] = opinion.judgement
        return opinion.judgement

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        refuse_identity(permit)
        request, _ = query_of(permit)
        explain = isinstance(request, Explain)
        writes = permit.effect > Effect.READ and not explain
        if writes and permit.keeper is not None:
            kept = await self._run_kept(permit, request, permit.keeper, cancellation)
            if kept is not None:
                return kept
        running = await self._begin(permit.limits.timeout_s, cancellation, writes)
        cursor = ProcessCursor(running)
        async with running:  # the file may be gone
            message = self._message(permit, request, permit.limits.max_rows + 1)
        await cursor.begin(message)
        return cursor

    async def _run_kept(
        self,
        permit: Permit,
        request: Query | Explain,
        keeper: ChangeKeeper,
        cancellation: Cancellation,
    ) -> Cursor | None:
        """Run a change whose rows are kept; None if they cannot be: then it has not run."""
        running = await self._begin(permit.limits.timeout_s, cancellation, writes=True)
        async with running as worker:
            change = Change(self._message(permit, request, 0), keeper.max_bytes)
            changed = await worker.ask("change", change, Changed)
            has_run = changed.affected >= 0
            if changed.image is not None:
                await asyncio.to_thread(keeper.prepare, changed.image)
            else:
                await asyncio.to_thread(keeper.give_up, changed.reason)
            if has_run:
                running.committing = True
                await worker.ask("commit", None, type(None))
                running.committing = False
                running.release()
        if not has_run:
            await running.close()
            return None
        columns = tuple([column_of(name, kind) for name, kind in changed.columns])
        return BufferedCursor(columns, changed.rows, changed.affected, BufferBudget())

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        params = None if statement.params is None else list(statement.params)
        run = Run(self._url.version(), statement.text, params, 0, False, 0)
        return await self._ask("reversibility", run, Reversibility)

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        refuse_identity(permit)
        _, image = image_of(permit)
        kept = CompareOrRestore(self._url.version(), image)
        timeout_s = permit.limits.timeout_s
        return await self._ask("compare", kept, Comparison, timeout_s, cancellation)

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        refuse_identity(permit)
        _, image = image_of(permit)
        running = await self._begin(permit.limits.timeout_s, cancellation, writes=True)
        async with running as worker:
            kept = CompareOrRestore(self._url.version(), image)
            done = await worker.ask("put_back", kept, PutBack)
            if done.image is not None:
                if permit.keeper is not None:
                    await asyncio.to_thread(permit.keeper.prepare, done.image)
                running.committing = True
                await worker.ask("commit", None, type(None))
                running.committing = False
                running.release()
        if done.image is None:
            await running.close()
        return done.found

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        refuse_identity(permit)
        request = images_of(permit)
        wanted = ReadByKeys(
            self._url.version(),
            request.schema or "main",
            request.table,
            [list(key) for key in request.keys],
            list(request.key_names),
            list(request.hidden),
            request.adds,
        )
        timeout_s = permit.limits.timeout_s
        return await self._ask("read_by_keys", wanted, FoundRows, timeout_s, cancellation)

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        from tidegate.products.duckdb.engine.row_edits import edits_of  # needed only to edit rows

        refuse_identity(permit)
        change, keeper = change_of(permit), permit.keeper
        running = await self._begin(permit.limits.timeout_s, cancellation, writes=True)
        async with running as worker:
            edits = edits_of(change, self._url.version(), permit)
            if change.feed is None:
                done = await worker.ask("edit_rows", edits, EditedRows)
            else:
                done = await self._add_rows(worker, change.feed, edits)
            if not done.count and not change.tries:
                if done.image is not None and keeper is not None:
                    await asyncio.to_thread(keeper.prepare, done.image)
                elif keeper is not None:
                    await asyncio.to_thread(keeper.give_up, done.reason)
                running.committing = True
                await worker.ask("commit", None, type(None))
                running.committing = False
                running.release()
        if done.count or change.tries:
            await running.close()
        if done.count:
            raise RowsConflictError(change.table, tuple(done.conflicts), done.count)
        if change.feed is not None:
            return ChangedRows((), change.feed.count, fed=change.feed.count)
        return ChangedRows(tuple(done.rows), len(change.edits))

    async def _add_rows(self, worker: WorkerProcess, feed: RowFeed, edits: EditRows) -> EditedRows:
        """Have the rows of a file added, some at a time. Raises: TidegateError."""
        limit = edits.max_rows_changed
        if limit is not None and feed.count > limit:
            raise too_many_rows(limit, feed.count, False)
        table = FeedTable(
            *(edits.version, edits.shape, list(feed.places)),
            *(edits.tries, edits.keeps, edits.max_bytes),
        )
        await worker.ask("begin_feed", table, type(None))
        done = 0
        for rows in feed.batches():
            feed.note(done + 1, done + len(rows))
            await worker.ask("feed_rows", rows, type(None))
            done += len(rows)
        return await worker.ask("end_feed", None, EditedRows)

    async def uncounted(self, statement: Statement, judgement: Judgement, source: Source) -> str:
        if judgement.verb == "select":
            return "how many rows it changes"
        found = await self._ask("has_triggers", Version(self._url.version()), bool)
        return "the rows that triggers change" if found else ""

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        refuse_identity(permit)
        request, _ = prepare_of(permit)
        prepared = await self._ask(
            "prepare",
            self._message(permit, request, 0),
            Prepared,
            permit.limits.timeout_s,
            cancellation,
        )
        columns = [column_of(name, kind) for name, kind in prepared.columns]
        return StatementDescription(tuple(columns), ("",) * prepared.parameters)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        refuse_identity(permit)
        request, _ = dry_run_query_of(permit)
        running = await self._begin(permit.limits.timeout_s, cancellation, writes=True)
        async with running as worker:
            run = self._message(permit, request, permit.limits.max_rows)
            dry_run = await worker.ask("dry_run", run, DryRun)
            running.release()
        return dry_run

    def _message(self, permit: Permit, request: Prepare | Query | Explain, max_rows: int) -> Run:
        params = request.statement.params
        return Run(
            self._url.version(),
            request.statement.text,
            None if params is None else list(params),
            int(permit.effect),
            isinstance(request, Explain),
            max_rows,
            request.schema,
            permit.max_rows_changed,
            [] if permit.judgement is None else list(permit.judgement.touches),
            permit.whole_changes,
            [] if permit.judgement is None else list(permit.judgement.own),
            _alike(request.statement) if permit.effect is Effect.READ else "",
        )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        if request.aspect == "databases":
            return Databases((self._status.database,))
        look = Look(self._url.version(), request)
        metadata = await self._ask("look", look, Metadata, permit.limits.timeout_s, cancellation)
        if metadata.catalog is not None:
            self._stamp = look.version, metadata.catalog.version
        return metadata.description

    async def schema_version(self) -> str:
        """A digest of the schema, computed again only if the file has changed."""
        self._check_open()
        version = self._url.version()
        if self._stamp[0] != version or self._url.file.path is None:
            self._stamp = version, await self._ask("stamp", Version(version), str)
        return self._stamp[1]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._release_timer is not None:
            self._release_timer.cancel()
        await end_all((self._pool,), self._running)

    async def _ask(
        self,
        verb: str,
        body: object,
        kind: type[Body],
        timeout_s: float | None = None,
        cancellation: Cancellation = NEVER,
    ) -> Body:
        """Have a worker answer one question that only reads."""
        running = await self._begin(timeout_s or self.wait_s, cancellation, writes=False)
        async with running as worker:
            answer = await worker.ask(verb, body, kind)
            running.release()
        return answer

    async def _begin(
        self, timeout_s: float, cancellation: Cancellation, writes: bool
    ) -> RunningStatement[WorkerProcess]:
        """A worker for one statement, and the file for it."""
        self._check_open()
        check_cancelled(cancellation)
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        await self._turns.begin(writes=writes, timeout_s=timeout_s)
        try:
            if writes:
                await self._let_go()
            running = await start(
                self._pool,
                max(0.0, deadline - loop.time()),
                cancellation,
                self._running,
                writes=writes,
                limit_s=timeout_s,
            )
            running.on_release = lambda: self._end_turn(writes)
            return running
        except BaseException:
            self._end_turn(writes)
            raise

    def _end_turn(self, writes: bool) -> None:
        self._turns.end(writes=writes)
        if self._turns.quiet and not self._closed and self._url.file.path is not None:
            loop = asyncio.get_running_loop()
            self._release_timer = loop.call_later(HOLD_S, self._let_go_soon)

    def _let_go_soon(self) -> None:
        """Close the file after a while without statements: other processes may write it."""
        self._release_timer = None
        for worker in self._pool.take_idle():
            self._released(worker)

    async def _let_go(self) -> None:
        """Have every worker close the file, before one of them opens it for writing."""
        if self._url.file.path is None:
            return
        asked = [self._released(worker) for worker in self._pool.take_idle()]
        if asked:
            await asyncio.wait(asked)

    def _released(self, worker: WorkerProcess) -> asyncio.Future[msgspec.Raw]:
        asked = worker.send("release")

        def give(answer: asyncio.Future[msgspec.Raw]) -> None:
            answer.exception()
            self._pool.give(worker)

        asked.add_done_callback(give)
        return asked

    async def _start(self) -> WorkerProcess:
        return await WorkerProcess.start(MODULE, self._url.setup)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _alike(statement: Statement) -> str:
    """What texts that differ in plain values only have in common; empty for a long text."""
    if len(statement.text) > ALIKE_TEXT:
        return ""
    return statement.fingerprint or fingerprint(statement.text)
