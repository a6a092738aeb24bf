"""Runs the statements of a session through the gate and sends their rows and tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import structs

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import BegunTransaction, EndedTransaction, Prepared, Reply
from tidegate.model.requests import Call, Prepare, Query, Request
from tidegate.model.results import Column, Document, Limits, Page, RowSink
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.model.transactions import (
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionBounds,
    TransactionModes,
    TransactionRequest,
    runs_in_transaction,
)
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.command_reader import begins_statement
from tidegate.products.pgwire.completions import Completions
from tidegate.products.pgwire.errors import refused, session_ended
from tidegate.products.pgwire.gate import WireGate
from tidegate.products.pgwire.logins import Login
from tidegate.products.pgwire.portals import Portal, Rows, RunningResult
from tidegate.products.pgwire.row_encoder import RowEncoder
from tidegate.products.pgwire.rows import Client, CopySender, RowSender, with_kinds_of
from tidegate.products.pgwire.session_settings import SessionSettings
from tidegate.products.pgwire.tags import command_tag
from tidegate.products.pgwire.transaction import NO_MODES, TransactionBlock, does_not_run_together
from tidegate.results.row_stream import RowChannel

SURFACE = "pgwire"


class SessionLimits(NamedTuple):
    """What bounds each session: `calls` the time and size of one call, `max_rows` the rows of one
    result, and `transactions` how long its transaction may be open."""

    calls: LimitSettings
    max_rows: int
    transactions: TransactionBounds


class StatementRunner:
    """Makes the calls of one session. What it runs is ended by `cancel`, which may be called
    meanwhile. Every method but that raises TidegateError."""

    def __init__(
        self,
        gateway: WireGate,
        client: Client,
        completions: Completions,
        login: Login,
        settings: SessionSettings,
        block: TransactionBlock,
        limits: SessionLimits,
    ) -> None:
        self._bounds_of_block = limits.transactions
        self._gateway = gateway
        self._client = client
        self._completions = completions
        self._actor = login.actor
        self._source = login.source
        self._settings = settings
        self._block = block
        self._limits = limits.calls
        self._max_rows = limits.max_rows
        self._address = login.address
        self._running: Cancellation | None = None
        self._has_transactions: bool | None = None

    def cancel(self, reason: str) -> None:
        """End what runs now."""
        if self._running is not None:
            self._running.cancel(reason)

    # Whole results

    async def run(
        self,
        text: str,
        parameters: tuple[Any, ...] | None,
        sender: RowSender | CopySender,
        *,
        whole: bool,
        expected: tuple[Column, ...] | None = None,
    ) -> None:
        """Run a statement and send its rows and its tag. `whole`: a place in the statement is a
        place in what the client sent. `expected` are the columns that it was described with."""
        await self._enter()
        reply = await self._handle(self._query(text, parameters or None, sender), whole=whole)
        payload = reply.payload
        if isinstance(payload, Document):
            columns = (Column("result", "json", "json"),)
            sender.begin(columns)
            await sender.write([(payload.json.decode(),)])
            payload = Page(columns, b"[]", 1, payload.affected)
        if expected is not None and _shape(expected) != _shape(payload.columns):
            raise refused(
                "0A000",
                "The columns of the result are others than those that were described.",
                "Prepare the statement again.",
            )
        if isinstance(sender, CopySender):
            sender.finish()
            self._completions.send(f"COPY {payload.row_count}", payload)
        else:
            sender.finish(reads_nothing=payload.reads_nothing)
            self._complete(text, payload)

    async def judge(self, text: str) -> Judgement:
        """What a statement would do. One that is denied is sent to the gate: the call itself gives
        the refusal its words and its record, and nothing runs."""
        await self._enter()
        judgement, explanation = await self._gateway.explain(self._call(self._query(text)))
        if explanation.verdict.kind == "deny":
            await self._handle(self._query(text))
        return judgement

    async def prepare(self, text: str) -> Prepared:
        """The columns and parameters of a statement, by its source."""
        request = Prepare(
            statement=Statement(text),
            changes=True,
            limits=self._bounds(),
            schema=self._settings.schema,
            settings=self._settings.applied(),
        )
        prepared = (await self._handle(request, whole=True)).payload
        if not isinstance(prepared, Prepared):
            raise TypeError(type(prepared).__name__)
        return prepared

    async def ask(self, request: Request) -> Any:
        """The payload of a reply."""
        return (await self._handle(request)).payload

    # Results in parts

    def start(self, text: str, parameters: tuple[Any, ...] | None) -> RunningResult:
        """Begin a statement whose rows are read in parts."""
        cancellation = Cancellation()

        async def handle(channel: RowChannel) -> Reply:
            await self._enter()  # a separate call, after which nothing would run
            self._running = cancellation
            query = self._query(text, parameters or None, channel, in_parts=True)
            return await self._gateway.handle(self._confirmed(self._call(query, cancellation)))

        settings = self._settings.applied()
        return RunningResult(handle, cancellation, self._source_now(), settings)

    def _source_now(self) -> Source:
        return self._gateway.source_of(self._call(Query(Statement(""))))

    async def open(self, cursor: Portal) -> None:
        """Begin the statement of a cursor, and find its columns."""
        statement = cursor.statement
        cursor.result = self.start(statement.placed.text, cursor.parameters or None)
        self._running = cursor.result.cancellation
        try:
            columns = await cursor.result.columns()
        except TidegateError as error:
            await cursor.close()
            raise self._explained(error) from None
        finally:
            self._running = None
        statement.columns = with_kinds_of(columns, cursor.result.ahead, self._source.dialect)

    async def read(self, result: RunningResult, count: int | None) -> tuple[Rows, Page | None]:
        """Up to `count` rows (None: all that come next), and the page if they were the last. A
        result that began under other rules than those of now gives none."""
        if result.source is not None and self._source_now() != result.source:
            await result.close()
            raise TidegateError(
                Code.POLICY_DENIED,
                "The rules of the source were changed while its result was read, and no more of it"
                " is shown.",
                hint="Send the statement again: it runs under the rules of now.",
            )
        if result.settings != self._settings.applied():
            raise refused(
                "0A000",
                "The settings of the session (TimeZone, DateStyle, search_path) were changed since"
                " this result was begun, and it is read with those of its beginning.",
                "Set them back, or close it and begin it again.",
            )
        self._running = result.cancellation
        if self._block.id:
            self._gateway.touch_transaction(self._block.id)
        try:
            rows, more = await result.read(count)
            return rows, None if more else await result.page() or Page((), b"[]", 0)
        except TidegateError as error:
            raise self._explained(error) from None
        finally:
            self._running = None

    async def send_rows(self, encoder: RowEncoder, rows: Rows) -> None:
        """Send rows, and wait until the client has read enough of what waits."""
        buffer = bytearray()
        encoder.append(buffer, rows)
        self._client.write(buffer)
        await self._client.drain()

    async def run_part(self, portal: Portal, max_rows: int, *, describes: bool) -> None:
        """Send some rows of a portal, which stays open; all that are left if `max_rows` is 0."""
        statement = portal.statement
        if portal.result is None:
            portal.result = self.start(statement.placed.text, portal.parameters)
        result = portal.result
        left = max_rows or None
        rows, page = await self.read(result, left)
        columns = result.channel.columns
        if describes:
            columns = with_kinds_of(columns, rows, self._source.dialect)
        encoder = RowEncoder(columns, self._source.dialect, portal.formats)
        if describes:
            self._client.write(
                messages.row_description(encoder.fields) if columns else messages.NO_DATA
            )
        await self.send_rows(encoder, rows)
        left = left and left - len(rows)
        while page is None and left != 0:
            rows, page = await self.read(result, left)
            await self.send_rows(encoder, rows)
            left = left and left - len(rows)
        if page is None:
            self._client.write(messages.PORTAL_SUSPENDED)
            return
        portal.result = None
        self._complete(statement.text, page)

    # Transactions

    async def may_be_in_transaction(self, text: str) -> bool:
        """Whether a statement may run, and in a transaction over several."""
        judgement, explanation = await self._gateway.explain(self._call(self._query(text)))
        return explanation.verdict.kind != "deny" and runs_in_transaction(judgement)

    async def enter_implicit(self, judgement: Judgement | None, *, is_last: bool) -> None:
        """Let the next statement be one of an implicit block: in a transaction with the others, or
        by itself if it is the only one of the source. `judgement` None: it is not known.

        Raises: TidegateError 0A000 if it does not run in one, and others are with it.
        """
        block = self._block
        if is_last and not block.id and self._settings.isolation is None:
            block.runs_alone = True
            return
        await self._enter()
        if block.lacks or judgement is None or judgement.effect is Effect.READ:
            return
        if runs_in_transaction(judgement):
            block.has_changed = True
        elif is_last and not block.has_changed:
            await self._handle(CommitTransaction())  # of reads alone
            block.id, block.runs_alone = None, True
        else:
            raise does_not_run_together()

    async def _enter(self) -> None:
        """Ask the gate for the transaction of an open block."""
        block = self._block
        if not block.is_open or block.id is not None or block.runs_alone:
            return
        request = BeginTransaction(
            modes=self._modes(),
            bounds=self._bounds_in_block(),
            on_end=self._end_session,
            limits=self._bounds(),
        )
        begun = (await self._handle(request)).payload
        if not isinstance(begun, BegunTransaction):
            raise TypeError(type(begun).__name__)
        block.id = begun.id
        self._has_transactions = bool(begun.id)

    def _end_session(self, error: Exception) -> None:
        """The gate has ended the session's transaction, within its bounds."""
        said = error if isinstance(error, TidegateError) else session_ended("a fault")
        self._client.end(said)

    async def has_transactions(self) -> bool:
        """Whether the source has transactions over several statements. It is asked once."""
        if self._has_transactions is None:
            self._block.open(NO_MODES)
            await self._enter()
            await self.end(commit=False)
        return bool(self._has_transactions)

    def _modes(self) -> TransactionModes:
        asked, settings = self._block.modes, self._settings
        return TransactionModes(
            asked.isolation or settings.isolation,
            settings.reads_only if asked.reads_only is None else asked.reads_only,
            asked.deferrable,
        )

    @property
    def most_idle_s(self) -> float | None:
        """How long the transaction of the block may be idle; None if there is none."""
        return self._bounds_in_block().idle_s if self._block.id else None

    def _bounds_in_block(self) -> TransactionBounds:
        bounds, asked = self._bounds_of_block, self._settings.idle_in_transaction_s
        if asked is None or asked >= bounds.idle_s:
            return bounds
        return structs.replace(bounds, idle_s=asked)

    async def mark(self, request: MarkTransaction) -> None:
        """Carry out a savepoint in the transaction. Does nothing where the source has none."""
        await self._enter()
        if self._block.id:
            await self._handle(request)

    async def end(self, *, commit: bool) -> bool:
        """End the transaction of the block, which is closed whatever happens; whether it was
        committed, as it is where there is none."""
        block = self._block
        id, failed = block.id, block.has_failed
        request = CommitTransaction() if commit and not failed else RollbackTransaction()
        call = self._call(request)
        block.close()
        if not id:
            return commit and not failed
        try:
            ended = (await self._gateway.handle(call)).payload
        except TidegateError as error:
            reason = f"its client could not end it: {error.message}"
            await self._gateway.abandon_transaction(id, reason)
            if isinstance(request, RollbackTransaction):
                return False  # as its client wanted
            raise
        return isinstance(ended, EndedTransaction) and ended.committed

    async def abandon(self, reason: str) -> None:
        """Roll back the transaction, if there is one. Raises nothing."""
        id = self._block.id
        self._block.close()
        if id:
            await self._gateway.abandon_transaction(id, reason)

    # Calls

    def _complete(self, text: str, page: Page) -> None:
        tag = command_tag(text, page, self._source.dialect)
        if self._block.lacks and not tag.startswith(("SELECT", "EXPLAIN", "SHOW")):
            self._block.kept += 1
        self._completions.send(tag, page)

    def _query(
        self,
        text: str,
        parameters: tuple[Any, ...] | None = None,
        sink: RowSink | None = None,
        *,
        in_parts: bool = False,
    ) -> Query:
        return Query(
            statement=Statement(text, parameters),
            sink=sink,
            in_parts=in_parts,
            is_whole=True,
            limits=self._bounds(),
            schema=self._settings.schema,
            settings=self._settings.applied(),
        )

    def _bounds(self) -> Limits:
        limits = self._limits
        asked = self._settings.timeout_s
        timeout_s = limits.timeout_s if asked is None else min(asked, limits.max_timeout_s)
        rows = min(self._settings.max_rows or self._max_rows, self._max_rows)
        return Limits(rows, limits.max_bytes, timeout_s)

    def _call(self, request: Request, cancellation: Cancellation | None = None) -> Call:
        block = self._block
        in_block = isinstance(request, (Query, TransactionRequest))
        asked = block.modes.reads_only
        reads_only = self._settings.reads_only if asked is None else asked
        return Call(
            self._actor,
            SURFACE,
            SURFACE,
            request,
            self._source.name,
            client=self._settings.get("application_name") or "",
            cancellation=cancellation or Cancellation(),
            reads_only=reads_only or (block.lacks and not block.is_implicit),
            address=self._address,
            on_behalf_of=self._settings.on_behalf_of,
            plan=self._settings.plan,
            transaction=(block.id or "") if in_block and not block.runs_alone else "",
        )

    def _confirmed(self, call: Call) -> Call:
        if not isinstance(call.request, Query) or not self._settings.take_confirmation():
            return call
        return structs.replace(call, confirmed=True)

    async def _handle(self, request: Request, *, whole: bool = False) -> Reply:
        cancellation = self._running = Cancellation()
        try:
            return await self._gateway.handle(self._confirmed(self._call(request, cancellation)))
        except TidegateError as error:
            if not whole:
                error.details.pop("position", None)
            if (
                error.code is Code.SQL_UNKNOWN
                and isinstance(request, (Query, Prepare))
                and not begins_statement(request.statement.text, self._source.dialect)
            ):
                error.details.setdefault("sqlstate", "42601")  # a syntax error of PostgreSQL's
            raise self._explained(error) from None
        finally:
            self._running = None

    def _explained(self, error: TidegateError) -> TidegateError:
        return self._block.explain(error, reads_only=self._settings.reads_only)


def _shape(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
