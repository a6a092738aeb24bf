"""`open_connection_window`, `open_table_tab`, `focus_query_tab` and `list_recent_tabs`.

They work on the workspace (`tidegate.workspace`). `is_delivered` shows whether a page shows the
window or tab at the moment.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect
from tidegate.products.workbench.surface.calls import (
    OnConnection,
    TableName,
    answer,
    catalog_of,
    clamp,
    hints,
    ids_of,
    table_of,
)
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext
from tidegate.workspace.requests import FocusTab, ListTabs, OpenTable, OpenWindow, Window
from tidegate.workspace.requests import Tab as OpenTab
from tidegate.workspace.requests import Tabs as OpenTabs

MOST = 500


class OnTable(OnConnection, frozen=True, kw_only=True):
    table_name: TableName
    database_name: Annotated[str, Meta(description="Its database; the current one if left out")] | (
        None
    ) = None
    schema_name: Annotated[str, Meta(description="Its schema; the current one if left out")] | (
        None
    ) = None


class OfTab(msgspec.Struct, frozen=True):
    tab_id: Annotated[str, Meta(description="Id of a tab, from list_recent_tabs")]


class HowMany(msgspec.Struct, frozen=True):
    limit: Annotated[int, Meta(description="Tabs to return, 1 to 500")] = 20


class OpenedWindow(msgspec.Struct, frozen=True):
    status: str
    connection_id: str
    window_id: str
    is_delivered: bool


class OpenedTab(msgspec.Struct, frozen=True):
    status: str
    connection_id: str
    table_name: str
    window_id: str
    tab_id: str
    is_delivered: bool


class FocusedTab(msgspec.Struct, frozen=True):
    status: str
    tab_id: str
    window_id: str
    connection_id: str
    is_delivered: bool


class TabLine(msgspec.Struct, frozen=True):
    tab_id: str
    connection_id: str
    connection_name: str
    tab_type: str
    display_title: str
    is_active: bool
    table_name: str | UnsetType = UNSET
    database_name: str | UnsetType = UNSET
    schema_name: str | UnsetType = UNSET
    window_id: str | UnsetType = UNSET


class TabLines(msgspec.Struct, frozen=True):
    tabs: tuple[TabLine, ...]


async def _open_window(context: ToolContext, args: OnConnection) -> ToolResult:
    await context.handle(Connect(), args.source, ConnectionState)
    window = await context.handle(OpenWindow(), args.source, Window)
    return answer(OpenedWindow("opened", args.source, window.id, window.is_delivered))


async def _open_table(context: ToolContext, args: OnTable) -> ToolResult:
    catalog, _ = await catalog_of(context, args.source, args.database_name)
    table = await table_of(
        context, args.source, args.table_name, args.schema_name, args.database_name
    )
    request = OpenTable(table.name, catalog.database, table.schema)
    tab = await context.handle(request, args.source, OpenTab)
    return answer(
        OpenedTab("opened", args.source, table.name, tab.window_id, tab.id, tab.is_delivered)
    )


async def _focus(context: ToolContext, args: OfTab) -> ToolResult:
    tab = await context.handle(FocusTab(args.tab_id), None, OpenTab)
    ids = await ids_of(context, (tab.source,))
    return answer(FocusedTab("focused", tab.id, tab.window_id, ids[tab.source], tab.is_delivered))


async def _list(context: ToolContext, args: HowMany) -> ToolResult:
    request = ListTabs(clamp(args.limit, MOST))
    tabs = (await context.handle(request, None, OpenTabs)).tabs
    ids = await ids_of(context, [tab.source for tab in tabs])
    return answer(TabLines(tuple(_line(tab, ids[tab.source]) for tab in tabs if tab.source in ids)))


def _line(tab: OpenTab, connection_id: str) -> TabLine:
    return TabLine(
        tab_id=tab.id,
        connection_id=connection_id,
        connection_name=tab.source,
        tab_type=tab.kind,
        display_title=tab.title,
        is_active=tab.is_active,
        table_name=tab.table or UNSET,
        database_name=tab.database or UNSET,
        schema_name=tab.schema or UNSET,
        window_id=tab.window_id,
    )


TOOLS = (
    SurfaceTool(
        name="open_connection_window",
        title="Open Connection Window",
        description="Open a connection in a window of the workspace, or bring its window to front.",
        args=OnConnection,
        run=_open_window,
        output=OpenedWindow,
        annotations=hints(reads=False),
    ),
    SurfaceTool(
        name="open_table_tab",
        title="Open Table Tab",
        description="Open a table in a tab of the workspace; an open one is brought to front.",
        args=OnTable,
        run=_open_table,
        output=OpenedTab,
        annotations=hints(reads=False),
    ),
    SurfaceTool(
        name="focus_query_tab",
        title="Focus Query Tab",
        description="Bring an open tab of the workspace to front.",
        args=OfTab,
        run=_focus,
        output=FocusedTab,
        annotations=hints(reads=False),
    ),
    SurfaceTool(
        name="list_recent_tabs",
        title="List Recent Tabs",
        description="List the open tabs of the workspace, the one last in front first.",
        args=HowMany,
        run=_list,
        output=TabLines,
        annotations=hints(reads=True),
    ),
)
