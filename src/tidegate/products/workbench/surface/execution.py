"""`execute_query`: one statement within the document's clamps, its cells as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from tidegate.config.model import LimitSettings
from tidegate.model.actors import Scope
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Query, Switch
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.advice import run_with_advice
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    answer,
    catalog_of,
    check_database,
    clamp,
    hints,
    source_of,
)
from tidegate.protocol.model import ToolResult
from tidegate.results.notes import page_note, pages_note
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.apps.argument import ChartArgument
from tidegate.surfaces.tool_context import ToolContext

MOST_ROWS, MOST_SECONDS = 10_000, 300
ROWS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
}


class Execution(OnConnection, frozen=True):
    query: Annotated[str, Meta(description="One SQL statement, 100 KB at most")]
    max_rows: Annotated[int, Meta(description="Rows to return, 1 to 10000")] | None = None
    timeout_seconds: Annotated[int, Meta(description="Time limit, 1 to 300")] | None = None
    database: DatabaseName | None = None
    schema: SchemaName | None = None


class ChartedExecution(Execution, frozen=True):
    """From a client that shows pages."""

    chart: ChartArgument | None = None


class Executed(msgspec.Struct, frozen=True):
    """A result: cells are text or null, in the order of `columns`."""

    columns: tuple[str, ...]
    rows: Annotated[msgspec.Raw, Meta(extra_json_schema=ROWS_SCHEMA)]
    row_count: int
    rows_affected: int
    execution_time_ms: int
    is_truncated: bool
    status_message: str | UnsetType = UNSET


class ChartedExecuted(Executed, frozen=True):
    """A result whose rows are those of its chart."""

    chart: msgspec.Raw | UnsetType = UNSET


def executed(page: Page) -> Executed:
    """The page in the document's shape. Every cut counts as truncation, whatever its kind. That a
    masked column was touched is part of the status message."""
    messages = [page.status] if page.status else []
    messages += [pages_note(cut) for cut in page.truncations if cut.kind == "pages"]
    messages += [note] if (note := page_note(page)) else []
    return Executed(
        columns=tuple(column.name for column in page.columns),
        rows=msgspec.Raw(page.rows),
        row_count=page.row_count,
        rows_affected=page.affected,
        execution_time_ms=round(page.elapsed_ms),
        is_truncated=bool(page.truncations),
        status_message="; ".join(messages) or UNSET,
    )


def limits_of(
    settings: LimitSettings, rows: int | None = None, seconds: int | None = None
) -> Limits:
    """What a call gets that asked for this: the lesser of the operator's limits and the document's,
    clamped and never refused."""
    most_rows = min(settings.max_rows, MOST_ROWS)
    most_seconds = min(int(settings.max_timeout_s), MOST_SECONDS)
    asked = settings.default_rows if rows is None else rows
    return Limits(
        max_rows=clamp(asked, most_rows),
        max_bytes=settings.max_bytes,
        timeout_s=settings.timeout_s if seconds is None else clamp(seconds, most_seconds),
    )


async def _may_switch(context: ToolContext, source: str) -> bool:
    """Whether `switch_database` would be allowed; else the arguments hold for one call only."""
    if not context.actor.scope.covers(Scope.READ_WRITE):
        return False
    found = await source_of(context, source)
    return found is not None and found.writable


def execute_query(settings: LimitSettings, *, advises: bool = False) -> SurfaceTool:
    """The tool, within `limits_of` the operator's settings. `advises`: errors say which name or
    cast may have been meant, and an empty result which values are like those asked for."""

    async def execute(context: ToolContext, args: Execution) -> ToolResult:
        source, limits = args.source, limits_of(settings, args.max_rows, args.timeout_seconds)
        if args.schema is not None:
            await catalog_of(context, source, args.database, args.schema)
        elif args.database is not None:
            await check_database(context, source, args.database)
        request = Query(
            Statement(args.query),
            limits=limits,
            cells="text",
            database=args.database,
            schema=args.schema,
        )
        if isinstance(args, ChartedExecution) and args.chart is not None:
            most = limits_of(settings, args.max_rows or MOST_ROWS, args.timeout_seconds)
            return await _chart(context, source, structs.replace(request, limits=most), args.chart)
        if advises:
            page = await run_with_advice(context, source, request)
        else:
            page = await context.handle(request, source, Page)
        if (args.database or args.schema) and await _may_switch(context, source):
            # Only now that the statement was let through.
            await context.handle(Switch(args.database, args.schema), source, ConnectionState)
        return answer(executed(page))

    return SurfaceTool(
        name="execute_query",
        title="Execute Query",
        description=(
            "Run one SQL statement and return its rows. DROP, TRUNCATE and ALTER...DROP go through"
            " confirm_destructive_operation."
        ),
        args=Execution,
        app_args=ChartedExecution,
        run=execute,
        output=Executed,
        annotations=hints(reads=False, repeatable=False, open_world=True),
    )


async def _chart(
    context: ToolContext, source: str, request: Query, spec: Mapping[str, Any]
) -> ToolResult:
    """The chart of what a query reads, and its table in the document's shape."""
    from tidegate.surfaces.apps.charted import chart_of, drawing_of

    chart, page = await chart_of(context, request, source, spec)
    charted = ChartedExecuted(
        columns=chart.columns,
        rows=msgspec.Raw(msgspec.json.encode(chart.rows)),
        row_count=len(chart.rows),
        rows_affected=0,
        execution_time_ms=round(page.elapsed_ms),
        is_truncated=bool(page.truncations),
        status_message=page.status or UNSET,
        chart=msgspec.Raw(drawing_of(chart)),
    )
    return answer(charted)
