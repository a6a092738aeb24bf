"""Runs what a call asks for, under a permit: a statement becomes a page, metadata a description."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from tidegate.engines.api import (
    Cursor,
    Row,
    SchemaChangedError,
    StatementDescription,
    can_prepare,
    counted_of,
    has_upstream,
    new_state_of,
    tag_of,
)
from tidegate.errors import Code, TidegateError
from tidegate.gateway.approval import record_new_state
from tidegate.gateway.budgets import raise_reached
from tidegate.gateway.call_traces import begin_statement, end_statement
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import bind_caller
from tidegate.gateway.masking import hide_sessions, mask, without_key, without_values
from tidegate.gateway.metadata import describe
from tidegate.gateway.result_cache import (
    MAX_KEPT_ROWS,
    AppliedRules,
    CachedResult,
    RowBuffer,
    handle_at,
)
from tidegate.gateway.source_connections import note_reach
from tidegate.gateway.transactions import check_sum, control, engine_transaction
from tidegate.gateway.upstream_progress import BEGINS, ENDS
from tidegate.model import notices
from tidegate.model.decisions import Permit
from tidegate.model.replies import Prepared
from tidegate.model.requests import Browse, EngineRequest, Explain, FetchMore, Prepare, Query
from tidegate.model.results import Column, Document, Limits, Page, Truncation
from tidegate.model.server_requests import ServerRequest
from tidegate.model.statements import Effect
from tidegate.model.transactions import TransactionRequest
from tidegate.results.page import PageBuilder
from tidegate.results.row_stream import RowStream

SKIPPED_ROWS = 512
"""Rows that are read at a time where they are left out."""
_STOPPED = frozenset({Code.LIMIT_TIME, Code.CALL_CANCELLED})


async def run(ctx: CallContext) -> None:
    """Run the request; `ctx.payload` is the answer. Raises: what the engine raises."""
    try:
        ctx.payload = await _run(ctx)
    except BaseException as error:
        if ctx.statement_trace is not None:
            end_statement(ctx, error)
        if ctx.spending is None or not isinstance(error, TidegateError):
            raise
        raise_reached(ctx, error)
    if ctx.statement_trace is not None:
        end_statement(ctx)
    if ctx.connection.error is not None:
        note_reach(ctx.connection, None)


async def _run(ctx: CallContext) -> Any:
    """The answer to the request, from the caller's share of the source."""
    call, connection, request = ctx.call, ctx.connection, ctx.rewritten
    actor_id, limiter = call.actor.id, connection.limiter
    connection.last_active_at = ctx.started_at
    if ctx.spending is not None:
        ctx.run_began = time.perf_counter()
    if isinstance(request, TransactionRequest):
        if ctx.trace is not None:
            begin_statement(ctx)
        return await control(ctx, request)
    if ctx.transaction is not None and not isinstance(request, (Browse, Prepare)):
        if ctx.trace is not None:
            begin_statement(ctx)
        return await _run_statement(ctx)  # it has its own connection
    if not limiter.try_acquire(actor_id):
        ctx.stage = "queued"
        await limiter.acquire(actor_id, request.limits.timeout_s, call.cancellation)
        ctx.stage = ""
        if ctx.spending is not None:
            ctx.run_began = time.perf_counter()  # to wait for a place costs nothing
    try:
        if isinstance(request, Browse):
            return await describe(ctx, request)
        if ctx.trace is not None:
            begin_statement(ctx)
        if isinstance(request, Prepare):
            return await _prepare(ctx, request)
        if isinstance(request, ServerRequest):
            from tidegate.gateway.server_state import answer_server  # few calls need it

            return await answer_server(ctx, request)
        if request.names_change:
            from tidegate.gateway.undo import answer_change  # needed only for an undo

            return await answer_change(ctx)
        if request.about_rows:
            from tidegate.gateway.row_changes import answer_rows  # needed only to edit rows

            return await answer_rows(ctx)
        if call.progress is not None:
            call.progress(BEGINS, "Executing")
        try:
            return await _run_statement(ctx)
        except SchemaChangedError:
            connection.catalog = None
            await mask(ctx)
            await hide_sessions(ctx)
            return await _run_statement(ctx)
    finally:
        limiter.release(actor_id)


