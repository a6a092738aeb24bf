"""`query_database`: a question or SQL, answered in the document's form.

Whatever the text says, the statement is for reading: the gate refuses anything else, and the
database runs it in a transaction that cannot write.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.protocol.model import Annotations, ToolResult, text
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.postgres.databases import Databases
from tidegate.surfaces.postgres.result_text import (
    ending,
    page_text,
    sql_heading,
    structured,
)
from tidegate.surfaces.postgres.sql_or_question import is_sql
from tidegate.surfaces.tool_context import ToolContext

MAX_OFFSET = 1_000_000
"""Rows that may be left out; they are read all the same, so it is no way through a large table."""

READS = Annotations(read_only_hint=True, open_world_hint=False)


class QueryArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        Meta(
            description="Natural language question about the data, or one SQL statement that reads"
        ),
    ]
    mode: Annotated[
        Literal["auto", "sql", "nl"],
        Meta(description="What the query is; auto tells SQL from a question"),
    ] = "auto"
    limit: Annotated[int, Meta(description="The most rows to return")] | None = None
    offset: Annotated[int, Meta(description="Rows to leave out at the start")] = 0
    source: Annotated[str, Meta(description="The database, if there are several")] | None = None


class QueryTool:
    """Answers calls of `query_database` within the operator's limits."""

    def __init__(self, databases: Databases, limits: LimitSettings) -> None:
        self._databases = databases
        self._limits = limits

    async def run(self, context: ToolContext, args: QueryArgs) -> ToolResult:
        """Answer one call. Raises: TidegateError."""
        if not args.query.strip():
            raise TidegateError(
                Code.SQL_EMPTY, "The query is empty", hint="Send a question or a SQL statement."
            )
        limits = self._bounds(args)
        if args.mode == "nl" or (args.mode == "auto" and not is_sql(args.query)):
            raise TidegateError(
                Code.UNSUPPORTED,
                "Questions in plain language are not answered yet",
                hint="Send SQL.",
            )
        source = self._databases.name_of(context, args.source)
        request = Query(Statement(args.query), limits=limits, offset=args.offset)
        page = await self._databases.handle(context, source, request, Page)
        return self._answer(page, args, source)

    def _bounds(self, args: QueryArgs) -> Limits:
        """The limits of a call. Raises: TidegateError ARGUMENT_INVALID."""
        most = self._limits.max_rows
        limit = self._limits.default_rows if args.limit is None else args.limit
        if not 1 <= limit <= most:
            raise wrong_argument("limit", "value", f"must be from 1 to {most}", required=False)
        if not 0 <= args.offset <= MAX_OFFSET:
            raise wrong_argument(
                "offset", "value", f"must be from 0 to {MAX_OFFSET}", required=False
            )
        return Limits(limit, self._limits.max_bytes, self._limits.timeout_s)

    def _answer(self, page: Page, args: QueryArgs, source: str | None) -> ToolResult:
        said = b"".join(
            (
                sql_heading(args.query.strip()).encode(),
                page_text(page),
                ending(page, args.offset).encode(),
            )
        )
        return ToolResult(
            content=[text(said.decode())],
            body=structured(page, args.query, args.offset, source=source),
        )


def query_tool(databases: Databases, limits: LimitSettings) -> SurfaceTool:
    """The tool as the surface lists it."""
    return SurfaceTool(
        name="query_database",
        title="Query the database",
        description="Execute a natural language query, or SQL, against the database. Runs in a"
        " read-only transaction. Returns the SQL and its rows as JSON.",
        args=QueryArgs,
        run=QueryTool(databases, limits).run,
        annotations=READS,
    )
