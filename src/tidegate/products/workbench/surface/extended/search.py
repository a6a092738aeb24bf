"""`search_schema`: tables and columns by part of their name; `find_tables`: tables by words, with
what a caller needs to know who writes a statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.model.schema import Table
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    answer,
    catalog_of,
    clamp,
    hints,
)
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import NO_ZERO, wrong_argument
from tidegate.surfaces.tool_context import ToolContext

MOST = 500


class Search(OnConnection, frozen=True, kw_only=True):
    term: Annotated[str, Meta(description="Part of a table's or column's name")]
    limit: Annotated[int, Meta(description="Matches to return, 1 to 500")] = 50
    database: DatabaseName | None = None
    schema: SchemaName | None = None


class Match(msgspec.Struct, frozen=True):
    kind: str
    name: str
    schema: str
    table: str | UnsetType = UNSET
    object_type: str | UnsetType = UNSET
    data_type: str | UnsetType = UNSET


class Matches(msgspec.Struct, frozen=True):
    """Tables first, then columns; `column_search` shows whether every column was read."""

    matches: tuple[Match, ...]
    is_truncated: bool
    column_search: str


async def _search(context: ToolContext, args: Search) -> ToolResult:
    term = args.term.strip().casefold()
    if not term:
        raise wrong_argument("term", "missing", "is required")
    catalog, schema = await catalog_of(context, args.source, args.database, args.schema)
    tables = [table for table in catalog.tables if args.schema is None or table.schema == schema]
    most = clamp(args.limit, MOST)
    found: list[Match] = []
    for match in _matches(tables, term):
        if len(found) == most:
            return answer(Matches(tuple(found), True, "limit_reached"))
        found.append(match)
    return answer(Matches(tuple(found), False, "searched"))


def _matches(tables: list[Table], term: str) -> Iterator[Match]:
    for table in tables:
        if term in table.name.casefold():
            yield Match("table", table.name, table.schema, object_type=table.kind)
    for table in tables:
        for column in table.columns:
            if term in column.name.casefold():
                yield Match("column", column.name, table.schema, table.name, data_type=column.type)


class Find(OnConnection, frozen=True, kw_only=True):
    words: Annotated[str, Meta(description="What the tables are about, in a few words")]
    max_bytes: Annotated[
        int, Meta(description="Bytes of the answer, at least 200", extra=NO_ZERO)
    ] = 2_500
    database: DatabaseName | None = None
    schema: SchemaName | None = None


class Found(msgspec.Struct, frozen=True):
    """The best tables in shorthand, one a line, and the names of others."""

    tables: str


async def _find(context: ToolContext, args: Find) -> ToolResult:
    from tidegate.surfaces.table_search import search_tables  # slow; only search needs it

    catalog, schema = await catalog_of(context, args.source, args.database, args.schema)
    if args.schema is not None:
        tables = tuple([table for table in catalog.tables if table.schema == schema])
        catalog = msgspec.structs.replace(catalog, tables=tables)
    most = max(200, args.max_bytes)
    return answer(Found(await search_tables(context, args.source, catalog, args.words, most)))


TOOLS = (
    SurfaceTool(
        name="find_tables",
        title="Find Tables",
        description="Find tables by words. Shows columns with types, keys (pk), foreign keys (>),"
        " likely joins (~>; by name alone ~?>), common values {…} and ranges [a..b].",
        args=Find,
        run=_find,
        output=Found,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="search_schema",
        title="Search Schema",
        description="Find tables and columns by part of their name.",
        args=Search,
        run=_search,
        output=Matches,
        annotations=hints(reads=True),
    ),
)
