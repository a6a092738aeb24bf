"""The workspace: the windows and tabs that callers open for a person to look at, one window for
each source. They are kept whether or not a page shows them; none does yet.

It answers what the gate has let through, for the sources that the gate says its caller may see.
Opening and focusing change no data.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidegate.errors import Code, TidegateError, table_refused
from tidegate.model.actors import Actor
from tidegate.model.identity_cache import IdentityCache
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.policy.data_rules import may_use_table
from tidegate.store.api import WindowStore
from tidegate.store.records import MAX_TABS, TabEntry
from tidegate.workspace.requests import FocusTab, ListTabs, OpenTable, OpenWindow, Tab, Tabs, Window

ATTACHED_S = 15.0
"""A page that shows a window says so more often than this."""

_FIRST_TITLE = "Query"


class Workspace:
    """The windows and tabs in `file`. Every method is a `gateway.Keeper`."""

    def __init__(self, file: WindowStore, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._by_id = IdentityCache(_by_id)

    async def open_window(self, call: Call, sources: tuple[Source, ...]) -> Window:
        """Open the source's window, or bring the one there is to the front."""
        assert isinstance(call.request, OpenWindow)  # noqa: S101 - by its place in the table
        (source,) = sources
        now = self._clock()
        window = await asyncio.to_thread(self._file.open_window, source.id, _FIRST_TITLE, now)
        return Window(window.id, source.name, self._is_delivered(window.seen_at))

    async def open_table(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Open a tab on a table; the same table again is the same tab."""
        request = call.request
        assert isinstance(request, OpenTable)  # noqa: S101 - by its place in the table
        (source,) = sources
        if not may_use_table(call.actor, source, request.table, request.schema, request.database):
            raise table_refused(request.table)
        entry = await asyncio.to_thread(
            self._file.open_table,
            source.id,
            _FIRST_TITLE,
            request.database or "",
            request.schema or "",
            request.table,
            self._clock(),
        )
        return self._tab(entry, source.name)

    async def focus_tab(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Bring a tab to the front. Raises: TidegateError TAB_UNKNOWN, also for a tab of a source
        that the caller may not see."""
        request = call.request
        assert isinstance(request, FocusTab)  # noqa: S101 - by its place in the table
        by_id = self._by_id.get(sources)
        if call.actor.tables is not None:
            shown = await self._shown(call.actor, sources)
            if request.tab_id not in {entry.id for entry in shown}:
                raise TidegateError(Code.TAB_UNKNOWN, "tab not found")
        entry = await asyncio.to_thread(
            self._file.focus, request.tab_id, list(by_id), self._clock()
        )
        if entry is None:
            raise TidegateError(Code.TAB_UNKNOWN, "tab not found")
        return self._tab(entry, by_id[entry.source_id].name)

    async def list_tabs(self, call: Call, sources: tuple[Source, ...]) -> Tabs:
        """The open tabs of these sources, the one last in front first."""
        request = call.request
        assert isinstance(request, ListTabs)  # noqa: S101 - by its place in the table
        by_id = self._by_id.get(sources)
        if call.actor.tables is None:
            entries = await asyncio.to_thread(self._file.tabs, list(by_id), request.limit)
        else:
            entries = (await self._shown(call.actor, sources))[: request.limit]
        return Tabs(tuple(self._tab(entry, by_id[entry.source_id].name) for entry in entries))

    async def _shown(self, actor: Actor, sources: tuple[Source, ...]) -> list[TabEntry]:
        """The tabs without those of tables that the actor may not use."""
        by_id = self._by_id.get(sources)
        entries = await asyncio.to_thread(self._file.tabs, list(by_id), MAX_TABS)
        return [
            entry
            for entry in entries
            if entry.table is None
            or may_use_table(
                actor, by_id[entry.source_id], entry.table, entry.schema, entry.database
            )
        ]

    def _tab(self, entry: TabEntry, source: str) -> Tab:
        return Tab(
            id=entry.id,
            window_id=entry.window_id,
            source=source,
            kind=entry.kind,
            title=entry.title,
            is_active=entry.is_active,
            focused_at=entry.focused_at,
            table=entry.table,
            database=entry.database or None,
            schema=entry.schema or None,
            is_delivered=self._is_delivered(entry.seen_at),
        )

    def _is_delivered(self, seen_at: float | None) -> bool:
        return seen_at is not None and self._clock() - seen_at < ATTACHED_S


def _by_id(sources: tuple[Source, ...]) -> dict[str, Source]:
    return {source.id: source for source in sources}
