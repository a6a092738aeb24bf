"""`search` and `describe`: finding the way in a schema, from words to columns, keys and values."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext

READS = Annotations(read_only_hint=True, open_world_hint=False)


def plain(text: str) -> ToolResult:
    """A result that is text for the model to read, and nothing else."""
    return ToolResult(body=text.encode(), structured=False)


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: str
    max_bytes: Annotated[int, Meta(ge=1)] | None = None
    source: str | None = None


class Describe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tables: Annotated[list[str], Meta(min_length=1, max_length=50)]
    source: str | None = None


async def _search(context: ToolContext, args: Search) -> ToolResult:
    from tidegate.surfaces.table_search import search_tables  # only who searches pays for it

    catalog = await context.handle(Browse("catalog"), args.source, Catalog)
    return plain(await search_tables(context, args.source, catalog, args.words, args.max_bytes))


SEARCH = SurfaceTool(
    name="search",
    description="Find tables by words: columns, keys, values",
    args=Search,
    run=_search,
    annotations=READS,
)


async def _describe(context: ToolContext, args: Describe) -> ToolResult:
    from tidegate.surfaces.table_search import describe_tables

    catalog = await context.handle(Browse("catalog"), args.source, Catalog)
    return plain(await describe_tables(context, args.source, catalog, args.tables))


DESCRIBE = SurfaceTool(
    name="describe",
    description="Columns, keys, values of tables",
    args=Describe,
    run=_describe,
    annotations=READS,
)
