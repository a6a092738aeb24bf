"""`explain_query`: how the database would run a statement, without running it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Explain
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.advice import run_with_advice
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    answer,
    hints,
)
from tidegate.products.workbench.surface.execution import ROWS_SCHEMA, limits_of
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext

_ROWS = msgspec.json.Decoder(list[list[msgspec.Raw]])


class Explained(OnConnection, frozen=True, kw_only=True):
    query: Annotated[str, Meta(description="One SQL statement, without EXPLAIN")]
    analyze: Annotated[bool, Meta(description="Not offered: it would run the statement")] = False
    database: DatabaseName | None = None
    schema: SchemaName | None = None
    timeout_seconds: Annotated[int, Meta(description="Time limit, 1 to 300")] | None = None


class PlanText(msgspec.Struct, frozen=True):
    """A plan as the database shows it; `plan_text` is its cells, a line for each row."""

    statement: str
    plan_text: str
    columns: tuple[str, ...]
    rows: Annotated[msgspec.Raw, Meta(extra_json_schema=ROWS_SCHEMA)]


def explain_query(settings: LimitSettings) -> SurfaceTool:
    """The tool, within the operator's limits."""

    async def explain(context: ToolContext, args: Explained) -> ToolResult:
        if args.analyze:
            raise TidegateError(
                Code.UNSUPPORTED,
                "EXPLAIN ANALYZE runs the statement and is not supported",
                hint="Leave out analyze, or run the statement itself.",
            )
        limits = limits_of(settings, settings.max_rows, args.timeout_seconds)
        request = Explain(
            Statement(args.query), limits=limits, database=args.database, schema=args.schema
        )
        page = await run_with_advice(context, args.source, request)
        rows = [[_text(cell) for cell in row] for row in _ROWS.decode(page.rows)]
        return answer(
            PlanText(
                statement=args.query,
                plan_text="\n".join("  ".join(cell or "" for cell in row) for row in rows),
                columns=tuple(column.name for column in page.columns),
                rows=msgspec.Raw(msgspec.json.encode(rows)),
            )
        )

    return SurfaceTool(
        name="explain_query",
        title="Explain Query",
        description="Show how the database would run a statement. Nothing is run.",
        args=Explained,
        app_args=Explained,
        run=explain,
        output=PlanText,
        annotations=hints(reads=True, open_world=True),
    )


def _text(cell: msgspec.Raw) -> str | None:
    """A JSON value as a cell of text."""
    raw = bytes(cell)
    if raw == b"null":
        return None
    return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode()
