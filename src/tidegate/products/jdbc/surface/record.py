"""`record`: a query in two steps. The first says what the query is made of, the second runs exactly
that, once its caller, or a person, has confirmed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.long_work import TakesLong, may_take_long
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.jdbc.extraction.extraction import extract
from tidegate.products.jdbc.extraction.model import Extraction
from tidegate.products.jdbc.extraction.source_text import GENERIC
from tidegate.products.jdbc.fixtures import LANGUAGES, FixtureResult, Language, fixture_result
from tidegate.products.jdbc.row_buffer import RowBuffer
from tidegate.products.jdbc.surface.confirmations import Confirmations, Seen
from tidegate.products.jdbc.surface.connections import Connection, ConnectionTable
from tidegate.products.jdbc.surface.description import describe
from tidegate.products.jdbc.surface.parameters import parameter_sets
from tidegate.products.jdbc.surface.result_shape import awaiting, executed, extracted, generated
from tidegate.products.jdbc.surface.settings import JdbcSettings
from tidegate.results.row_stream import WriterSink
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.schema import VALUE
from tidegate.surfaces.tool_context import ApprovalTerms, ToolContext

SHORT = 4_096
"""Characters up to which a query is read on the event loop."""

MOST_ASKED = 12
"""Parameters that a person is asked for in one form."""


class RecordArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    query: str
    connection_id: str | None = None
    confirmed: bool | None = None
    parameters: list[Any] | None = None
    parameter_sets: list[list[Any]] | None = None
    max_rows: Annotated[int, Meta(ge=1)] | None = None
    generate: list[Language] | None = None
    fixture_name: Annotated[str, Meta(max_length=60)] = "recorded"


_VALUE: Mapping[str, Any] = {
    "anyOf": [
        *VALUE["anyOf"],
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "Such as DATE"},
                "value": {"type": "string", "description": "The value as text"},
            },
            "required": ["type", "value"],
        },
    ]
}
"""The document lets a parameter be a value of any type."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "One SELECT, with ? for each parameter"},
        "connectionId": {
            "type": "string",
            "description": "The id of `connect`; needed to execute the query",
        },
        "confirmed": {
            "type": "boolean",
            "description": "Execute the query whose extraction was shown before",
        },
        "parameters": {
            "type": "array",
            "items": _VALUE,
            "description": 'A value for each ?, such as 1, "a", null or'
            ' {"type": "DATE", "value": "2026-01-31"}',
        },
        "parameterSets": {
            "type": "array",
            "items": {"type": "array", "items": _VALUE},
            "description": "Lists of values: one execution for each",
        },
        "maxRows": {"type": "integer", "minimum": 1, "description": "Most rows of the answer"},
        "generate": {
            "type": "array",
            "items": {"type": "string", "enum": list(LANGUAGES)},
            "description": "Write the rows as code for tests: Acolyte handlers, pytest fixtures",
        },
        "fixtureName": {"type": "string", "maxLength": 60, "description": "Name in that code"},
    },
    "required": ["query"],
}


