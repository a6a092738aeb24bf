"""`search` and `describe`: finding one's way in a schema, from names to columns to keys."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, Table
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.core.shorthand import table_name, with_column_names, with_keys
from tidegate.surfaces.tool_context import ToolContext

if TYPE_CHECKING:
    from tidegate.search.words import Indexes, Match

READS = Annotations(read_only_hint=True, open_world_hint=False)

_MOST = {"names": 8, "columns": 5, "keys": 3}
_MOST_COLUMNS = 5
_MOST_NAMES = 200
_MOST_ASKED = 300
"""Characters of the words to search for: what comes after them finds nothing more."""


def plain(text: str) -> ToolResult:
    """A result that is text for the model to read, and nothing else."""
    return ToolResult(body=text.encode(), structured=False)


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: str
    detail: Literal["names", "columns", "keys"] = "names"
    source: str | None = None


class Describe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tables: Annotated[list[str], Meta(min_length=1, max_length=50)]
    source: str | None = None


def search_tool() -> SurfaceTool:
    """The tool that finds tables by words; it keeps the indexes of the sources it has seen."""

    @cache
    def indexes() -> Indexes:
        from tidegate.search.words import Indexes  # only who searches pays for it

        return Indexes()

    async def search(context: ToolContext, args: Search) -> ToolResult:
        catalog = await context.handle(Browse("catalog"), args.source, Catalog)
        if not args.words.strip():
            return plain(_all_names(catalog))
        most = _MOST[args.detail]
        matches, total = (
            indexes()
            .of(f"{args.source}/{catalog.database}", catalog)
            .search(args.words[:_MOST_ASKED], most)
        )
        if not matches:
            return plain(f"No match. Tables: {_all_names(catalog, 30)}")
        lines = [_line(match, catalog, args.detail) for match in matches]
        if total > most:
            lines.append(f"+{total - most} more: add words")
        return plain("\n".join(lines))

    return SurfaceTool(
        name="search",
        description="Find tables by words",
        args=Search,
        run=search,
        annotations=READS,
    )


def _line(match: Match, catalog: Catalog, detail: str) -> str:
    if detail == "keys":
        return with_keys(match.table, catalog)
    if detail == "columns":
        return with_column_names(match.table, catalog)
    name = table_name(match.table, catalog)
    if not match.columns:
        return name
    more = ",…" if len(match.columns) > _MOST_COLUMNS else ""
    return f"{name}: {','.join(match.columns[:_MOST_COLUMNS])}{more}"


def _all_names(catalog: Catalog, most: int = _MOST_NAMES) -> str:
    tables = [table for table in catalog.tables if table.kind != "system table"]
    names = ",".join(table_name(table, catalog) for table in tables[:most])
    more = len(tables) - most
    return names + (f" +{more} more: search by words" if more > 0 else "") or "none"


async def _describe(context: ToolContext, args: Describe) -> ToolResult:
    catalog = await context.handle(Browse("catalog"), args.source, Catalog)
    lines: list[str] = []
    unknown: list[str] = []
    for name in args.tables:
        tables = _named(name, catalog)
        lines += [with_keys(table, catalog) for table in tables]
        if not tables:
            unknown.append(_with_nearest(name, catalog) if len(unknown) < 3 else name)
    if not lines:
        raise TidegateError(
            Code.TABLE_UNKNOWN, f"No table {', '.join(unknown)}", hint="Find it with search."
        )
    if unknown:
        lines.append(f"No table {', '.join(unknown)}")
    return plain("\n".join(lines))


def _with_nearest(name: str, catalog: Catalog) -> str:
    from tidegate.surfaces.core.suggestions import nearest_tables

    near = nearest_tables(name, catalog)
    return f"{name} (nearest: {', '.join(near)})" if near else name


def _named(name: str, catalog: Catalog) -> list[Table]:
    """The tables called `name`, as written or with another case, in the default schema first."""
    wanted = name.replace('"', "").replace("`", "").strip()
    for same in (_equal, _alike):
        found = [
            table
            for table in catalog.tables
            if same(table.name, wanted) or same(f"{table.schema}.{table.name}", wanted)
        ]
        own = [table for table in found if table.schema == catalog.default_schema]
        if found:
            return own or found
    return []


def _equal(name: str, wanted: str) -> bool:
    return name == wanted


def _alike(name: str, wanted: str) -> bool:
    return name.casefold() == wanted.casefold()


DESCRIBE = SurfaceTool(
    name="describe",
    description="Columns and keys of tables",
    args=Describe,
    run=_describe,
    annotations=READS,
)
