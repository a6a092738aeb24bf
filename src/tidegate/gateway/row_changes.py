"""Requests about single rows of a table: reads them exactly, and adds, changes and deletes them as
one change.

The gate writes such a change as statements, for people who read it and for the rules: what would
refuse these statements refuses the change. The engine runs it over exact images of the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from tidegate.engines.api import EditingEngine, RowsConflictError, can_edit
from tidegate.engines.common.row_images import is_same_row
from tidegate.engines.common.row_statements import Script, forms_of, script_of
from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError, masking_refused, table_refused
from tidegate.gateway.changes import end_keeping, most_rows
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import apply_policy, as_trusted, bind_caller
from tidegate.gateway.judging import SHORT_TO_REWRITE, judge_text
from tidegate.gateway.masking import separable_under, without_values
from tidegate.gateway.metadata import check_home_database, describe, read_catalog
from tidegate.gateway.recorder import record_failure, record_intent, record_outcome
from tidegate.judging_thread import SHORT, compute
from tidegate.model.cancellation import Cancellation
from tidegate.model.data_rules import DataRules
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits
from tidegate.model.row_changes import (
    DEFAULT,
    MOST_EDITS,
    MOST_FED,
    ChangedRows,
    ChangeRows,
    DescribeEditing,
    EditConflict,
    FoundRow,
    ReadImages,
    RowEdit,
    RowFeed,
    RowRequest,
)
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import DryRun, Effect, Statement
from tidegate.policy.data_rules import verdict_of
from tidegate.policy.quoted_rows import may_quote_others
from tidegate.sql.dialects import DIALECTS
from tidegate.sql.quoting import qualified

TRIAL_LIMITS = Limits(max_rows=20, max_bytes=16_384, timeout_s=2.0)
"""What a trial may take: it must not hold up other callers."""
_MOST_CHARS = 200


def write_script(change: ChangeRows, dialect: str) -> Script:
    """A change as statements, as a person is shown it. Pure."""
    return script_of(change, dialect)


def conflicts_of(error: TidegateError) -> tuple[tuple[EditConflict, ...], int]:
    """Some of the edits whose rows are not as the person saw them, and how many there are."""
    return (error.conflicts, error.count) if isinstance(error, RowsConflictError) else ((), 0)


async def decide_rows(ctx: CallContext) -> None:
    """Judge the request by the statements that it means, and get the verdict.

    Raises: TidegateError POLICY_*, as `decision.apply_policy`; ARGUMENT_INVALID, UNSUPPORTED.
    """
    request, source = ctx.call.request, ctx.source
    assert isinstance(request, RowRequest)  # noqa: S101 - `steps_of` chose these steps by it
    if isinstance(request, ChangeRows) and (request.text or request.known_digest):
        request = structs.replace(request, text="", known_digest="")  # the gate's own to say
        ctx.call = structs.replace(ctx.call, request=request)
    if ctx.transaction is not None:
        raise TidegateError(
            Code.UNSUPPORTED,
            "Rows are edited in a transaction of their own.",
            hint="Send it by itself, outside BEGIN and COMMIT.",
        )
    if source.dialect not in DIALECTS:
        raise TidegateError(Code.UNSUPPORTED, f"{source.name} does not speak SQL.")
    ctx.language = language_of(source)
    if isinstance(request, ChangeRows):
        _check_edits(request)
    if isinstance(request, DescribeEditing):
        ctx.judgement = DescribeEditing.judgement or ctx.judgement
        apply_policy(ctx)
    else:
        await _decide(ctx, request)
    ctx.text_judgement = ctx.judgement
    if isinstance(request, ChangeRows):
        script = await compute(request.table, write_script, request, source.dialect)
        known = structs.replace(request, text=script.text, known_digest=request.digest)
        ctx.call = structs.replace(ctx.call, request=known)
    bind_caller(ctx)


async def _decide(ctx: CallContext, request: RowRequest) -> None:
    """Get the strictest verdict on the statements of a request. Raises: as `apply_policy`."""
    asked: Verdict | None = None
    effect = Effect.READ
    tables: tuple[str, ...] = ()
    for statement in _statements(ctx, request):
        judgement = await judge_text(
            ctx, SHORT, language_of(ctx.source).classify, Query(statement), as_trusted(ctx)
        )
        # Each row is named by its key: none of them is changed for want of a condition.
        ctx.judgement = structs.replace(judgement, touches=(), open_ended=False, unqualified=False)
        apply_policy(ctx)
        asked = ctx.verdict if ctx.verdict.kind == "ask" else asked
        effect, tables = max(effect, judgement.effect), judgement.tables
    ctx.verdict = asked or ctx.verdict
    ctx.judgement = structs.replace(ctx.judgement, effect=effect, tables=tables)
    if isinstance(request, ChangeRows):
        verb = request.verbs[0] if len(request.verbs) == 1 else "update"
        ctx.judgement = structs.replace(
            ctx.judgement,
            rule="request.change_rows",
            reason="changes rows by their keys",
            verb=verb,
        )


def _statements(ctx: CallContext, request: RowRequest) -> list[Statement]:
    dialect = ctx.source.dialect
    if isinstance(request, ChangeRows):
        return list(forms_of(request, dialect).values())
    return [Statement(f"SELECT 1 FROM {qualified(request.schema, request.table, dialect)}")]


def _check_edits(request: ChangeRows) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for edits that do not fit their table."""
    if request.feed is not None:
        _check_feed(request, request.feed)
        return
    width = len(request.shape.columns)
    if not 1 <= len(request.edits) <= MOST_EDITS:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"A change of rows has 1 to {MOST_EDITS:,} edits"
        )
    if not request.shape.key:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{request.table} has no primary key: its rows cannot be distinguished.",
        )
    seen: set[Any] = set()
    for edit in request.edits:
        places = [place for place, _ in edit.values or ()]
        fits = len(set(places)) == len(places) and all(0 <= place < width for place in places)
        before = edit.before
        if before is not None:
            key = repr(request.shape.key_of(before)) if len(before) == width else ""
            fits = fits and bool(key) and key not in seen and (edit.values is None or bool(places))
            seen.add(key)
        elif edit.values is None:
            fits = False
        if not fits:
            raise TidegateError(Code.ARGUMENT_INVALID, "An edit does not fit its table or its row")


