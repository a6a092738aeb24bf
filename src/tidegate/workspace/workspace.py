"""The workspace: the windows and tabs that people work in on the Data page of the console, and that
agents open for them.

Windows belong to an operator. A caller acts on those of the operator who owns its token; of a token
without an owner they are the only operator's, and where there are several or none they belong to no
one, and no page shows them. A page that is open shows its operator what was opened within a second,
and `is_delivered` says that one is. An agent may open or focus once a second while a page shows it:
no person can follow more.

It answers what the gate has let through, for the sources that the gate says its caller may see.
Opening and focusing change no data.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from tidegate.errors import Code, TidegateError, table_refused
from tidegate.model.actors import Actor
from tidegate.model.identity_cache import IdentityCache
from tidegate.model.requests import Call, Request
from tidegate.model.sources import Source
from tidegate.policy.data_rules import may_use_table
from tidegate.store.api import WindowStore
from tidegate.store.calls import change_state, read_state
from tidegate.store.records import MAX_TABS, NewTab, TabEntry
from tidegate.workspace.requests import (
    ClosedTab,
    CloseTab,
    FocusTab,
    ListTabs,
    OpenQuery,
    OpenTable,
    OpenView,
    OpenWindow,
    ReopenTab,
    Tab,
    Tabs,
    Window,
    WriteTab,
    WrittenTab,
)

ATTACHED_S = 15.0
"""An open page reports itself more often than this."""
ACT_S = 1.0
"""The least time between two acts of one agent that an open page shows."""
MOST_TEXT = 262_144
"""Characters that a tab holds."""
_FIRST_TITLE = "Query"
_MOST_TITLES = 1_000
"""Open tabs that are checked for a title that is not taken."""
_MOST_ACTORS = 4_096
_UNKNOWN = "tab not found"

Handler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]


class Workspace:
    """The windows and tabs in `file`. `operators` gives the names of all people with an account.
    The methods that take a call are handlers of the gateway."""

    def __init__(
        self,
        file: WindowStore,
        operators: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._operators = operators
        self._clock = clock
        self._by_id = IdentityCache(_by_id)
        self._acted_at: dict[str, float] = {}

    @property
    def handlers(self) -> Mapping[type[Request], Handler]:
        """For a gateway."""
        return {
            OpenWindow: self.open_window,
            OpenTable: self.open_table,
            FocusTab: self.focus_tab,
            ListTabs: self.list_tabs,
            OpenQuery: self.open_query,
            OpenView: self.open_view,
            WriteTab: self.write_tab,
            CloseTab: self.close_tab,
            ReopenTab: self.reopen_tab,
        }

    async def open_window(self, call: Call, sources: tuple[Source, ...]) -> Window:
        """Open the source's window, or bring the one there is to the front. Raises: TidegateError
        LIMIT_RATE."""
        assert isinstance(call.request, OpenWindow)  # noqa: S101 - by its place in the table
        (source,) = sources
        owner = await self._acting_owner(call)
        window = await change_state(
            *(self._file.open_window, owner, source.id, _FIRST_TITLE, self._clock(), _by(call))
        )
        return Window(window.id, source.name, self._is_delivered(window.seen_at))

    async def open_table(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Open a tab on a table; the same table again is the same tab. Raises: TidegateError
        LIMIT_RATE."""
        request = call.request
        assert isinstance(request, OpenTable)  # noqa: S101 - by its place in the table
        (source,) = sources
        if not may_use_table(call.actor, source, request.table, request.schema, request.database):
            raise table_refused(request.table)
        owner, by = await self._acting_owner(call), _by(call)
        tab = NewTab(
            "table",
            request.table,
            request.table,
            request.database or "",
            request.schema or "",
            first_title=_FIRST_TITLE if by else "",
        )
        entry = await change_state(*(self._file.open_tab, owner, source.id, tab, self._clock(), by))
        return self._tab(entry, source.name)

    async def open_query(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Open a query tab."""
        request = call.request
        assert isinstance(request, OpenQuery)  # noqa: S101 - by its place in the table
        (source,) = sources
        _check_text(request.text)
        owner = await self._acting_owner(call)
        tab = NewTab(
            "query",
            request.title or await self._free_title(owner, source),
            None,
            request.database,
            request.schema,
            text=request.text,
        )
        entry = await change_state(
            *(self._file.open_tab, owner, source.id, tab, self._clock(), _by(call))
        )
        return self._tab(entry, source.name)

    async def open_view(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Open a tab that shows something of a source. Raises: TidegateError POLICY_TABLE for one
        about a table that the caller may not use; LIMIT_RATE."""
        request = call.request
        assert isinstance(request, OpenView)  # noqa: S101 - by its place in the table
        (source,) = sources
        table, place = request.table, (request.schema, request.database)
        if table is not None and not may_use_table(call.actor, source, table, *place):
            raise table_refused(table)
        owner = await self._acting_owner(call)
        tab = NewTab(request.view, request.title, table, request.database, request.schema)
        entry = await change_state(
            *(self._file.open_tab, owner, source.id, tab, self._clock(), _by(call))
        )
        return self._tab(entry, source.name)

    async def _free_title(self, owner: str, source: Source) -> str:
        """`Query`, or with the first number that no open tab of the source has."""
        tabs = await read_state(self._file.tabs, owner, [source.id], _MOST_TITLES)
        taken = {each.title for each in tabs}
        names = (f"{_FIRST_TITLE} {number}" for number in range(2, _MOST_TITLES + 2))
        return next(name for name in (_FIRST_TITLE, *names) if name not in taken)

    async def focus_tab(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Bring a tab to the front. Raises: TidegateError LIMIT_RATE; TAB_UNKNOWN, also for a tab
        of a source that the caller may not see, and one of another owner."""
        request = call.request
        assert isinstance(request, FocusTab)  # noqa: S101 - by its place in the table
        by_id, owner = self._by_id.get(sources), await self._owner(call.actor)
        if call.actor.tables is not None:
            shown = await self._shown(call.actor, owner, sources)
            if request.tab_id not in {entry.id for entry in shown}:
                raise TidegateError(Code.TAB_UNKNOWN, _UNKNOWN)
        await self._found(owner, request.tab_id, sources)
        await self._check_rate(call, owner)
        entry = await change_state(
            *(self._file.focus, owner, request.tab_id, list(by_id), self._clock(), _by(call))
        )
        if entry is None:
            raise TidegateError(Code.TAB_UNKNOWN, _UNKNOWN)
        return self._tab(entry, by_id[entry.source_id].name)

    async def list_tabs(self, call: Call, sources: tuple[Source, ...]) -> Tabs:
        """The open tabs of these sources, the one last in front first."""
        request = call.request
        assert isinstance(request, ListTabs)  # noqa: S101 - by its place in the table
        by_id, owner = self._by_id.get(sources), await self._owner(call.actor)
        if call.actor.tables is None:
            entries = await read_state(self._file.tabs, owner, list(by_id), request.limit)
        else:
            entries = (await self._shown(call.actor, owner, sources))[: request.limit]
        return Tabs(tuple(self._tab(entry, by_id[entry.source_id].name) for entry in entries))

    async def write_tab(self, call: Call, sources: tuple[Source, ...]) -> WrittenTab:
        """Keep what was written in a tab, unless another page has written it since. Raises:
        TidegateError TAB_UNKNOWN, ARGUMENT_INVALID, LIMIT_BYTES."""
        request = call.request
        assert isinstance(request, WriteTab)  # noqa: S101 - by its place in the table
        _check_text(request.text or "")
        owner = await self._owner(call.actor)
        await self._found(owner, request.tab_id, sources)

        def write() -> bool:
            return self._file.write(
                owner,
                request.tab_id,
                request.version,
                text=request.text,
                title=request.title,
                position=request.position,
                chart=request.chart,
            )

        written = await change_state(write)
        return WrittenTab(await self._found(owner, request.tab_id, sources), written)

    async def close_tab(self, call: Call, sources: tuple[Source, ...]) -> ClosedTab:
        """Close a tab. Raises: TidegateError TAB_UNKNOWN."""
        request = call.request
        assert isinstance(request, CloseTab)  # noqa: S101 - by its place in the table
        owner = await self._owner(call.actor)
        await self._found(owner, request.tab_id, sources)
        await change_state(self._file.close_tab, owner, request.tab_id, _by(call))
        return ClosedTab()

    async def reopen_tab(self, call: Call, sources: tuple[Source, ...]) -> Tab:
        """Open the tab again that was closed last. Raises: TidegateError TAB_UNKNOWN."""
        assert isinstance(call.request, ReopenTab)  # noqa: S101 - by its place in the table
        by_id, owner = self._by_id.get(sources), await self._owner(call.actor)
        entry = await change_state(self._file.reopen, owner, list(by_id), self._clock())
        if entry is None:
            raise TidegateError(Code.TAB_UNKNOWN, "no tab was closed")
        return self._tab(entry, by_id[entry.source_id].name)

    async def _found(self, owner: str, tab_id: str, sources: tuple[Source, ...]) -> Tab:
        by_id = self._by_id.get(sources)
        entry = await read_state(self._file.find, owner, tab_id)
        if entry is None or entry.source_id not in by_id:
            raise TidegateError(Code.TAB_UNKNOWN, _UNKNOWN)
        return self._tab(entry, by_id[entry.source_id].name)

    async def _owner(self, actor: Actor) -> str:
        """The operator whose windows a caller acts on; empty for those of no one."""
        if actor.owner:
            return actor.owner
        names = await read_state(self._operators)
        return names[0] if len(names) == 1 else ""

    async def _acting_owner(self, call: Call) -> str:
        owner = await self._owner(call.actor)
        await self._check_rate(call, owner)
        return owner

    async def _check_rate(self, call: Call, owner: str) -> None:
        """Raises: TidegateError LIMIT_RATE if an agent acts again within a second where a person
        sees it."""
        if call.actor.kind != "agent" or not owner:
            return
        if not self._is_delivered(await read_state(self._file.seen_at, owner)):
            return
        now = self._clock()
        left = self._acted_at.get(call.actor.id, 0.0) + ACT_S - now
        if 0 < left <= ACT_S:
            raise TidegateError(
                Code.LIMIT_RATE,
                "A person sees these windows: one tab can be opened or focused a second",
                hint="Wait a second, then send it again.",
                retry_after_s=left,
            )
        if len(self._acted_at) >= _MOST_ACTORS:
            self._acted_at.clear()
        self._acted_at[call.actor.id] = now

    async def _shown(self, actor: Actor, owner: str, sources: tuple[Source, ...]) -> list[TabEntry]:
        """The tabs without those of tables that the actor may not use."""
        by_id = self._by_id.get(sources)
        entries = await read_state(self._file.tabs, owner, list(by_id), MAX_TABS)
        return [
            entry
            for entry in entries
            if entry.table is None
            or may_use_table(
                actor, by_id[entry.source_id], entry.table, entry.schema, entry.database
            )
        ]

    def _tab(self, entry: TabEntry, source: str) -> Tab:
        return tab_of(entry, source, is_delivered=self._is_delivered(entry.seen_at))

    def _is_delivered(self, seen_at: float | None) -> bool:
        return seen_at is not None and self._clock() - seen_at < ATTACHED_S


def tab_of(entry: TabEntry, source: str, *, is_delivered: bool) -> Tab:
    """A kept tab, of the source of that name."""
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
        is_delivered=is_delivered,
        text=entry.text,
        position=entry.position,
        opened_by=entry.opened_by,
        opened_at=entry.opened_at,
        version=entry.version,
        chart=entry.chart,
    )


def _by(call: Call) -> str:
    """What a person reads about the opener of a tab: nothing of what it did itself at a page."""
    if call.actor.kind == "human" and call.surface == "console":
        return ""
    return call.client.partition("/")[0] or call.actor.name


def _check_text(text: str) -> None:
    if len(text) > MOST_TEXT:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"A tab holds up to {MOST_TEXT:,} characters of text"
        )


def _by_id(sources: tuple[Source, ...]) -> dict[str, Source]:
    return {source.id: source for source in sources}
