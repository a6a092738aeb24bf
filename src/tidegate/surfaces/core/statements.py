"""`query`, `explain` and `more`: running statements and reading what they return.

A result is `{"columns":[...],"rows":[[...]]}`, with `affected` after a change, with `more` and a
`note` whenever anything was left out, where masked columns were touched, and where no row has a
text but rows have texts that are like it. Several statements, `sql` and those of `also`, are
several calls to the gate: each is judged, recorded and limited on its own, and the answer is an
array with a result or an `error` for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Explain, FetchMore, Query
from tidegate.model.results import Limits, Page, Truncation
from tidegate.model.statements import Statement
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.results.notes import page_note, pages_note
from tidegate.results.numbers import unify_numbers
from tidegate.search.vocabulary import may_be_mistaken
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.apps.argument import ChartArgument
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.confirmation import check_phrase
from tidegate.surfaces.core.errors import error_text
from tidegate.surfaces.core.tables import READS
from tidegate.surfaces.long_calls import PREFIX, resume
from tidegate.surfaces.tool_context import NO_TERMS, ApprovalTerms, ToolContext

DEFAULT_ROWS = 100
MOST_ROWS = 1_000_000
"""Rows that a chart is of, as far as the operator's limits let them through."""
CHANGES = Annotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

MOST_STATEMENTS = 20
"""Statements that one call may send."""
_AT_ONCE = 4
"""Statements of one call that run at the same time."""

_SEND_ALONE = {
    Code.POLICY_READ_ONLY: "Send a change in a call of its own.",
    Code.POLICY_CONFIRM: "Send a change in a call of its own.",
    Code.APPROVAL_NEEDED: "A person must allow it: send it in a call of its own.",
}

Rows = Annotated[int, Meta(ge=1)]


class QueryArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`also` are further statements. `sql` takes an array of them too, which is not advertised:
    some clients and vendors of models refuse a parameter of two types. `confirm` is the phrase for
    what cannot be undone; the refusal without it names the phrase, so that no other caller reads
    about it. `reason` is shown to a person who is to approve it."""

    sql: Annotated[
        str | Annotated[list[str], Meta(min_length=1, max_length=MOST_STATEMENTS)],
        Meta(extra_json_schema={"type": "string"}),
    ]
    also: Annotated[list[str], Meta(max_length=MOST_STATEMENTS - 1)] | None = None
    max_rows: Rows | None = None
    source: str | None = None
    confirm: str | None = None
    reason: str | None = None


class ChartedQueryArgs(QueryArgs, frozen=True, forbid_unknown_fields=True):
    """From a client that shows pages."""

    chart: ChartArgument | None = None


class ExplainArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str
    source: str | None = None


class MoreArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`handle` is what `more` said: it names the source as well, if the query did."""

    handle: str
    max_rows: Rows | None = None


def tools(settings: LimitSettings, writes: bool) -> tuple[SurfaceTool, ...]:
    """The three tools within the operator's limits.

    Where nothing can be written, the hints of `query` declare that.
    """

    def limits(asked: int) -> Limits:
        return Limits(min(asked, settings.max_rows), settings.max_bytes, settings.timeout_s)

    unless_asked = limits(DEFAULT_ROWS)

    async def query(context: ToolContext, args: QueryArgs) -> ToolResult:
        bounds = unless_asked if args.max_rows is None else limits(args.max_rows)
        if isinstance(args, ChartedQueryArgs) and args.chart is not None:
            return await _chart(context, args, args.chart, limits(args.max_rows or MOST_ROWS))
        if isinstance(args.sql, list) or args.also:
            first = [args.sql] if isinstance(args.sql, str) else args.sql
            statements = [*first, *(args.also or ())]
            if len(statements) > MOST_STATEMENTS:
                raise wrong_argument(
                    "also", "value", f"may bring the statements to {MOST_STATEMENTS} at most"
                )
            if args.confirm is not None:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    "Parameter confirm belongs to one statement",
                    hint="Send that statement in a call of its own.",
                )
            return await _query_all(context, statements, bounds, args.source)
        terms = ApprovalTerms(confirmed=args.confirm is not None, reason=args.reason or "")
        if args.confirm is not None:
            check_phrase(args.confirm, "confirm")
        return ToolResult(
            body=await _query(context, args.sql, bounds, args.source, terms),
            structured=False,
        )

    async def explain(context: ToolContext, args: ExplainArgs) -> ToolResult:
        request = Explain(Statement(args.sql), limits=limits(settings.max_rows))
        try:
            page = await context.handle(request, args.source, Page)
        except TidegateError as error:
            raise await _advised(error, context, args.source, args.sql) from None
        return ToolResult(body=_answer(page, args.source), structured=False)

    async def more(context: ToolContext, args: MoreArgs) -> ToolResult:
        if args.handle.startswith(PREFIX):
            return await resume(context, args.handle)
        source, _, handle = args.handle.rpartition("/")
        request = FetchMore(handle, limits(args.max_rows or DEFAULT_ROWS).max_rows)
        page = await context.handle(request, source or None, Page)
        return ToolResult(body=_answer(page, source or None), structured=False)

    return (
        SurfaceTool(
            name="query",
            description="Run SQL; `also`: more reads",
            args=QueryArgs,
            app_args=ChartedQueryArgs,
            run=query,
            annotations=CHANGES if writes else READS,
        ),
        SurfaceTool(
            name="explain",
            description="Plan of a statement, not run",
            args=ExplainArgs,
            app_args=ExplainArgs,
            run=explain,
            annotations=READS,
        ),
        SurfaceTool(
            name="more",
            description="Next rows; handle: a result's `more`",
            args=MoreArgs,
            run=more,
            annotations=READS,
        ),
    )


