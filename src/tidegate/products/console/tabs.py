"""The tabs of the Data page: what people open, write and close, and what agents open for them.

They are those of the workspace (`tidegate.workspace`), which the workbench's tools work on as well.
What any process does to them reaches the open pages of their owner by the live stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tidegate.charts.spec import written_chart
from tidegate.errors import Code
from tidegate.identity.operators import SignedIn
from tidegate.model.sources import Source
from tidegate.policy.verdict import is_visible
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.sign_in import actor_of
from tidegate.store.api import WindowStore
from tidegate.store.calls import change_state, read_state
from tidegate.store.records import MAX_TABS, TabEvent
from tidegate.workspace.requests import (
    ClosedTab,
    CloseTab,
    FocusTab,
    ListTabs,
    OpenQuery,
    OpenTable,
    OpenView,
    ReopenTab,
    Tab,
    Tabs,
    WriteTab,
    WrittenTab,
)
from tidegate.workspace.workspace import ATTACHED_S, MOST_TEXT, tab_of

SHOW_S = 5.0
"""How often it is saved that a page is open."""
MOST_TITLE = 200
_TITLES = {
    "createTable": "Form of {name}",
    "erDiagram": "Diagram of {name}",
    "serverDashboard": "Server of {name}",
    "terminal": "Terminal",
}
"""By the kind of a view."""


class NewTab(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `tabs`: what to open."""

    kind: Literal["query", "table", "createTable", "erDiagram", "serverDashboard", "terminal"]
    table: str = ""
    text: Annotated[str, Meta(max_length=MOST_TEXT)] = ""
    title: Annotated[str, Meta(max_length=MOST_TITLE)] = ""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `tabs/ID`: what was written over that version."""

    version: int
    text: Annotated[str, Meta(max_length=MOST_TEXT)] | None = None
    title: Annotated[str, Meta(max_length=MOST_TITLE)] | None = None
    position: float | None = None
    chart: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    """The chart of its results, None for none."""


class DataTabs:
    """The tabs of the operators. `sources` gives all sources, in any thread."""

    def __init__(
        self,
        calls: DataCalls,
        store: WindowStore,
        feed: LiveFeed,
        sources: Callable[[], Sequence[Source]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls = calls
        self._store = store
        self._feed = feed
        self._sources = sources
        self._clock = clock
        self._seen: int | None = None
        self._shown: set[str] = set()
        self._shown_at = 0.0
        feed.follow(self._look)

    async def list(self, caller: Caller) -> dict[str, Any]:
        """The operator's windows and tabs."""
        found, _ = await self._calls.ask(caller, ListTabs(MAX_TABS), None, Tabs)
        windows = {tab.window_id: tab.source for tab in found.tabs}
        tabs = sorted(found.tabs, key=lambda tab: (tab.position, tab.opened_at))
        return {
            "windows": [{"id": id, "source": source} for id, source in windows.items()],
            "tabs": [tab_fields(tab) for tab in tabs],
        }

    async def open(self, body: NewTab, caller: Caller) -> dict[str, Any]:
        """Open a tab. A table must be there; without a schema it is one of the current schema."""
        if body.kind == "query":
            query = OpenQuery(body.title, body.text, body.database, body.schema)
            tab, _ = await self._calls.ask(caller, query, body.source, Tab)
            return tab_fields(tab)
        if body.kind != "table":
            return tab_fields(await self._open_view(body, caller))
        table, catalog = await self._calls.table(caller, body, body.table)
        request = OpenTable(table.name, catalog.database, table.schema)
        tab, _ = await self._calls.ask(caller, request, body.source, Tab)
        return tab_fields(tab)

    async def _open_view(self, body: NewTab, caller: Caller) -> Tab:
        kind = body.kind
        if kind == "query" or kind == "table":
            raise TypeError(kind)
        table, database, schema = None, body.database, body.schema
        if kind in ("createTable", "erDiagram"):
            if body.table:
                found, catalog = await self._calls.table(caller, body, body.table)
                table, schema = found.name, found.schema
            else:
                catalog = await self._calls.catalog(caller, body)
                schema = catalog.default_schema if schema is None else schema
            database = catalog.database
        title = body.title or _TITLES[kind].format(name=table or schema or body.source)
        if kind == "createTable" and not table:
            title = body.title or "New table"
        request = OpenView(kind, title, table, database, schema)
        tab, _ = await self._calls.ask(caller, request, body.source, Tab)
        return tab

    async def write(self, id: str, body: Written, caller: Caller) -> tuple[int, dict[str, Any]]:
        """Keep what was written: the status, and the tab as it is now."""
        chart = None if isinstance(body.chart, msgspec.UnsetType) else written_chart(body.chart)
        request = WriteTab(id, body.version, body.text, body.title, body.position, chart)
        found, _ = await self._calls.ask(caller, request, None, WrittenTab)
        if found.written:
            return 200, tab_fields(found.tab)
        return 409, {
            "error": Code.TAB_CHANGED.value,
            "message": "Another page has written in this tab since.",
            "tab": tab_fields(found.tab),
        }

    async def focus(self, id: str, caller: Caller) -> dict[str, Any]:
        """Bring a tab to the front."""
        tab, _ = await self._calls.ask(caller, FocusTab(id), None, Tab)
        return tab_fields(tab)

    async def close(self, id: str, caller: Caller) -> None:
        """Close a tab."""
        await self._calls.ask(caller, CloseTab(id), None, ClosedTab)

    async def reopen(self, caller: Caller) -> dict[str, Any]:
        """Open the tab again that was closed last."""
        tab, _ = await self._calls.ask(caller, ReopenTab(), None, Tab)
        return tab_fields(tab)

    # What other pages and agents do

    async def _look(self, readers: Sequence[SignedIn]) -> None:
        """Save whose pages are open, and send what has happened to tabs."""
        await self._show({each.operator.name for each in readers})
        if not readers:
            self._seen = None
            return
        changed = self._feed.tabs
        if self._seen is None:
            self._seen = await read_state(self._store.last_event)
            return
        if not changed.may_differ():
            return
        events = await read_state(self._store.events, self._seen)
        changed.note_read()
        if not events:
            return
        self._seen = events[-1].n
        sources = {each.id: each for each in await read_state(self._sources)}
        for event in events:
            self._publish(event, sources)

    def _publish(self, event: TabEvent, sources: dict[str, Source]) -> None:
        tab = event.tab
        source = None if tab is None else sources.get(tab.source_id)
        if tab is None or source is None:
            return
        data = {
            "tab": tab_fields(tab_of(tab, source.name, is_delivered=True)),
            "action": event.action,
            "by": event.by,
        }

        def data_of(signed_in: SignedIn) -> Any:
            own = signed_in.operator.name == event.owner
            seen = own and is_visible(actor_of(signed_in, source.name), source)
            return data if seen else None

        self._feed.publish("tab", data_of)

    async def _show(self, owners: set[str]) -> None:
        now = self._clock()
        gone, self._shown = self._shown - owners, self._shown & owners
        if gone:
            await change_state(self._store.show, gone, now - ATTACHED_S)
        if owners - self._shown or (owners and now - self._shown_at >= SHOW_S):
            await change_state(self._store.show, owners, now)
            self._shown, self._shown_at = owners, now


def tab_fields(tab: Tab) -> dict[str, Any]:
    """A tab as JSON."""
    return {
        "id": tab.id,
        "window": tab.window_id,
        "source": tab.source,
        "kind": tab.kind,
        "title": tab.title,
        "database": tab.database,
        "schema": tab.schema,
        "table": tab.table,
        "text": tab.text,
        "position": tab.position,
        "opened_by": tab.opened_by,
        "opened_at": tab.opened_at,
        "focused_at": tab.focused_at,
        "is_active": tab.is_active,
        "version": tab.version,
        "chart": msgspec.json.decode(tab.chart) if tab.chart else None,
    }
