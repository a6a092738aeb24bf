"""The workbench's resources: the connections, and one connection's schema and history.

The document's original names them with its own scheme, `tablepro:`, which clients rely on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import structs

from tidegate.model.requests import ListSources, SearchHistory
from tidegate.products.workbench.surface.calls import catalog_of, clamp, uuid_of
from tidegate.products.workbench.surface.connections import MOST_CONNECTIONS, connections_of
from tidegate.products.workbench.surface.metadata import ColumnEntry, column_entry
from tidegate.products.workbench.surface.statements import MOST, found
from tidegate.protocol.model import Resource
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool_context import ToolContext

MOST_TABLES = 100


class SchemaTable(msgspec.Struct, frozen=True):
    name: str
    type: str
    columns: tuple[ColumnEntry, ...]


class Schema(msgspec.Struct, frozen=True):
    """The first tables of the current schema; `truncated` shows that there are more."""

    connection_id: str
    database: str
    schema: str
    tables: tuple[SchemaTable, ...]
    truncated: bool
    total_tables: int


async def _connections(context: ToolContext, variables: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(await connections_of(context, limit=MOST_CONNECTIONS))


async def _schema(context: ToolContext, variables: Mapping[str, str]) -> bytes:
    source = uuid_of(variables["id"], "id")
    catalog, schema = await catalog_of(context, source)
    tables = [table for table in catalog.tables if table.schema == schema]
    shown = tuple(
        SchemaTable(table.name, table.kind, tuple(column_entry(c) for c in table.columns))
        for table in tables[:MOST_TABLES]
    )
    return msgspec.json.encode(
        Schema(source, catalog.database, schema, shown, len(tables) > MOST_TABLES, len(tables))
    )


async def _history(context: ToolContext, variables: Mapping[str, str]) -> bytes:
    source = uuid_of(variables["id"], "id")
    limit = variables.get("limit", "50")
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 9):
        raise wrong_argument("limit", "value", "must be a whole number")
    request = SearchHistory(
        variables.get("search", ""),
        since=_since(variables.get("date_filter")),
        limit=clamp(int(limit), MOST),
    )
    return msgspec.json.encode(await found(context, request, source))


async def connected_resources(context: ToolContext) -> list[Resource]:
    """The schema and the history of every connection that is open."""
    return [
        structs.replace(
            family.listed(),
            uri=family.uri.partition("{?")[0].replace("{id}", entry.source.id),
            name=f"{family.name}: {entry.source.name}",
            title=f"{family.title}: {entry.source.name}",
        )
        for entry in await context.sources(ListSources(connected=True))
        for family in RESOURCES
        if family.templated
    ]


def _since(period: str | None) -> float | None:
    """When a named period began, in Unix seconds, by this machine's calendar."""
    if period is None:
        return None
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": 0, "thisWeek": midnight.weekday(), "thisMonth": midnight.day - 1}
    if period not in days:
        raise wrong_argument("date_filter", "value", "must be today, thisWeek or thisMonth")
    return (midnight - timedelta(days=days[period])).timestamp()


RESOURCES = (
    SurfaceResource(
        uri="tablepro://connections",
        name="connections",
        title="Connections",
        description="The saved connections that you may use, the first 500",
        read=_connections,
    ),
    SurfaceResource(
        uri="tablepro://connections/{id}/schema",
        name="schema",
        title="Schema of a connection",
        description="Tables of the current schema with their columns, 100 at most",
        read=_schema,
    ),
    SurfaceResource(
        uri="tablepro://connections/{id}/history{?limit,search,date_filter}",
        name="history",
        title="History of a connection",
        description="Statements that were run; date_filter is today, thisWeek or thisMonth",
        read=_history,
    ),
)
