"""`list_connections`, `connect`, `disconnect` and `get_connection_status`."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.engines.registry import locate
from tidegate.model.actors import Scope
from tidegate.model.replies import ConnectionState, SourceEntry
from tidegate.model.requests import Connect, Disconnect, ShowStatus
from tidegate.model.schema import Status
from tidegate.model.sources import Source
from tidegate.products.workbench.surface.calls import OnConnection, answer, clamp, hints
from tidegate.products.workbench.surface.policy_words import ai_policy, safe_mode
from tidegate.protocol.model import ToolResult
from tidegate.sql.dialects import find
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.source_pages import page_of_sources
from tidegate.surfaces.tool_context import ToolContext

DEFAULT_CONNECTIONS, MOST_CONNECTIONS = 200, 500


class Listing(msgspec.Struct, frozen=True):
    """Which part of the list: `limit` connections from where `cursor` says."""

    limit: Annotated[int, Meta(description="Connections to return, 1 to 500")] = DEFAULT_CONNECTIONS
    cursor: Annotated[str, Meta(description="next_cursor of the answer before")] | None = None


class ListedConnection(msgspec.Struct, frozen=True):
    """A saved connection. A database that is a file has no host, port or user: empty, 0, empty.
    The host of a URL that cannot be read is `(unreadable URL)`."""

    id: str
    name: str
    type: str
    host: str
    port: int
    database: str
    username: str
    is_connected: bool
    ai_policy: str
    safe_mode: str


class Connections(msgspec.Struct, frozen=True):
    """A part of the list. `next_cursor` is there if more follows."""

    connections: tuple[ListedConnection, ...]
    next_cursor: str | UnsetType = UNSET


class Connected(msgspec.Struct, frozen=True):
    status: str
    current_database: str | UnsetType = UNSET
    current_schema: str | UnsetType = UNSET
    server_version: str | UnsetType = UNSET


class Disconnected(msgspec.Struct, frozen=True):
    status: str


class ErrorMessage(msgspec.Struct, frozen=True):
    message: str


class ConnectionStatus(msgspec.Struct, frozen=True):
    """Times are UTC, as in `2026-04-26T10:14:22Z`."""

    status: str
    current_database: str | UnsetType = UNSET
    current_schema: str | UnsetType = UNSET
    server_version: str | UnsetType = UNSET
    connected_at: str | UnsetType = UNSET
    last_active_at: str | UnsetType = UNSET
    error: ErrorMessage | UnsetType = UNSET


async def connections_of(
    context: ToolContext, limit: int = DEFAULT_CONNECTIONS, cursor: str | None = None
) -> Connections:
    """The connections that the actor may see, `limit` of them after the cursor's place.

    Raises: TidegateError ARGUMENT_INVALID for an invalid cursor.
    """
    entries, following = await page_of_sources(context, clamp(limit, MOST_CONNECTIONS), cursor)
    return Connections(tuple([_connection(entry) for entry in entries]), following or UNSET)


def _type(source: Source) -> str:
    dialect = find(source.dialect)
    return dialect.titles.get(source.url.partition(":")[0]) or dialect.title or source.engine


def _connection(entry: SourceEntry) -> ListedConnection:
    source, state = entry.source, entry.state
    place = locate(source.url)
    return ListedConnection(
        id=source.id,
        name=source.name,
        type=_type(source),
        host=place.host,
        port=place.port,
        database=state.current.database if state.current else place.database,
        username=place.user,
        is_connected=state.status == "connected",
        ai_policy=ai_policy(source),
        safe_mode=safe_mode(source),
    )


async def _list_connections(context: ToolContext, args: Listing) -> ToolResult:
    return answer(await connections_of(context, args.limit, args.cursor))


async def _connect(context: ToolContext, args: OnConnection) -> ToolResult:
    state = await context.handle(Connect(), args.source, ConnectionState)
    database, schema, version = _where(state.current)
    return answer(Connected(state.status, database, schema, version))


async def _disconnect(context: ToolContext, args: OnConnection) -> ToolResult:
    await context.handle(Disconnect(), args.source, ConnectionState)
    return answer(Disconnected("disconnected"))


async def _status(context: ToolContext, args: OnConnection) -> ToolResult:
    state = await context.handle(ShowStatus(), args.source, ConnectionState)
    database, schema, version = _where(state.current)
    return answer(
        ConnectionStatus(
            status=state.status,
            current_database=database,
            current_schema=schema,
            server_version=version,
            connected_at=_instant(state.connected_at),
            last_active_at=_instant(state.last_active_at),
            error=ErrorMessage(state.error) if state.status == "error" and state.error else UNSET,
        )
    )


def _where(
    status: Status | None,
) -> tuple[str | UnsetType, str | UnsetType, str | UnsetType]:
    if status is None:
        return UNSET, UNSET, UNSET
    return status.database, status.schema or UNSET, status.server_version or UNSET


def _instant(at: float | None) -> str | UnsetType:
    return UNSET if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


TOOLS = (
    SurfaceTool(
        name="list_connections",
        title="List Connections",
        description="List the saved database connections that you may use.",
        args=Listing,
        run=_list_connections,
        output=Connections,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="connect",
        title="Connect",
        description="Open a database connection. Other tools also open it when they need it.",
        args=OnConnection,
        run=_connect,
        output=Connected,
        annotations=hints(reads=False, open_world=True),
    ),
    SurfaceTool(
        name="disconnect",
        title="Disconnect",
        description="Close a database connection.",
        args=OnConnection,
        run=_disconnect,
        output=Disconnected,
        scope=Scope.READ_WRITE,
        annotations=hints(reads=False, open_world=True),
    ),
    SurfaceTool(
        name="get_connection_status",
        title="Connection Status",
        description="Tell whether a connection is open, since when, and what it is connected to.",
        args=OnConnection,
        run=_status,
        output=ConnectionStatus,
        annotations=hints(reads=True),
    ),
)