async def _query(
    context: ToolContext,
    sql: str,
    limits: Limits,
    source: str | None,
    terms: ApprovalTerms | None,
) -> bytes:
    """The answer to one statement. One of several (without `terms`) must be a read that needs no
    approval. Raises: TidegateError."""
    request = Query(Statement(sql), cells="short", limits=limits, keep_rest=True)
    alone = terms is not None
    try:
        page = await context.handle(
            request,
            source,
            Page,
            terms=terms or NO_TERMS,
            reads_only=not alone,
            quiet=not alone,
            asks=alone,
        )
    except TidegateError as error:
        raise await _advised(error, context, source, sql) from None
    note = ""
    if may_be_mistaken(page, sql):
        from tidegate.search.suggestions import note_on_nothing

        note = await note_on_nothing(sql, context, source)
    return _answer(page, source, note)


async def _chart(
    context: ToolContext, args: QueryArgs, spec: Mapping[str, Any], limits: Limits
) -> ToolResult:
    """The chart of what one statement reads. Raises: TidegateError."""
    if not isinstance(args.sql, str) or args.also or args.confirm is not None:
        raise wrong_argument("chart", "value", "is of one statement that reads")
    from tidegate.surfaces.apps.charted import chart_of, drawing_of

    request = Query(Statement(args.sql), limits=limits)
    terms = ApprovalTerms(reason=args.reason or "")
    try:
        chart, _ = await chart_of(context, request, args.source, spec, terms)
    except TidegateError as error:
        raise await _advised(error, context, args.source, args.sql) from None
    encode = msgspec.json.encode
    table = (encode(chart.columns), encode(chart.rows), drawing_of(chart))
    return ToolResult(body=b'{"columns":%s,"rows":%s,"chart":%s}' % table, structured=False)


async def _query_all(
    context: ToolContext, statements: Sequence[str], limits: Limits, source: str | None
) -> ToolResult:
    """One answer for each statement, in their order; the limit of bytes is for all together."""
    share = structs.replace(limits, max_bytes=max(1, limits.max_bytes // len(statements)))
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(sql: str) -> bytes:
        async with room:
            try:
                return await _query(context, sql, share, source, None)
            except TidegateError as error:
                return b'{"error":' + msgspec.json.encode(error_text(_to_be_alone(error))) + b"}"

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(sql)) for sql in statements]
    body = b"".join((b"[", b",".join([task.result() for task in tasks]), b"]"))
    return ToolResult(body=body, structured=False)


async def _advised(
    error: TidegateError, context: ToolContext, source: str | None, sql: str
) -> TidegateError:
    from tidegate.search.suggestions import advise

    return await advise(error, context, source, sql, find="Find it with search.")


def _to_be_alone(error: TidegateError) -> TidegateError:
    """The error of one of several statements, with the advice to send it alone."""
    hint = _SEND_ALONE.get(error.code)
    if hint is None:
        return error
    if error.code is Code.APPROVAL_NEEDED:
        from tidegate.approvals.approvals import ApprovalNeeded  # imported by what has raised it

        if isinstance(error, ApprovalNeeded):
            hint = (
                f"The question waits in {error.place}. Ask the user to answer it there, then send"
                " the statement in a call of its own."
            )
    return error.with_hint(hint)


def _answer(page: Page, source: str | None, note: str = "") -> bytes:
    encode = msgspec.json.encode
    parts: list[bytes] = []
    if page.columns or page.reads_nothing:
        parts += (b'"columns":', encode([column.name for column in page.columns]))
        parts += (b',"rows":', unify_numbers(page))
    if page.affected or not parts:
        parts += (b',"affected":' if parts else b'"affected":', encode(page.affected))
    if page.more is not None:
        handle = page.more if source is None else f"{source}/{page.more}"
        parts += (b',"more":', encode(handle))
    notes = [_note(page.truncations, page.more is not None)] if page.truncations else []
    notes += [note] if note else []
    notes += [own] if (own := page_note(page)) else []
    if notes:
        parts += (b',"note":', encode("; ".join(notes)))
    return b"".join((b"{", *parts, b"}"))


def _note(truncations: Sequence[Truncation], cached: bool) -> str:
    """What was left out, and how to get it."""
    pieces = [
        f"values cut at {cut.limit} bytes"
        if cut.kind == "value"
        else pages_note(cut)
        if cut.kind == "pages"
        else f"first {cut.returned} rows" + _WHY.get(cut.kind, "")
        for cut in truncations
    ]
    if not cached and any(cut.kind == "budget" for cut in truncations):
        return "; ".join(pieces)
    step = "call more for the rest" if cached else "narrow the query for the rest"
    return "; ".join([*pieces, step])


_WHY = {"bytes": " (byte limit)", "budget": " (budget)"}