async def _prepare(ctx: CallContext, request: Prepare) -> Prepared:
    """What the query would give, under the rules that hide data from the caller."""
    engine, judgement = ctx.engine, ctx.judgement
    reads, writes = judgement.effect is Effect.READ, judgement.effect is Effect.WRITE
    if not reads and not request.changes:
        raise TidegateError(Code.UNSUPPORTED, "Only what reads is prepared without running it.")
    described = None
    if not reads and not writes:
        described = StatementDescription()  # what else there is gives no rows and takes no values
    elif can_prepare(engine):
        try:
            described = await engine.prepare(ctx.permit(request), ctx.call.cancellation)
        except TidegateError as error:
            # An engine that describes no changes refuses one as a change.
            unknown = writes and error.code is Code.POLICY_READ_ONLY
            if error.code is not Code.UNSUPPORTED and not unknown:
                raise
    columns = None if described is None else described.columns
    parameters = None if described is None else described.parameters
    asks = ctx.verdict.kind == "ask"
    shown = columns, parameters, judgement.tables, request.masked, asks
    whole = msgspec.json.encode((shown, request.statement.text, request.schema))
    return Prepared(
        columns,
        parameters,
        judgement.effect.label,
        asks,
        judgement.tables,
        request.masked,
        hashlib.sha256(whole).hexdigest(),
    )


async def _run_statement(ctx: CallContext) -> Page | Document:
    """Run what the request was rewritten to. The page says which masks it touched, and what the
    database noted."""
    request, progress = ctx.rewritten, ctx.call.progress
    query = request if isinstance(request, Query) else None
    permit = ctx.permit(request)
    began = time.perf_counter()
    transaction = ctx.transaction
    runner = ctx.engine if transaction is None else await engine_transaction(ctx, transaction)
    ctx.sent = True
    noted = notices.collect() if ctx.engine.capabilities.notices else None
    if transaction is not None and ctx.masking.withholds_words:
        transaction.withholds_words = True
    more = None
    try:
        cursor = await runner.run(permit, ctx.call.cancellation)
        if isinstance(cursor, Document):
            return _bounded(cursor, permit, (time.perf_counter() - began) * 1000)
        try:
            if query is not None and query.offset:
                await cursor.fetch_into(_Skip(query.offset))
            if query is not None and query.sink is not None:
                sink = ctx.collected = _stream(ctx, cursor.columns, permit.limits, query)
                await sink.read(cursor)
            else:
                sink = PageBuilder(cursor.columns, permit.limits, query.cells if query else "json")
                ctx.collected = sink
                await cursor.fetch_into(sink)
            if progress is not None:
                progress(ENDS, "Formatting result")
            if isinstance(sink, PageBuilder) and sink.rest and query is not None:
                more = await _keep_rest(ctx, permit, query, cursor, sink)
            if permit.effect > Effect.READ:
                # A change is committed only when all the rows that it returns have been read.
                await cursor.fetch_into(_Discard())
        finally:
            await cursor.close()
        if permit.effect > Effect.READ:
            await _note_changed(ctx, cursor)
    except BaseException as error:
        if ctx.change.keeper is not None:
            from tidegate.gateway.changes import end_keeping

            await end_keeping(ctx, error)
        if not isinstance(error, TidegateError):
            raise
        if "position" in error.details:
            _place_in_callers_text(error, _text(request), _text(ctx.request))
        if ctx.judgement.outside_transaction and error.code in _STOPPED:
            # Such as a procedure that commits: to send it again does what it had done once more.
            error.hint = (
                "It runs outside a transaction, and what it had done by then stays: check that"
                " before you send it again."
            )
        if ctx.masking.withholds_words and permit.effect is not Effect.READ:
            # What a database says about a change that it refuses can quote whole rows.
            raise without_values(error) from None
        if request is not ctx.request:
            raise without_key(error, ctx.services.masking_key(ctx.source.name)) from error.__cause__
        raise
    page = sink.page(affected=cursor.affected, elapsed_ms=(time.perf_counter() - began) * 1000)
    if not cursor.columns and permit.effect is Effect.READ:
        page = structs.replace(page, reads_nothing=True)
    if not cursor.columns and (tag := tag_of(cursor)):
        page = structs.replace(page, tag=tag)
    if ctx.engine.capabilities.upstream and has_upstream(cursor):
        page = structs.replace(
            page,
            truncations=(*page.truncations, *cursor.truncations),
            upstream=cursor.upstream,
        )
    if ctx.change.keeper is not None:
        from tidegate.gateway.changes import end_keeping

        page = structs.replace(page, change=await end_keeping(ctx))
    if more is not None:
        page = structs.replace(page, more=more)
    hides = query is not None and (query.masked or query.filtered)
    if query is not None and hides and permit.effect is Effect.READ:
        page = structs.replace(page, masked=query.masked, filtered=query.filtered)
    if noted is not None and noted.found and ctx.data_rules is None:
        # A trigger may quote any value in one: only a caller without masks and filters gets them.
        page = structs.replace(page, notices=noted.found)
    return page


def _stream(
    ctx: CallContext, columns: tuple[Column, ...], limits: Limits, query: Query
) -> RowStream:
    """What passes rows on to the sink of a query, within the caller's budgets."""
    spending, budgets, sink = ctx.spending, ctx.services.budgets, query.sink
    if sink is None:
        raise TypeError("the query has no sink")
    if spending is None or budgets is None or spending.begin_stream() is None:
        return RowStream(columns, limits, sink)
    from tidegate.gateway.metered_stream import Allowance, MeteredStream  # few streams need it

    allowance = Allowance(spending, budgets, ctx.call.cancellation)
    return MeteredStream(columns, limits, sink, allowance, whole=query.is_whole)