def _check_feed(request: ChangeRows, feed: RowFeed) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for rows that do not fit their table."""
    if not 1 <= feed.count <= MOST_FED:
        raise TidegateError(Code.ARGUMENT_INVALID, f"A file has 1 to {MOST_FED:,} rows to add")
    width, places = len(request.shape.columns), feed.places
    distinct = len(set(places)) == len(places)
    if request.edits or not places or not distinct or not all(0 <= at < width for at in places):
        raise TidegateError(Code.ARGUMENT_INVALID, "The rows of a file do not fit their table")


async def mask_rows(ctx: CallContext) -> None:
    """Refuse what would read or change something that is hidden from the caller, as for the
    statements of the request; leave masked columns out of what is read.

    Raises: TidegateError POLICY_MASKED, POLICY_TABLE, and what reading the catalog raises.
    """
    request, rules = ctx.request, ctx.data_rules
    if rules is None or not isinstance(request, RowRequest) or isinstance(request, DescribeEditing):
        return
    try:
        catalog = await read_catalog(ctx)
        table = await visible_table(ctx, request)
        if table.filtered:
            raise filtered(table)
        hidden = tuple([column.name for column in table.columns if column.masked])
        if isinstance(request, ChangeRows):
            _check_masked(request, hidden)
            await check_forms(ctx, request, rules, catalog)
    except TidegateError as refusal:
        ctx.verdict = verdict_of(refusal)
        raise
    if isinstance(request, ReadImages):
        ctx.rewritten = structs.replace(request, hidden=hidden)
    else:
        withholds = bool(hidden) or may_quote_others(ctx.judgement.tables, catalog)
        ctx.masking = structs.replace(ctx.masking, withholds_words=withholds)


async def visible_table(ctx: CallContext, request: RowRequest) -> Table:
    """The table of a request, as its caller may see it. Raises: TidegateError POLICY_TABLE,
    TABLE_UNKNOWN."""
    if ctx.data_rules is not None:
        check_home_database(ctx, ctx.data_rules, request.database)
    catalog = await describe(ctx, Browse("catalog", database=request.database))
    assert isinstance(catalog, Catalog)  # noqa: S101 - the answer to this aspect
    schema = request.schema or catalog.default_schema
    for table in catalog.tables:
        if (table.schema, table.name) == (schema, request.table):
            return table
    if ctx.data_rules is not None and ctx.data_rules.only is not None:
        raise table_refused(request.table)
    raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {request.table[:200]}")


def filtered(table: Table) -> TidegateError:
    """The refusal of a table of which rows are hidden."""
    return masking_refused(
        f"Rows of `{table.name}` are hidden from this caller, and so none can be changed",
        f"filter.{table.name}",
        "Ask the operator.",
    )


def _check_masked(request: ChangeRows, hidden: tuple[str, ...]) -> None:
    for column in request.shape.columns:
        if column.name in hidden:
            raise masking_refused(
                f"`{request.table}.{column.name}` is masked: a change can neither read nor write"
                " it",
                f"masking.{request.table}.{column.name}",
                "Read the rows again.",
            )


async def check_forms(
    ctx: CallContext, request: ChangeRows, rules: DataRules, catalog: Catalog
) -> None:
    """Raises: TidegateError POLICY_MASKED, POLICY_TABLE if the statements of a change would be
    refused to the caller."""
    source, key = ctx.source, ctx.services.masking_key(ctx.source.name)
    for statement in forms_of(request, source.dialect).values():
        rewritten = await judge_text(
            *(ctx, SHORT_TO_REWRITE, language_of(source).rewrite, Query(statement)),
            *(source, rules, catalog, key),
        )
        if not isinstance(rewritten, Query) or rewritten.statement.text != statement.text:
            raise masking_refused(
                f"A change of `{request.table}` would have to be rewritten to hide something",
                f"masking.{request.table}",
            )


async def inspect_rows(ctx: CallContext) -> None:
    """Ask the database what the statements of a change would do. Raises: as `apply_policy`, and
    what the engine raises."""
    request = ctx.request
    if not isinstance(request, ChangeRows):
        return
    editing_engine(ctx)
    if request.feed is not None and not ctx.engine.capabilities.feeds:
        raise not_feeding(ctx.source.name)
    for statement in forms_of(request, ctx.source.dialect).values():
        opinion = await ctx.engine.inspect(statement, ctx.judgement, request.limits.timeout_s)
        if opinion is not None and opinion.effect > ctx.judgement.effect:
            ctx.judgement = structs.replace(opinion, verb=opinion.verb or ctx.judgement.verb)
            apply_policy(ctx)


def editing_engine(ctx: CallContext) -> EditingEngine:
    """The engine, if it edits rows. Raises: TidegateError UNSUPPORTED."""
    engine = ctx.engine
    if can_edit(engine):
        return engine
    raise not_editing(ctx.source.name)


def not_editing(source: str) -> TidegateError:
    """The error for a source whose engine does not compare rows exactly."""
    return TidegateError(
        Code.UNSUPPORTED,
        f"Rows of {source} cannot be edited: its engine does not compare rows exactly.",
        hint="Write a statement.",
    )


def not_feeding(source: str) -> TidegateError:
    """The error for a source whose engine takes no rows of a file."""
    return TidegateError(
        Code.UNSUPPORTED,
        f"Rows of a file cannot be added to {source}: its engine takes none.",
        hint="Write statements.",
    )


class _WatchedFeed:
    """A feed that ends with an error once its call was cancelled: between two statements of an
    engine there is nothing that the database could interrupt."""

    def __init__(self, feed: RowFeed, cancellation: Cancellation) -> None:
        self.name, self.file_digest = feed.name, feed.file_digest
        self.places, self.count, self.size = feed.places, feed.count, feed.size
        self.note = feed.note
        self._feed = feed
        self._cancellation = cancellation

    @property
    def digest(self) -> str:
        return self._feed.digest

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        for rows in self._feed.batches():
            if self._cancellation.reason is not None:
                raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            yield rows


async def answer_rows(ctx: CallContext) -> Any:
    """Answer a request about rows. Raises: TidegateError ROWS_CONFLICT, and what the engine
    raises."""
    request = ctx.rewritten
    if isinstance(request, DescribeEditing):
        from tidegate.gateway.editability import describe_editing

        return await describe_editing(ctx, request)
    engine, cancellation = editing_engine(ctx), ctx.call.cancellation
    if isinstance(request, ReadImages):
        return await engine.read_images(ctx.permit(request), cancellation)
    if not isinstance(request, ChangeRows):
        raise TidegateError(Code.INTERNAL, f"No answer to {type(request).__name__}")
    if request.feed is not None:
        watched = _WatchedFeed(request.feed, cancellation)
        request = structs.replace(request, feed=watched)
    permit = ctx.permit(request)
    ctx.sent = True
    try:
        done = await engine.change_rows(permit, cancellation)
    except BaseException as error:
        await end_keeping(ctx, error)
        if isinstance(error, TidegateError):
            error.details.pop("position", None)  # a place in what no caller has written
        if isinstance(error, TidegateError) and ctx.masking.withholds_words:
            raise without_values(error) from None
        raise
    ctx.change = structs.replace(ctx.change, rows_counted=done.affected)
    keeper, remarks = ctx.change.keeper, done.remarks
    if keeper is not None and keeper.reason:
        remarks = (*remarks, f"it cannot be taken back: {keeper.reason}")
    if request.feed is None and (kept := _kept_count(request, done)):
        rows = "1 row is" if kept == 1 else f"{kept:,} rows are"
        remarks = (*remarks, f"{rows} stored as before: a trigger or the type of a column did that")
    return structs.replace(done, change=await end_keeping(ctx), remarks=remarks)


def _kept_count(request: ChangeRows, done: ChangedRows) -> int:
    """How many rows are as they were, though other values were written into them."""
    kept = 0
    for edit, row in zip(request.edits, done.rows, strict=True):
        before, values = edit.before, edit.values
        if before is None or values is None or row is None:
            continue
        if all(value == DEFAULT or value == before[place] for place, value in values):
            continue
        kept += is_same_row(before, row.image)
    return kept


async def try_rows(ctx: CallContext, request: ChangeRows) -> DryRun:
    """What a change would do, for the person who is asked: run and rolled back where that leaves no
    trace, else as it is written. Rows that differ by now end the call: no person needs to be asked.

    Raises: TidegateError ROWS_CONFLICT.
    """
    tried = structs.replace(request, tries=True, limits=TRIAL_LIMITS)
    trial = ctx.for_dry_run(tried)
    trial.change = structs.replace(trial.change, max_rows=most_rows(ctx))
    limiter, actor_id, cancellation = (
        *(ctx.connection.limiter, ctx.call.actor.id),
        ctx.call.cancellation,
    )
    done: ChangedRows | None = None
    reason = ""
    try:
        await record_intent(trial)
        await limiter.acquire(actor_id, TRIAL_LIMITS.timeout_s, cancellation)
        try:
            done = await editing_engine(ctx).change_rows(trial.permit(tried), cancellation)
        finally:
            limiter.release(actor_id)
        trial.payload = done
        await record_outcome(trial)
    except TidegateError as error:
        shown = without_values(error) if ctx.masking.withholds_words else error
        record_failure(trial, shown)
        if error.code in (Code.ROWS_CONFLICT, Code.LIMIT_CHANGES):
            raise
        if request.feed is not None and error.code is Code.LIMIT_TIME:
            reason = f"all of it takes longer than the {TRIAL_LIMITS.timeout_s:g} s of a trial."
            return structs.replace(
                _shown(request, None, reason),
                separable_under=await _separable_under(ctx, request),
            )
        if error.code is not Code.UNSUPPORTED:
            return DryRun(reason=f"it failed: {shown.message}")
        reason = f"it was not tried: {shown.message}"
    except asyncio.CancelledError:
        record_failure(trial, TidegateError(Code.CALL_CANCELLED, "The call was cancelled"))
        raise
    return structs.replace(
        _shown(request, done, reason), separable_under=await _separable_under(ctx, request)
    )


async def _separable_under(ctx: CallContext, request: ChangeRows) -> str:
    """A digest of the rules that hide something from operators, if the change touches nothing of
    it; else empty."""
    forms = forms_of(request, ctx.source.dialect).values()
    parts = [ctx.for_dry_run(Query(form, database=request.database)) for form in forms]
    found = [await separable_under(part) for part in parts]
    return found[0] if all(found) else ""


def _shown(request: ChangeRows, done: ChangedRows | None, reason: str) -> DryRun:
    if request.feed is not None:
        return _shown_feed(request, request.feed, done, reason)
    edits = sorted(request.edits, key=lambda edit: request.verbs.index(edit.verb))
    edits = edits[: TRIAL_LIMITS.max_rows]
    stored: dict[int, FoundRow | None] = {}
    if done is not None:
        stored = {id(edit): row for edit, row in zip(request.edits, done.rows, strict=True)}
    return DryRun(
        len(request.edits) if done is None else max(done.affected, len(request.edits)),
        request.shape.names,
        tuple([_texts(edit.before) for edit in edits]),
        tuple(
            [
                _texts(_written(request, edit) if done is None else _after(stored[id(edit)]))
                for edit in edits
            ]
        ),
        reason,
    )


def _shown_feed(
    request: ChangeRows, feed: RowFeed, done: ChangedRows | None, reason: str
) -> DryRun:
    """The first rows of a file, as they are written."""
    first = next(feed.batches(), ())[: TRIAL_LIMITS.max_rows]
    columns = tuple([request.shape.names[place] for place in feed.places])
    return DryRun(
        feed.count if done is None else max(done.affected, feed.count),
        columns,
        (None,) * len(first),
        tuple([_texts(tuple(row)) for row in first]),
        reason,
    )


def _after(stored: FoundRow | None) -> tuple[Any, ...] | None:
    return None if stored is None else stored.shown


def _written(request: ChangeRows, edit: RowEdit) -> tuple[Any, ...] | None:
    """A row as it would be by what is written of it."""
    if edit.values is None:
        return None
    row = list(edit.before or (DEFAULT,) * len(request.shape.columns))
    for place, value in edit.values:
        row[place] = value
    return tuple(row)


def _texts(row: tuple[Any, ...] | None) -> tuple[str | None, ...] | None:
    return None if row is None else tuple([_text(value) for value in row])


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if value == DEFAULT:
        return "DEFAULT"
    if isinstance(value, bytes):
        return f"x{value[: _MOST_CHARS // 2].hex()}"
    return str(value)[:_MOST_CHARS]