class Recorder:
    """Answers `record`."""

    def __init__(
        self, connections: ConnectionTable, settings: JdbcSettings, limits: LimitSettings
    ) -> None:
        self._connections = connections
        self._settings = settings
        self._limits = limits
        self._confirmations = Confirmations(settings.confirmed_s)

    async def record(self, context: ToolContext, args: RecordArgs) -> Mapping[str, Any]:
        """The fields of the reply. Raises: TidegateError."""
        if args.confirmed and args.connection_id is None:
            raise wrong_argument("connectionId", "missing", "is required to execute a query")
        async with self._connections.order(context):
            owner = context.context.state_id or f"actor {context.actor.id}"
            connection = None
            if args.connection_id is not None:
                connection = await self._connections.find(context, args.connection_id)
            if connection is None:
                return await self._extract(context, owner, args, None)
            async with self._connections.using(connection):
                if not args.confirmed:
                    return await self._extract(context, owner, args, connection)
                return await self._execute(context, owner, args, connection)

    async def _extract(
        self, context: ToolContext, owner: str, args: RecordArgs, connection: Connection | None
    ) -> Mapping[str, Any]:
        dialect = connection.dialect if connection else self._connections.only_dialect(context)
        found = await extract_query(args.query, dialect or GENERIC)
        if connection is None:
            self._confirmations.add(owner, args.query, None, Seen(found))
            return awaiting(args.query, found)
        return await self._show(context, owner, args, connection, found)

    async def _show(
        self,
        context: ToolContext,
        owner: str,
        args: RecordArgs,
        connection: Connection,
        found: Extraction,
        note: str = "",
    ) -> Mapping[str, Any]:
        """The reply of the first step for a connection, and what it lets be confirmed."""
        described = await describe(context, connection, found)
        seen = Seen(found, described.digest)
        self._confirmations.add(owner, args.query, connection.id, seen)
        return {**awaiting(args.query, found, note), "description": described.shown}

    async def _execute(
        self, context: ToolContext, owner: str, args: RecordArgs, connection: Connection
    ) -> Mapping[str, Any]:
        seen = self._confirmations.find(owner, args.query, connection.id)
        if seen is None:
            raise TidegateError(
                Code.POLICY_CONFIRM,
                "This query has not been extracted before, so there is nothing to confirm.",
                hint="First call record with the query alone, review what it extracts, and then"
                " confirm exactly that query.",
            )
        found = await extract_query(args.query, connection.dialect)
        if _shape(found) != _shape(seen.extraction):
            note = "The database of this connection reads the query differently. "
            return await self._show(context, owner, args, connection, found, note)
        if seen.digest is not None:
            now = await describe(context, connection, found, whole=False)
            if now.digest != seen.digest:
                self._confirmations.forget(owner, args.query, connection.id)
                raise TidegateError(
                    Code.POLICY_CONFIRM,
                    "What this query gives has changed since it was confirmed: the columns, the"
                    " types or what is masked. Nothing was run.",
                    hint="Call record again without confirmed, and review the new description.",
                )
        given = args.parameters
        if given is None and args.parameter_sets is None:
            given = await self._ask_values(context, found)
        sets = parameter_sets(given, args.parameter_sets, len(found.parameters), connection.dialect)
        return await self._run(context, connection, args, found, sets)

    async def _run(
        self,
        context: ToolContext,
        connection: Connection,
        args: RecordArgs,
        found: Extraction,
        sets: Sequence[tuple[Any, ...]],
    ) -> Mapping[str, Any]:
        settings = self._limits
        rows = min(args.max_rows or settings.default_rows, settings.max_rows)
        space = settings.max_bytes
        pages: list[Page] = []
        results: list[FixtureResult] = []
        for values in sets:
            if rows < 1 or space < 3:
                break
            limits = Limits(rows, space, settings.timeout_s)
            kept = RowBuffer(limits) if args.generate else None
            request = Query(
                Statement(found.source_text, values or None),
                limits=limits,
                sink=WriterSink(kept) if kept is not None else None,
            )
            page = await context.handle(
                request,
                connection.source,
                Page,
                reads_only=True,
                quiet=len(sets) > 1,
                terms=ApprovalTerms(by_person=self._settings.confirm == "person"),
            )
            if kept is not None:
                page = kept.page(page)
                results.append(
                    fixture_result(
                        *(args.fixture_name, args.query, values),
                        *(page.columns, kept.rows, connection.dialect),
                    )
                )
            rows -= page.row_count
            space -= len(page.rows)
            pages.append(page)
        reply = executed(args.query, pages, connection.types, len(sets) - len(pages))
        if args.generate:
            reply |= generated(args.generate, args.fixture_name, results)
        return reply

    async def _ask_values(self, context: ToolContext, found: Extraction) -> list[Any] | None:
        """Ask the client's user for the values, where it can be asked."""
        count = len(found.parameters)
        if not 0 < count <= MOST_ASKED or not context.can_ask:
            return None
        fields = {
            f"p{index}": {
                "type": "string",
                "title": " ".join(filter(None, (each.field, each.operator, f"? ({index})")))[:100],
            }
            for index, each in enumerate(found.parameters, 1)
        }
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        content = await context.ask("parameters", "Values of the query's parameters", schema)
        return None if content is None else [content[name] for name in fields]


async def extract_query(text: str, dialect: str) -> Extraction:
    """The structure of a query, read in a thread where that takes long. Raises: TidegateError."""
    if len(text) <= SHORT:
        token = may_take_long.set(False)
        try:
            return extract(text, dialect)
        except TakesLong:
            pass
        finally:
            may_take_long.reset(token)
    return await asyncio.to_thread(extract, text, dialect)


def _shape(found: Extraction) -> Mapping[str, Any]:
    """What an extraction says, without the dialect by which it was read."""
    shown = extracted(found)
    del shown["dialect"]
    return shown