async def _note_changed(ctx: CallContext, cursor: Cursor) -> None:
    """Note what a change that has run was about, and the state after it. Raises: TidegateError
    LIMIT_CHANGES."""
    await record_new_state(ctx, new_state_of(cursor))
    rows, most, transaction = counted_of(cursor), ctx.change.max_rows, ctx.transaction
    ctx.change = structs.replace(ctx.change, rows_counted=rows)
    if transaction is not None and most is not None:
        check_sum(transaction, most, rows)


def _text(request: EngineRequest) -> str | None:
    return request.statement.text if isinstance(request, (Query, Explain)) else None


def _place_in_callers_text(error: TidegateError, ran: str | None, given: str | None) -> None:
    """Tell where the caller's text has what the error names in the one that ran; nothing where that
    is not certain."""
    if ran == given:
        return
    from tidegate.sql.rewritten_place import place_in_original

    position = error.details.pop("position")
    if ran is not None and given is not None and isinstance(position, int):
        place = place_in_original(given, ran, position - 1)
        if place is not None:
            error.details["position"] = place + 1


def _bounded(document: Document, permit: Permit, elapsed_ms: float) -> Document:
    """The document, if it is within the limit: a tree cannot be cut as rows can."""
    size, most = len(document.json), permit.limits.max_bytes
    if size <= most:
        return structs.replace(document, elapsed_ms=elapsed_ms)
    done = " The change took effect." if permit.effect > Effect.READ else ""
    raise TidegateError(
        Code.LIMIT_BYTES,
        f"The result has {size} bytes, and the limit is {most}.{done}",
        hint="Ask for a smaller part of it.",
    )


async def fetch_more(ctx: CallContext) -> Page:
    """Show more of a result that was read under a permit of its own.

    Raises: TidegateError RESULT_GONE, also once the source's settings or what is hidden from the
    actor are no longer those that it was read under; as `bind_caller`.
    """
    request, results = ctx.call.request, ctx.services.results
    if not isinstance(request, FetchMore):
        raise TypeError(type(request).__name__)
    bind_caller(ctx)
    rights = AppliedRules(ctx.data_rules, ctx.identity)
    total = None
    try:
        cached = results.take(request.handle, ctx.call.actor.id, ctx.source, rights)
    except TidegateError:
        carried, wanted = ctx.services.carried, (ctx.source, rights, request.max_rows)
        found = None
        if carried is not None:
            found = await carried.read(request.handle, ctx.call.actor.id, *wanted)
        if found is None:
            raise
        cached, total = found
    limits = cached.limits(request.max_rows)
    if ctx.spending is not None:
        limits = ctx.spending.limits(limits)
    builder = PageBuilder(cached.columns, limits, cached.query.cells)
    while wanted := builder.remaining:
        builder.write(cached.take(wanted))
    cached.put_back(builder.rest)
    if total is not None:
        more = handle_at(cached.handle, cached.shown) if cached.shown < total else None
    else:
        more = None if cached.is_empty else results.put(cached)
    page = builder.page(more=more)
    if more is None and not cached.complete:
        cut = Truncation("rows", MAX_KEPT_ROWS, page.row_count)
        page = structs.replace(page, truncations=(*page.truncations, cut))
    return page


async def _keep_rest(
    ctx: CallContext, permit: Permit, query: Query, cursor: Cursor, builder: PageBuilder
) -> str | None:
    """Read on, within bounds, and keep what was not shown, if the caller may ask for it."""
    if not query.keep_rest:
        return None
    rest = RowBuffer(query, builder.rest)
    await cursor.fetch_into(rest)
    if not rest.chunks:
        return None
    rights = AppliedRules(ctx.data_rules, ctx.identity)
    cached = CachedResult(permit.actor.id, permit.source, query, cursor.columns, rest, rights)
    handle = ctx.services.results.put(cached)
    if ctx.services.carried is not None:
        await ctx.services.carried.keep(cached)
    return handle


class _Skip:
    """Takes the first rows of a result, which are not shown (`engines.api.RowCollector`)."""

    def __init__(self, rows: int) -> None:
        self._left = rows

    @property
    def remaining(self) -> int:
        return min(self._left, SKIPPED_ROWS)

    def write(self, rows: Sequence[Row]) -> None:
        self._left = max(0, self._left - len(rows)) if rows else 0


class _Discard:
    """Takes rows that are not shown (`engines.api.RowCollector`)."""

    remaining = 128

    def write(self, rows: Sequence[Row]) -> None:
        if not rows:
            self.remaining = 0
