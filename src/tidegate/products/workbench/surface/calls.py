"""What the workbench's tools have in common: the connection they name and how they answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, ListSources
from tidegate.model.schema import Catalog, Databases, Table
from tidegate.model.sources import Source
from tidegate.protocol.model import Annotations, ToolResult
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

ConnectionId = Annotated[str, Meta(description="UUID of a connection, from list_connections")]
DatabaseName = Annotated[str, Meta(description="Database to use for this call")]
SchemaName = Annotated[str, Meta(description="Schema to use; the current one if left out")]
TableName = Annotated[str, Meta(description="Name of a table or view")]


class OnConnection(msgspec.Struct, frozen=True):
    """Arguments that name a connection, and more in what is made of it."""

    connection_id: ConnectionId

    @property
    def source(self) -> str:
        """The id of the source. Raises: TidegateError ARGUMENT_INVALID if it is no UUID."""
        return uuid_of(self.connection_id, "connection_id")


def uuid_of(text: str, parameter: str) -> str:
    """The UUID in lower case. Raises: TidegateError ARGUMENT_INVALID with problem `uuid`."""
    if _UUID.fullmatch(text) is None:
        raise wrong_argument(
            parameter, "uuid", "is not a UUID", hint="list_connections tells the ids."
        )
    return text.lower()


def clamp(value: int, most: int) -> int:
    """The value within 1 and `most`: what a caller asks for is never refused for being too much."""
    return max(1, min(value, most))


def hints(
    *, reads: bool, destroys: bool = False, repeatable: bool = True, open_world: bool = False
) -> Annotations:
    """The four hints of a tool, all of them said."""
    return Annotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=repeatable,
        open_world_hint=open_world,
    )


def answer(output: msgspec.Struct) -> ToolResult:
    """The output as structured content, mirrored as text by the kernel."""
    return ToolResult(body=msgspec.json.encode(output))


async def catalog_of(
    context: ToolContext, source: str, database: str | None = None, schema: str | None = None
) -> tuple[Catalog, str]:
    """The catalog and the schema that a call is about, both checked to exist.

    Raises: TidegateError ARGUMENT_INVALID for an unknown database or schema.
    """
    if database is not None:
        await check_database(context, source, database)
    catalog = await context.handle(Browse("catalog", database=database), source, Catalog)
    if schema is None:
        return catalog, catalog.default_schema
    if schema not in catalog.schemas:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Schema not found: {schema}",
            hint=f"Schemas: {', '.join(catalog.schemas[:20])}.",
        )
    return catalog, schema


async def ids_of(context: ToolContext, names: Iterable[str]) -> dict[str, str]:
    """The ids of the sources of these names, those that the actor may see."""
    wanted = ListSources(keys=tuple(dict.fromkeys(names)))
    return {entry.source.name: entry.source.id for entry in await context.sources(wanted)}


async def source_of(context: ToolContext, id: str) -> Source | None:
    """The source of that id, if the actor may see it."""
    entries = await context.sources(ListSources(keys=(id,)))
    return entries[0].source if entries else None


async def dialect_of(context: ToolContext, source: str) -> str:
    """The dialect of a source that the actor may see. Of another the gate says what is to say."""
    found = await source_of(context, source)
    return "default" if found is None else found.dialect


async def table_of(
    context: ToolContext,
    source: str,
    name: str,
    schema: str | None = None,
    database: str | None = None,
) -> Table:
    """The table that is meant, as it is called or else without regard to case.

    Raises: TidegateError ARGUMENT_INVALID for an unknown schema, TABLE_UNKNOWN.
    """
    catalog, place = await catalog_of(context, source, database, schema)
    tables = [table for table in catalog.tables if table.schema == place]
    for table in tables:
        if table.name == name:
            return table
    alike = [table for table in tables if table.name.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    from tidegate.search.suggestions import nearest_tables

    near = nearest_tables(name, catalog)
    hint = f"Nearest: {', '.join(near)}." if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {name}", hint=hint)


async def check_database(context: ToolContext, source: str, database: str) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless the source has that database."""
    names = (await context.handle(Browse("databases"), source, Databases)).names
    if database not in names:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Database not found: {database}",
            hint=f"Databases: {', '.join(names[:20])}.",
        )
