"""Windows and tabs of the workspace, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

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
from tidegate.store.sqlite.connection import StateConnection
from tidegate.typed_values import convert_value

_TAB = (
    "SELECT tabs.id, window_id, source_id, kind, title, is_active, tabs.focused_at,"
    ' "table", "database", "schema", window_pages.seen_at, windows.owner, text, position,'
    " opened_by, tabs.opened_at, version, chart FROM tabs JOIN windows ON windows.id = window_id"
    " LEFT JOIN window_pages ON window_pages.owner = windows.owner"
)
_CLOSED = (
    'SELECT id, window_id, source_id, kind, title, 0, focused_at, "table", "database", "schema",'
    " NULL, owner, text, position, opened_by, opened_at, version, chart"
    " FROM closed_tabs"
)
_SAME = (
    ' WHERE windows.owner = ? AND source_id = ? AND kind = ? AND "table" IS ?'
    ' AND "database" IS ? AND "schema" IS ?'
)
_LISTED = "source_id IN (SELECT value FROM json_each(?))"


class SqliteWindowStore:
    """`api.WindowStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def open_window(
        self, owner: str, source_id: str, title: str, now: float, by: str = ""
    ) -> WindowEntry:
        with self._file.changing() as connection:
            window = _window(connection, owner, source_id, now)
            if not _has_tabs(connection, window.id):
                tab_id = _add_tab(connection, window, NewTab("query", title), now, by)
                _focus(connection, tab_id, now)
                _note(connection, owner, tab_id, "opened", by)
            else:
                (tab_id,) = connection.execute(
                    "SELECT id FROM tabs WHERE window_id = ? AND is_active", (window.id,)
                ).fetchone() or ("",)
                _note(connection, owner, tab_id, "focused", by)
            return window

    def open_tab(
        self, owner: str, source_id: str, tab: NewTab, now: float, by: str = ""
    ) -> TabEntry:
        with self._file.changing() as connection:
            found = None
            if tab.kind in SHOWN_ONCE:
                same = (owner, source_id, tab.kind, tab.table, tab.database, tab.schema)
                found = connection.execute(_TAB + _SAME, same).fetchone()
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
        with self._file.changing() as connection:
            row = connection.execute(
                f"{_TAB} WHERE tabs.id = ? AND windows.owner = ?", (tab_id, owner)
            ).fetchone()
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
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE tabs SET text = coalesce(?, text), title = coalesce(?, title),"
                " position = coalesce(?, position), chart = coalesce(?, chart),"
                " version = version + 1"
                " WHERE id = ? AND version = ?"
                " AND window_id IN (SELECT id FROM windows WHERE owner = ?)",
                (text, title, position, chart, tab_id, version, owner),
            )
            written = connection.changes() > 0
            if written:
                if text:
                    _check_room(connection, owner)
                _note(connection, owner, tab_id, "changed", "")
            return written

    def find(self, owner: str, tab_id: str) -> TabEntry | None:
        with self._file.reading() as connection:
            row = connection.execute(
                f"{_TAB} WHERE tabs.id = ? AND windows.owner = ?", (tab_id, owner)
            ).fetchone()
            return None if row is None else _entry(row)

    def tabs(self, owner: str, source_ids: Iterable[str], limit: int) -> list[TabEntry]:
        with self._file.reading() as connection:
            rows = connection.execute(
                f"{_TAB} WHERE windows.owner = ? AND {_LISTED}"
                " ORDER BY tabs.focused_at DESC, serial DESC LIMIT ?",
                (owner, _array(source_ids), limit),
            )
            return [_entry(row) for row in rows]

    def close_tab(self, owner: str, tab_id: str, by: str = "") -> bool:
        with self._file.changing() as connection:
            return _close(connection, owner, tab_id, by)

    def reopen(self, owner: str, source_ids: Iterable[str], now: float) -> TabEntry | None:
        with self._file.changing() as connection:
            row = connection.execute(
                f"{_CLOSED} WHERE owner = ? AND {_LISTED} ORDER BY serial DESC LIMIT 1",
                (owner, _array(source_ids)),
            ).fetchone()
            if row is None:
                return None
            closed = _entry(row)
            connection.execute("DELETE FROM closed_tabs WHERE id = ?", (closed.id,))
            same = (owner, closed.source_id, closed.kind)
            same += (closed.table, closed.database, closed.schema)
            there = connection.execute(_TAB + _SAME, same).fetchone()
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
        with self._file.changing() as connection:
            connection.executemany(
                "INSERT INTO window_pages VALUES (?, ?)"
                " ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at",
                [(owner, now) for owner in owners],
            )

    def seen_at(self, owner: str) -> float | None:
        with self._file.reading() as connection:
            return _seen_at(connection, owner)

    def events(self, after: int) -> list[TabEvent]:
        with self._file.reading() as connection:
            rows = list(
                connection.execute(
                    'SELECT n, action, "by", owner, tab_id FROM tab_events WHERE n > ? ORDER BY n',
                    (after,),
                )
            )
            return [
                TabEvent(n, action, by, owner, _kept(connection, tab_id, action))
                for n, action, by, owner, tab_id in rows
            ]

    def last_event(self) -> int:
        with self._file.reading() as connection:
            (row,) = connection.execute("SELECT coalesce(max(n), 0) FROM tab_events")
            return int(row[0])


def _window(connection: apsw.Connection, owner: str, source_id: str, now: float) -> WindowEntry:
    """The owner's window of a source, made if there is none: then it is still without a tab."""
    seen_at = _seen_at(connection, owner)
    row = connection.execute(
        "SELECT id FROM windows WHERE owner = ? AND source_id = ? ORDER BY focused_at DESC LIMIT 1",
        (owner, source_id),
    ).fetchone()
    if row is None:
        window = WindowEntry(str(uuid.uuid4()), source_id, owner, seen_at)
        connection.execute(
            "INSERT INTO windows (id, source_id, opened_at, focused_at, owner)"
            " VALUES (?, ?, ?, ?, ?)",
            (window.id, source_id, now, now, owner),
        )
        return window
    connection.execute("UPDATE windows SET focused_at = ? WHERE id = ?", (now, row[0]))
    return WindowEntry(row[0], source_id, owner, seen_at)


def _seen_at(connection: apsw.Connection, owner: str) -> float | None:
    row = connection.execute(
        "SELECT seen_at FROM window_pages WHERE owner = ?", (owner,)
    ).fetchone()
    return None if row is None else row[0]


def _has_tabs(connection: apsw.Connection, window_id: str) -> bool:
    row = connection.execute("SELECT 1 FROM tabs WHERE window_id = ?", (window_id,)).fetchone()
    return row is not None


def _add_tab(
    connection: apsw.Connection, window: WindowEntry, tab: NewTab, now: float, by: str
) -> str:
    tab_id = str(uuid.uuid4())
    connection.execute(
        'INSERT INTO tabs (id, window_id, kind, title, "table", "database", "schema", is_active,'
        " focused_at, text, position, opened_by, opened_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?,"
        " (SELECT coalesce(max(position), 0) + 1 FROM tabs), ?, ?)",
        (
            *(tab_id, window.id, tab.kind, tab.title, tab.table, tab.database, tab.schema),
            *(now, tab.text, by, now),
        ),
    )
    _close_oldest(connection, window.owner)
    return tab_id


def _check_room(connection: apsw.Connection, owner: str) -> None:
    """Raises: TidegateError LIMIT_BYTES if the owner's tabs hold more text than they may."""
    size: int = connection.execute(
        "SELECT coalesce(sum(octet_length(text)), 0) FROM tabs JOIN windows ON windows.id ="
        " window_id WHERE owner = ?",
        (owner,),
    ).get
    check_room_for_tabs(size)


def _close_oldest(connection: apsw.Connection, owner: str) -> None:
    rows = connection.execute(
        "SELECT tabs.id FROM tabs JOIN windows ON windows.id = window_id WHERE owner = ?"
        " ORDER BY tabs.focused_at DESC, serial DESC LIMIT -1 OFFSET ?",
        (owner, MAX_TABS),
    )
    for (old,) in list(rows):
        _close(connection, owner, old, "")


def _restore(connection: apsw.Connection, window: WindowEntry, tab: TabEntry) -> str:
    connection.execute(
        'INSERT INTO tabs (id, window_id, kind, title, "table", "database", "schema", is_active,'
        " focused_at, text, position, opened_by, opened_at, version, chart)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(tab.id, window.id, tab.kind, tab.title, tab.table, tab.database, tab.schema),
            *(tab.focused_at, tab.text, tab.position, tab.opened_by, tab.opened_at),
            *(tab.version + 1, tab.chart),
        ),
    )
    _close_oldest(connection, window.owner)
    return tab.id


def _close(connection: apsw.Connection, owner: str, tab_id: str, by: str) -> bool:
    connection.execute(
        "INSERT INTO closed_tabs"
        ' (id, owner, source_id, window_id, kind, title, "table", "database", "schema", text,'
        " position, opened_by, opened_at, focused_at, version, chart)"
        " SELECT tabs.id, owner, source_id, window_id, kind, title,"
        ' "table", "database", "schema", text, position, opened_by, tabs.opened_at,'
        " tabs.focused_at, version, chart FROM tabs JOIN windows ON windows.id = window_id"
        " WHERE tabs.id = ? AND owner = ?",
        (tab_id, owner),
    )
    if connection.changes() == 0:
        return False
    connection.execute("DELETE FROM tabs WHERE id = ?", (tab_id,))
    connection.execute(
        "DELETE FROM closed_tabs WHERE owner = ?1 AND serial NOT IN"
        " (SELECT serial FROM closed_tabs WHERE owner = ?1 ORDER BY serial DESC LIMIT ?2)",
        (owner, MAX_CLOSED_TABS),
    )
    connection.execute(
        "DELETE FROM staged_edits WHERE tab_id NOT IN"
        " (SELECT id FROM tabs UNION ALL SELECT id FROM closed_tabs)"
    )
    _note(connection, owner, tab_id, "closed", by)
    _tidy(connection)
    return True


def _focus(connection: apsw.Connection, tab_id: str, now: float) -> None:
    window = "(SELECT window_id FROM tabs WHERE id = ?)"
    connection.execute(f"UPDATE tabs SET is_active = 0 WHERE window_id = {window}", (tab_id,))
    connection.execute("UPDATE tabs SET is_active = 1, focused_at = ? WHERE id = ?", (now, tab_id))
    connection.execute(f"UPDATE windows SET focused_at = ? WHERE id = {window}", (now, tab_id))


def _tidy(connection: apsw.Connection) -> None:
    """Close windows without tabs, and give every other window an active tab."""
    connection.execute("DELETE FROM windows WHERE id NOT IN (SELECT window_id FROM tabs)")
    connection.execute(
        "UPDATE tabs SET is_active = 1 WHERE serial IN ("
        " SELECT max(serial) FROM tabs GROUP BY window_id HAVING max(is_active) = 0)"
    )


def _note(connection: apsw.Connection, owner: str, tab_id: str, action: TabAction, by: str) -> None:
    connection.execute(
        'INSERT INTO tab_events (owner, tab_id, action, "by") VALUES (?, ?, ?, ?)',
        (owner, tab_id, action, by),
    )
    connection.execute(
        "DELETE FROM tab_events WHERE n <= (SELECT max(n) FROM tab_events) - ?", (MOST_TAB_EVENTS,)
    )


def _kept(connection: apsw.Connection, tab_id: str, action: TabAction) -> TabEntry | None:
    """The tab, if it is still as an event left it: open, or closed."""
    text = f"{_CLOSED} WHERE id = ?" if action == "closed" else f"{_TAB} WHERE tabs.id = ?"
    row = connection.execute(text, (tab_id,)).fetchone()
    return None if row is None else _entry(row)


def _tab(connection: apsw.Connection, tab_id: str) -> TabEntry:
    (row,) = connection.execute(f"{_TAB} WHERE tabs.id = ?", (tab_id,))
    return _entry(row)


def _array(values: Iterable[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


def _entry(row: tuple[Any, ...]) -> TabEntry:
    fields = dict(zip(TabEntry.__struct_fields__, row, strict=True))
    return convert_value(fields, TabEntry, strict=False)
