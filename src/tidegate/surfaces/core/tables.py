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

MOST_TOPICS = 30
"""Topics that one search takes."""
READS = Annotations(read_only_hint=True, open_world_hint=False)


def plain(text: str) -> ToolResult:
    """A result that is text for the model to read, and nothing else."""
    return ToolResult(body=text.encode(), structured=False)


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`words` of several topics are an array. One text is taken as one topic, which is not
    advertised: some clients and vendors of models refuse a parameter of two types."""

    words: Annotated[
        str | Annotated[list[str], Meta(min_length=1, max_length=MOST_TOPICS)],
        Meta(extra_json_schema={"type": "array", "items": {"type": "string"}}),
    ]
    max_bytes: Annotated[int, Meta(ge=1)] | None = None
    source: str | None = None


class Describe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tables: Annotated[list[str], Meta(min_length=1, max_length=50)]
    source: str | None = None


async def _search(context: ToolContext, args: SearchArgs) -> ToolResult:
    from tidegate.surfaces.core.search import search_all, topics_of  # slow; only search needs it

    return plain(await search_all(context, args.source, topics_of(args.words), args.max_bytes))


SEARCH = SurfaceTool(
    name="search",
    description="Find tables by words (one text a topic): columns, keys, values",
    args=SearchArgs,
    run=_search,
    annotations=READS,
)


async def _describe(context: ToolContext, args: Describe) -> ToolResult:
    from tidegate.surfaces.core.search import with_legend
    from tidegate.surfaces.table_search import describe_tables

    catalog = await context.handle(Browse("catalog"), args.source, Catalog)
    found = await describe_tables(context, args.source, catalog, args.tables)
    return plain(with_legend(context, found))


DESCRIBE = SurfaceTool(
    name="describe",
    description="Columns, keys, values of tables",
    args=Describe,
    run=_describe,
    annotations=READS,
)
