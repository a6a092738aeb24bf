"""`browse_table` and `count_rows`: rows of one table by filters that are data, not SQL."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.config.model import LimitSettings
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.advice import run_with_advice
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    TableName,
    answer,
    dialect_of,
    hints,
    table_of,
)
from tidegate.products.workbench.surface.execution import Executed, executed, limits_of
from tidegate.products.workbench.surface.extended.conditions import (
    Filter,
    Sort,
    column,
    order_by,
    where,
)
from tidegate.protocol.model import ToolResult
from tidegate.results.notes import masking_note
from tidegate.sql.quoting import qualified
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

Logic = Literal["and", "or"]
_CELL = msgspec.json.Decoder(list[list[str | None]])


class Browsed(OnConnection, frozen=True, kw_only=True):
    table: TableName
    database: DatabaseName | None = None
    schema: SchemaName | None = None
    columns: Annotated[list[str], Meta(description="Columns to show; all if left out")] | None = (
        None
    )
    filters: tuple[Filter, ...] = ()
    logic: Logic = "and"
    sort: tuple[Sort, ...] = ()
    limit: Annotated[int, Meta(description="Rows to return, 1 to 10000")] | None = None
    offset: Annotated[int, Meta(description="Rows to skip")] = 0
    timeout_seconds: Annotated[int, Meta(description="Time limit, 1 to 300")] | None = None


class Counted(OnConnection, frozen=True, kw_only=True):
    table: TableName
    database: DatabaseName | None = None
    schema: SchemaName | None = None
    exact: Annotated[bool, Meta(description="Count; else the database's estimate may do")] = True
    filters: tuple[Filter, ...] = ()
    logic: Logic = "and"


class RowCount(msgspec.Struct, frozen=True):
    row_count: int
    is_approximate: bool
    filter_count: int | UnsetType = UNSET
    note: str | UnsetType = UNSET


def browsing_tools(settings: LimitSettings) -> tuple[SurfaceTool, ...]:
    """Both tools, within the operator's limits."""

    async def browse(context: ToolContext, args: Browsed) -> ToolResult:
        if args.offset < 0:
            raise wrong_argument("offset", "value", "must not be negative")
        dialect = await dialect_of(context, args.source)
        table = await table_of(context, args.source, args.table, args.schema, args.database)
        names = args.columns if args.columns is not None else [c.name for c in table.columns]
        shown = ", ".join(column(name, table, dialect) for name in names) or "*"
        limits = limits_of(settings, args.limit, args.timeout_seconds)
        text = (
            f"SELECT {shown} FROM {qualified(table.schema, table.name, dialect)}"
            f"{where(args.filters, args.logic, table, dialect)}"
            f"{order_by(args.sort, table, dialect)}"
            f" LIMIT {limits.max_rows + 1} OFFSET {args.offset}"
        )
        return answer(executed(await _read(context, args.source, text, limits, args.database)))

    async def count(context: ToolContext, args: Counted) -> ToolResult:
        dialect = await dialect_of(context, args.source)
        table = await table_of(context, args.source, args.table, args.schema, args.database)
        if not args.exact and not args.filters and table.approximate_rows is not None:
            return answer(RowCount(table.approximate_rows, True))
        place = qualified(table.schema, table.name, dialect)
        text = f"SELECT count(*) FROM {place}{where(args.filters, args.logic, table, dialect)}"
        page = await _read(context, args.source, text, limits_of(settings), args.database)
        rows = int(_CELL.decode(page.rows)[0][0] or 0)
        masked = masking_note(page.masked) if page.masked else None
        note = "; ".join(filter(None, (masked, page.status if not rows else None)))
        return answer(RowCount(rows, False, len(args.filters) or UNSET, note or UNSET))

    return (
        SurfaceTool(
            name="browse_table",
            title="Browse Table",
            description="Show rows of a table, filtered, sorted and page by page, without SQL.",
            args=Browsed,
            run=browse,
            output=Executed,
            annotations=hints(reads=True),
        ),
        SurfaceTool(
            name="count_rows",
            title="Count Rows",
            description="Count a table's rows, or those that pass filters.",
            args=Counted,
            run=count,
            output=RowCount,
            annotations=hints(reads=True),
        ),
    )


async def _read(
    context: ToolContext, source: str, text: str, limits: Limits, database: str | None
) -> Page:
    request = Query(Statement(text), limits=limits, cells="text", database=database)
    return await run_with_advice(context, source, request, reads_only=True)
