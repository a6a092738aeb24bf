"""`search_query_history`: statements that were run on connections the caller may see."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.model.replies import HistoryEntry, HistoryFound
from tidegate.model.requests import SearchHistory
from tidegate.products.workbench.surface.calls import (
    ConnectionId,
    answer,
    clamp,
    hints,
    ids_of,
    uuid_of,
)
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

MOST = 500


class HistorySearch(msgspec.Struct, frozen=True):
    query: Annotated[str, Meta(description="Words to find; empty for all")]
    connection_id: ConnectionId | None = None
    limit: Annotated[int, Meta(description="Entries to return, 1 to 500")] = 50
    since: Annotated[float, Meta(description="Unix seconds, inclusive")] | None = None
    until: Annotated[float, Meta(description="Unix seconds, inclusive")] | None = None


class HistoryLine(msgspec.Struct, frozen=True):
    """A statement that was run. `executed_at` is in Unix seconds."""

    id: str
    connection_id: str
    database_name: str
    query: str
    executed_at: float
    execution_time_ms: int
    row_count: int
    was_successful: bool
    error_message: str | UnsetType = UNSET


class HistoryLines(msgspec.Struct, frozen=True):
    entries: tuple[HistoryLine, ...]


async def found(
    context: ToolContext, request: SearchHistory, connection_id: str | None
) -> HistoryLines:
    """The entries in the document's shape; those of a connection that is gone are left out."""
    history = await context.handle(request, connection_id, HistoryFound)
    ids = await ids_of(context, [entry.source for entry in history.entries])
    return HistoryLines(
        tuple(_line(entry, ids[entry.source]) for entry in history.entries if entry.source in ids)
    )


def _line(entry: HistoryEntry, connection_id: str) -> HistoryLine:
    return HistoryLine(
        id=str(entry.id),
        connection_id=connection_id,
        database_name=entry.database,
        query=entry.text,
        executed_at=entry.at,
        execution_time_ms=round(entry.elapsed_ms),
        row_count=entry.row_count,
        was_successful=entry.success,
        error_message=entry.error or "The statement failed" if not entry.success else UNSET,
    )


async def _search(context: ToolContext, args: HistorySearch) -> ToolResult:
    if args.since is not None and args.until is not None and args.since > args.until:
        raise wrong_argument("since", "value", "must not be after until")
    connection = None
    if args.connection_id is not None:
        connection = uuid_of(args.connection_id, "connection_id")
    limit = clamp(args.limit, MOST)
    request = SearchHistory(args.query, args.since, args.until, limit)
    return answer(await found(context, request, connection))


TOOLS = (
    SurfaceTool(
        name="search_query_history",
        title="Search Query History",
        description="Find statements that were run, by words, connection and time.",
        args=HistorySearch,
        run=_search,
        output=HistoryLines,
        annotations=hints(reads=True),
    ),
)
