"""`query_database`: a question or SQL, answered in the document's form.

Whatever the text says, the statement is for reading: the gate refuses anything else, and the
database runs it in a transaction that cannot write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, structs

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.products.pgedge.surface.connection_phrases import has_misplaced_url, read_phrase
from tidegate.products.pgedge.surface.databases import Databases, no_owner
from tidegate.products.pgedge.surface.errors import GUIDE
from tidegate.products.pgedge.surface.questions import answer_question
from tidegate.products.pgedge.surface.result_text import (
    ending,
    page_text,
    sql_heading,
    structured,
    with_short_vectors,
)
from tidegate.products.pgedge.surface.streaming import MAX_ROWS, StreamedRows
from tidegate.products.pgedge.surface.targets import place_note, source_of
from tidegate.products.pgedge.text_to_sql.detection import is_sql
from tidegate.products.pgedge.text_to_sql.model import MAX_QUESTION_CHARS, Question
from tidegate.protocol.model import Annotations, ToolResult, text
from tidegate.protocol.text_stream import TextStream
from tidegate.results.notes import found_nothing
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import NO_ZERO, wrong_argument
from tidegate.surfaces.tool_context import ToolContext

MAX_OFFSET = 1_000_000
"""Rows that may be left out; they are read all the same, so it is no way through a large table."""

_WORDS = re.compile(r"[\w\s]*+")
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)

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
    limit: Annotated[int, Meta(description="The most rows to return", extra=NO_ZERO)] | None = None
    offset: Annotated[int, Meta(description="Rows to leave out at the start")] = 0
    previous: (
        Annotated[str, Meta(description="Handle of an earlier answer that the question continues")]
        | None
    ) = None
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
        stream = context.context.text_stream()
        limits = self._bounds(args, streams=stream is not None)
        in_session = bool(context.context.state_id)
        try:
            return await self._answer_text(context, args, limits, stream, in_session=in_session)
        finally:
            if not in_session and context.context.state_id:
                # A source that a phrase opened ends with the call where there is no session.
                context.gate.end_session(context.context.state_id)

    async def _answer_text(
        self,
        context: ToolContext,
        args: QueryArgs,
        limits: Limits,
        stream: TextStream | None,
        *,
        in_session: bool,
    ) -> ToolResult:
        query, source, place = args.query, args.source, ""
        phrase = read_phrase(query)
        if phrase is not None:
            source = await source_of(context, phrase.target, is_url=phrase.is_url)
            if phrase.rest is None:
                if not in_session and context.context.state_id:
                    raise no_owner()
                return await self._set_default(context, source, temporary=phrase.is_url)
            query = phrase.rest
            if phrase.is_url:
                place = await place_note(context, source)
        else:
            source = await self._databases.name_of(context, source)
        if has_misplaced_url(query):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The query has the URL of a database where none is read",
                hint="Put it at the end, as in `Show users at postgres://host/database`, with"
                " spaces and signs of a password percent-encoded.",
            )
        if args.mode == "nl" or (
            args.mode == "auto" and not await self._is_sql(context, source, query)
        ):
            await self._databases.reach(context, source)
            question = Question(
                text=query,
                source=source,
                mode="nl",
                previous=args.previous,
                limits=limits,
                offset=args.offset,
            )
            return await answer_question(context, question, stream, place)
        # What is returned is the part of the text that was not sent while rows came.
        rows = None if stream is None else StreamedRows(stream, sql_heading(query.strip()))
        request = Query(Statement(query), limits=limits, offset=args.offset, sink=rows)
        try:
            page = await self._databases.handle(context, source, request, Page)
        except TidegateError as error:
            if rows is not None and rows.sent:
                raise
            from tidegate.search.suggestions import advise

            raise await advise(error, context, source, query, find=GUIDE.tables) from None
        notes = [place] if place else []
        shown = page if rows is None else structs.replace(page, rows=rows.first_row)
        if found_nothing(shown) and not args.offset and "'" in query:
            from tidegate.search.suggestions import note_near_values

            notes += [note] if (note := await note_near_values(query, context, source)) else []
        if rows is None:
            page, cut = with_short_vectors(page)
            return self._answer(page, query, args.offset, source, [*cut, *notes])
        reply = rows.rest() + ending(page, args.offset, [*rows.notes, *notes]).encode()
        return ToolResult(body=reply, structured=False)

    async def _is_sql(self, context: ToolContext, source: str | None, query: str) -> bool:
        """Whether to run the query as it is. Words that name no table, as `select customers`
        does, and what PostgreSQL does not know, such as `DESCRIBE users`, are looked up in the
        source. `select name from custmers` is a mistake that the database names."""
        if is_sql(query) and (_FROM.search(query) or not _WORDS.fullmatch(query)):
            return True
        if len(query) > MAX_QUESTION_CHARS:
            return is_sql(query)
        catalog = await self._databases.handle(
            context, source, Browse("catalog"), Catalog, quiet=True
        )
        return is_sql(query, catalog.dialect, catalog)

    async def _set_default(
        self, context: ToolContext, source: str, *, temporary: bool
    ) -> ToolResult:
        """Use the source for later calls of the session that name none. Raises: TidegateError."""
        await self._databases.set_default(context, source, temporary=temporary)
        catalog = await self._databases.handle(context, source, Browse("catalog"), Catalog)
        count = len(catalog.tables)
        reply = (
            f"Successfully set default database connection to:\n{source} ({catalog.database})\n\n"
            f"Metadata loaded: {count} tables/views available."
        )
        return ToolResult(body=reply.encode(), structured=False)

    def _bounds(self, args: QueryArgs, *, streams: bool) -> Limits:
        """The limits of a call. Raises: TidegateError ARGUMENT_INVALID."""
        most = max(MAX_ROWS, self._limits.max_rows) if streams else self._limits.max_rows
        limit = self._limits.default_rows if args.limit is None else args.limit
        if not 1 <= limit <= most:
            raise wrong_argument("limit", "value", f"must be from 1 to {most}", required=False)
        if not 0 <= args.offset <= MAX_OFFSET:
            raise wrong_argument(
                "offset", "value", f"must be from 0 to {MAX_OFFSET}", required=False
            )
        return Limits(limit, self._limits.max_bytes, self._limits.timeout_s)

    def _answer(
        self, page: Page, query: str, offset: int, source: str | None, notes: Sequence[str]
    ) -> ToolResult:
        reply = b"".join(
            (
                sql_heading(query.strip()).encode(),
                page_text(page),
                ending(page, offset, notes).encode(),
            )
        )
        return ToolResult(
            content=[text(reply.decode())],
            body=structured(page, query, offset, source=source),
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
