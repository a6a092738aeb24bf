"""`insert_rows`: rows into one table in one statement, their values as parameters."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
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
from tidegate.products.workbench.surface.execution import limits_of
from tidegate.products.workbench.surface.extended.conditions import Value, column
from tidegate.protocol.model import ToolResult
from tidegate.sql.dialects import find
from tidegate.sql.quoting import qualified
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

MOST_ROWS = 1_000


class Insertion(OnConnection, frozen=True, kw_only=True):
    table: TableName
    columns: Annotated[list[str], Meta(description="Columns that the rows give, in order")]
    rows: Annotated[list[list[Value]], Meta(description="Rows to insert, 1 to 1000")]
    database: DatabaseName | None = None
    schema: SchemaName | None = None


class Inserted(msgspec.Struct, frozen=True):
    rows_submitted: int
    rows_affected: int


def insert_rows(settings: LimitSettings) -> SurfaceTool:
    """The tool, within the operator's limits: all rows go in, or none."""

    async def insert(context: ToolContext, args: Insertion) -> ToolResult:
        if not 1 <= len(args.rows) <= MOST_ROWS:
            raise wrong_argument("rows", "value", f"must hold 1 to {MOST_ROWS} rows")
        if not args.columns or any(len(row) != len(args.columns) for row in args.rows):
            raise wrong_argument("rows", "value", "must give each row a value for each column")
        if len({name.casefold() for name in args.columns}) < len(args.columns):
            raise wrong_argument("columns", "value", "must not name a column twice")
        dialect = await dialect_of(context, args.source)
        table = await table_of(context, args.source, args.table, args.schema, args.database)
        if table.kind != "table":
            raise TidegateError(Code.ARGUMENT_INVALID, f"{args.table} is a {table.kind}")
        names = ", ".join(column(name, table, dialect) for name in args.columns)
        text = (
            f"INSERT INTO {qualified(table.schema, table.name, dialect)} ({names}) VALUES"
            f" {_marks(len(args.rows), len(args.columns), dialect)}"
        )
        params = tuple(value for row in args.rows for value in row)
        request = Query(
            Statement(text, params),
            limits=limits_of(settings),
            cells="text",
            database=args.database,
        )
        page = await context.handle(request, args.source, Page)
        return answer(Inserted(len(args.rows), page.affected))

    return SurfaceTool(
        name="insert_rows",
        title="Insert Rows",
        description="Insert rows into a table: all of them, or none if one does not fit.",
        args=Insertion,
        run=insert,
        output=Inserted,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False, repeatable=False, open_world=True),
    )


def _marks(rows: int, columns: int, dialect: str) -> str:
    """`(?, ?), (?, ?)`, or with numbers where the dialect has them."""
    marker = find(dialect).marker
    return ", ".join(
        f"({', '.join(marker(row * columns + place) for place in range(1, columns + 1))})"
        for row in range(rows)
    )
