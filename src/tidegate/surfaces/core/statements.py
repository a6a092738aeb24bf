"""`query`, `explain` and `more`: running one statement and reading what it returns.

A result is `{"columns":[...],"rows":[[...]]}`, with `affected` after a change, and with `more` and
a `note` whenever anything was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.errors import TidegateError
from tidegate.model.requests import Explain, FetchMore, Query
from tidegate.model.results import Limits, Page, Truncation
from tidegate.model.statements import Statement
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.confirmation import check_phrase
from tidegate.surfaces.core.tables import READS
from tidegate.surfaces.tool_context import ToolContext

DEFAULT_ROWS = 100
CHANGES = Annotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

Rows = Annotated[int, Meta(ge=1)]


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`confirm` is the phrase for what cannot be undone; the refusal without it tells the phrase,
    so that no other caller reads about it."""

    sql: str
    max_rows: Rows | None = None
    source: str | None = None
    confirm: str | None = None


class ExplainArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str
    source: str | None = None


class Rest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`handle` is what `more` said: it names the source as well, if the query did."""

    handle: str
    max_rows: Rows | None = None


def tools(settings: LimitSettings, writes: bool) -> tuple[SurfaceTool, ...]:
    """The three tools within the operator's limits.

    Where nothing can be written, `query` says so in its hints.
    """

    def limits(asked: int) -> Limits:
        return Limits(min(asked, settings.max_rows), settings.max_bytes, settings.timeout_s)

    unless_asked = limits(DEFAULT_ROWS)

    async def query(context: ToolContext, args: Run) -> ToolResult:
        bounds = unless_asked if args.max_rows is None else limits(args.max_rows)
        request = Query(Statement(args.sql), limits=bounds, keep_rest=True)
        confirmed = args.confirm is not None
        if args.confirm is not None:
            check_phrase(args.confirm, "confirm")
        try:
            page = await context.handle(request, args.source, Page, confirmed=confirmed)
        except TidegateError as error:
            raise await _advised(error, context, args.source) from None
        return _answer(page, args.source)

    async def explain(context: ToolContext, args: ExplainArgs) -> ToolResult:
        request = Explain(Statement(args.sql), limits=limits(settings.max_rows))
        try:
            page = await context.handle(request, args.source, Page)
        except TidegateError as error:
            raise await _advised(error, context, args.source) from None
        return _answer(page, args.source)

    async def more(context: ToolContext, args: Rest) -> ToolResult:
        source, _, handle = args.handle.rpartition("/")
        request = FetchMore(handle, limits(args.max_rows or DEFAULT_ROWS).max_rows)
        return _answer(await context.handle(request, source or None, Page), source or None)

    return (
        SurfaceTool(
            name="query",
            description="Run one SQL statement",
            args=Run,
            run=query,
            annotations=CHANGES if writes else READS,
        ),
        SurfaceTool(
            name="explain",
            description="Plan of a statement, not run",
            args=ExplainArgs,
            run=explain,
            annotations=READS,
        ),
        SurfaceTool(
            name="more",
            description="Next rows; handle: a result's `more`",
            args=Rest,
            run=more,
            annotations=READS,
        ),
    )


async def _advised(error: TidegateError, context: ToolContext, source: str | None) -> TidegateError:
    from tidegate.surfaces.core.suggestions import advise

    return await advise(error, context, source)


def _answer(page: Page, source: str | None) -> ToolResult:
    encode = msgspec.json.encode
    parts: list[bytes] = []
    if page.columns:
        parts += (b'"columns":', encode([column.name for column in page.columns]))
        parts += (b',"rows":', page.rows)
    if page.affected or not page.columns:
        parts += (b',"affected":' if parts else b'"affected":', encode(page.affected))
    if page.more is not None:
        handle = page.more if source is None else f"{source}/{page.more}"
        parts += (b',"more":', encode(handle))
    if page.truncations:
        parts += (b',"note":', encode(_note(page.truncations, page.more is not None)))
    return ToolResult(body=b"".join((b"{", *parts, b"}")), structured=False)


def _note(truncations: Sequence[Truncation], cached: bool) -> str:
    """What was left out, and how to get it."""
    said = [
        f"values cut at {cut.limit} bytes"
        if cut.kind == "value"
        else f"first {cut.returned} rows" + (" (byte limit)" if cut.kind == "bytes" else "")
        for cut in truncations
    ]
    step = "call more for the rest" if cached else "narrow the query for the rest"
    return "; ".join([*said, step])
