"""Windows and tabs of the workspace, in PostgreSQL. One transaction at a time changes them, so
events are numbered in order of commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from tidegate.errors import Code, TidegateError
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import (
    MAX_CLOSED_TABS,
    MAX_TABS,
    MOST_TAB_EVENTS,
    SHOWN_ONCE,
    NewTab,
    TabAction,
    TabEntry,
    TabEvent,
    WindowEntry,
    check_room_for_tabs,
)

_TABS = Rows(TabEntry)
_JOINED = "tidegate.tabs JOIN tidegate.windows ON windows.id = window_id"
_TAB = (
    "SELECT tabs.id, window_id, source_id, kind, title, is_active, tabs.focused_at,"
    ' "table", database, schema, window_pages.seen_at, windows.owner, text, position,'
    f" opened_by, tabs.opened_at, version, chart FROM {_JOINED}"
    " LEFT JOIN tidegate.window_pages ON window_pages.owner = windows.owner"
)
_CLOSED = (
    'SELECT id, window_id, source_id, kind, title, false, focused_at, "table", database, schema,'
    " NULL::float8, owner, text, position, opened_by, opened_at, version, chart"
    " FROM tidegate.closed_tabs"
)
_SAME = (
    " WHERE windows.owner = %s AND source_id = %s AND kind = %s"
    ' AND "table" IS NOT DISTINCT FROM %s AND database IS NOT DISTINCT FROM %s'
    " AND schema IS NOT DISTINCT FROM %s"
)
_LISTED = "source_id = ANY(%s::text[])"


class PostgresWindowStore:
    """`api.WindowStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_window(
        self, owner: str, source_id: str, title: str, now: float, by: str = ""
    ) -> WindowEntry:
        with self._database.changing("windows") as connection:
            window = _window(connection, owner, source_id, now)
            if not _has_tabs(connection, window.id):
                tab_id = _add_tab(connection, window, NewTab("query", title), now, by)
                _focus(connection, tab_id, now)
                _note(connection, owner, tab_id, "opened", by)
            else:
                row = connection.row(
                    "SELECT id FROM tidegate.tabs WHERE window_id = %s AND is_active", (window.id,)
                )
                _note(connection, owner, row[0] if row else "", "focused", by)
            return window

    def open_tab(
        self, owner: str, source_id: str, tab: NewTab, now: float, by: str = ""
    ) -> TabEntry:
        with self._database.changing("windows") as connection:
            found = None
            if tab.kind in SHOWN_ONCE:
                same = (owner, source_id, tab.kind, tab.table, tab.database, tab.schema)
                found = connection.row(_TAB + _SAME, same)
            if found is None:
                window = _window(connection, owner, source_id, now)
                if tab.first_title and not _has_tabs(connection, window.id):
                    first = NewTab("query", tab.first_title)
                    _focus(connection, _add_tab(connection, window, first, now, by), now)
                tab_id = _add_tab(connection, window, tab, now, by)
                _check_room(connection, owner)
            else:
                tab_id = found[0]
            _focus(connection, tab_id, now)
            _note(connection, owner, tab_id, "opened" if found is None else "focused", by)
            return _tab(connection, tab_id)

    def focus(
        self, owner: str, tab_id: str, source_ids: Iterable[str], now: float, by: str = ""
    ) -> TabEntry | None:
        with self._database.changing("windows") as connection:
            row = connection.row(
                f"{_TAB} WHERE tabs.id = %s AND windows.owner = %s", (tab_id, owner)
            )
            if row is None or row[2] not in set(source_ids):
                return None
            _focus(connection, tab_id, now)
            _note(connection, owner, tab_id, "focused", by)
            return _tab(connection, tab_id)

    def write(
        self,
        owner: str,
        tab_id: str,
        version: int,
        *,
        text: str | None = None,
        title: str | None = None,
        position: float | None = None,
        chart: str | None = None,
    ) -> bool:
        with self._database.changing("windows") as connection:
            written = connection.change(
                "UPDATE tidegate.tabs SET text = coalesce(%s::text, text),"
                " title = coalesce(%s::text, title),"
                " position = coalesce(%s::float8, position), chart = coalesce(%s::text, chart),"
                " version = version + 1 WHERE id = %s AND version = %s"
                " AND window_id IN (SELECT id FROM tidegate.windows WHERE owner = %s)",
                (text, title, position, chart, tab_id, version, owner),
            )
            if written:
                if text:
                    _check_room(connection, owner)
                _note(connection, owner, tab_id, "changed", "")
            return written > 0

    def find(self, owner: str, tab_id: str) -> TabEntry | None:
        with self._database.reading() as connection:
            row = connection.row(
                f"{_TAB} WHERE tabs.id = %s AND windows.owner = %s", (tab_id, owner)
            )
            return None if row is None else _TABS.record(row)

    def tabs(self, owner: str, source_ids: Iterable[str], limit: int) -> list[TabEntry]:
        with self._database.reading() as connection:
            rows = connection.ask(
                f"{_TAB} WHERE windows.owner = %s AND {_LISTED}"
                " ORDER BY tabs.focused_at DESC, serial DESC LIMIT %s",
                (owner, list(source_ids), limit),
            )
            return _TABS.records(rows)

    def close_tab(self, owner: str, tab_id: str, by: str = "") -> bool:
        with self._database.changing("windows") as connection:
            return _close(connection, owner, tab_id, by)

    def reopen(self, owner: str, source_ids: Iterable[str], now: float) -> TabEntry | None:
        with self._database.changing("windows") as connection:
            row = connection.row(
                f"{_CLOSED} WHERE owner = %s AND {_LISTED} ORDER BY serial DESC LIMIT 1",
                (owner, list(source_ids)),
            )
            if row is None:
                return None
            closed = _TABS.record(row)
            connection.ask("DELETE FROM tidegate.closed_tabs WHERE id = %s", (closed.id,))
            same = (owner, closed.source_id, closed.kind)
            same += (closed.table, closed.database, closed.schema)
            there = connection.row(_TAB + _SAME, same)
            if closed.kind in SHOWN_ONCE and there is not None:
                tab_id = str(there[0])
            else:
                window = _window(connection, owner, closed.source_id, now)
                tab_id = _restore(connection, window, closed)
                _check_room(connection, owner)
            _focus(connection, tab_id, now)
            _note(connection, owner, tab_id, "opened", "")
            return _tab(connection, tab_id)

    def show(self, owners: Iterable[str], now: float) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "INSERT INTO tidegate.window_pages"
                " SELECT owner, %s FROM unnest(%s::text[]) AS given (owner) ORDER BY owner"
                " ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at",
                (now, sorted(set(owners))),
            )

    def seen_at(self, owner: str) -> float | None:
        with self._database.reading() as connection:
            return _seen_at(connection, owner)

    def events(self, after: int) -> list[TabEvent]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT n, action, by, owner, tab_id FROM tidegate.tab_events"
                " WHERE n > %s ORDER BY n",
                (after,),
            ).fetchall()
            return [
                TabEvent(n, action, by, owner, _kept(connection, tab_id, action))
                for n, action, by, owner, tab_id in rows
            ]

    def last_event(self) -> int:
        with self._database.reading() as connection:
            return connection.number("SELECT max(n) FROM tidegate.tab_events")


def _window(connection: StateConnection, owner: str, source_id: str, now: float) -> WindowEntry:
    """The owner's window of a source, made if there is none: then it is still without a tab."""
    seen_at = _seen_at(connection, owner)
    row = connection.row(
        "SELECT id FROM tidegate.windows WHERE owner = %s AND source_id = %s"
        " ORDER BY focused_at DESC LIMIT 1",
        (owner, source_id),
    )
    if row is None:
        window = WindowEntry(str(uuid.uuid4()), source_id, owner, seen_at)
        connection.ask(
            "INSERT INTO tidegate.windows (id, source_id, opened_at, focused_at, owner)"
            " VALUES (%s, %s, %s, %s, %s)",
            (window.id, source_id, now, now, owner),
        )
        return window
    connection.ask("UPDATE tidegate.windows SET focused_at = %s WHERE id = %s", (now, row[0]))
    return WindowEntry(row[0], source_id, owner, seen_at)


def _seen_at(connection: StateConnection, owner: str) -> float | None:
    row = connection.row("SELECT seen_at FROM tidegate.window_pages WHERE owner = %s", (owner,))
    return None if row is None else row[0]


def _has_tabs(connection: StateConnection, window_id: str) -> bool:
    text = "SELECT 1 FROM tidegate.tabs WHERE window_id = %s LIMIT 1"
    return connection.row(text, (window_id,)) is not None


def _add_tab(
    connection: StateConnection, window: WindowEntry, tab: NewTab, now: float, by: str
) -> str:
    tab_id = str(uuid.uuid4())
    connection.ask(
        'INSERT INTO tidegate.tabs (id, window_id, kind, title, "table", database, schema,'
        " is_active, focused_at, text, position, opened_by, opened_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, false, %s, %s,"
        " (SELECT coalesce(max(position), 0) + 1 FROM tidegate.tabs), %s, %s)",
        (
            *(tab_id, window.id, tab.kind, tab.title, tab.table, tab.database, tab.schema),
            *(now, tab.text, by, now),
        ),
    )
    _close_oldest(connection, window.owner)
    return tab_id


def _check_room(connection: StateConnection, owner: str) -> None:
    """Raises: TidegateError LIMIT_BYTES if the owner's tabs hold more text than they may."""
    size = connection.number(
        f"SELECT sum(octet_length(text)) FROM {_JOINED} WHERE owner = %s", (owner,)
    )
    check_room_for_tabs(size)


def _close_oldest(connection: StateConnection, owner: str) -> None:
    rows = connection.ask(
        f"SELECT tabs.id FROM {_JOINED} WHERE owner = %s"
        " ORDER BY tabs.focused_at DESC, serial DESC OFFSET %s",
        (owner, MAX_TABS),
    )
    for (old,) in rows.fetchall():
        _close(connection, owner, old, "")


def _restore(connection: StateConnection, window: WindowEntry, tab: TabEntry) -> str:
    connection.ask(
        'INSERT INTO tidegate.tabs (id, window_id, kind, title, "table", database, schema,'
        " is_active, focused_at, text, position, opened_by, opened_at, version, chart)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, false, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(tab.id, window.id, tab.kind, tab.title, tab.table, tab.database, tab.schema),
            *(tab.focused_at, tab.text, tab.position, tab.opened_by, tab.opened_at),
            *(tab.version + 1, tab.chart),
        ),
    )
    _close_oldest(connection, window.owner)
    return tab.id


def _close(connection: StateConnection, owner: str, tab_id: str, by: str) -> bool:
    columns = '"table", database, schema, text, position, opened_by'
    closed = connection.change(
        "INSERT INTO tidegate.closed_tabs (id, owner, source_id, window_id, kind, title,"
        f" {columns}, opened_at, focused_at, version, chart)"
        f" SELECT tabs.id, owner, source_id, window_id, kind, title, {columns}, tabs.opened_at,"
        f" tabs.focused_at, version, chart FROM {_JOINED} WHERE tabs.id = %s AND owner = %s",
        (tab_id, owner),
    )
    if not closed:
        return False
    connection.ask("DELETE FROM tidegate.tabs WHERE id = %s", (tab_id,))
    connection.ask(
        "DELETE FROM tidegate.closed_tabs WHERE owner = %(owner)s AND serial NOT IN"
        " (SELECT serial FROM tidegate.closed_tabs WHERE owner = %(owner)s"
        " ORDER BY serial DESC LIMIT %(most)s)",
        {"owner": owner, "most": MAX_CLOSED_TABS},
    )
    connection.ask(
        "DELETE FROM tidegate.staged_edits WHERE tab_id NOT IN"
        " (SELECT id FROM tidegate.tabs UNION ALL SELECT id FROM tidegate.closed_tabs)"
    )
    _note(connection, owner, tab_id, "closed", by)
    _tidy(connection)
    return True


def _focus(connection: StateConnection, tab_id: str, now: float) -> None:
    window = "(SELECT window_id FROM tidegate.tabs WHERE id = %(tab)s)"
    values = {"tab": tab_id, "now": now}
    connection.ask(
        f"UPDATE tidegate.tabs SET is_active = false WHERE window_id = {window} AND is_active",
        values,
    )
    connection.ask(
        "UPDATE tidegate.tabs SET is_active = true, focused_at = %(now)s WHERE id = %(tab)s",
        values,
    )
    connection.ask(f"UPDATE tidegate.windows SET focused_at = %(now)s WHERE id = {window}", values)


def _tidy(connection: StateConnection) -> None:
    """Close windows without tabs, and give every other window an active tab."""
    connection.ask(
        "DELETE FROM tidegate.windows WHERE id NOT IN (SELECT window_id FROM tidegate.tabs)"
    )
    connection.ask(
        "UPDATE tidegate.tabs SET is_active = true WHERE serial IN (SELECT max(serial)"
        " FROM tidegate.tabs GROUP BY window_id HAVING NOT bool_or(is_active))"
    )


def _note(connection: StateConnection, owner: str, tab_id: str, action: TabAction, by: str) -> None:
    n = connection.number(
        "INSERT INTO tidegate.tab_events (owner, tab_id, action, by) VALUES (%s, %s, %s, %s)"
        " RETURNING n",
        (owner, tab_id, action, by),
    )
    connection.ask("DELETE FROM tidegate.tab_events WHERE n <= %s", (n - MOST_TAB_EVENTS,))


def _kept(connection: StateConnection, tab_id: str, action: TabAction) -> TabEntry | None:
    """The tab, if it is still as an event left it: open, or closed."""
    text = f"{_CLOSED} WHERE id = %s" if action == "closed" else f"{_TAB} WHERE tabs.id = %s"
    row = connection.row(text, (tab_id,))
    return None if row is None else _TABS.record(row)


def _tab(connection: StateConnection, tab_id: str) -> TabEntry:
    row = connection.row(f"{_TAB} WHERE tabs.id = %s", (tab_id,))
    if row is None:
        raise TidegateError(Code.STATE_FAILED, "A tab that was opened is not there.")
    return _TABS.record(row)
