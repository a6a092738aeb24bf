"""Windows and tabs of the workspace, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from tidegate.store.records import MAX_TABS, TabEntry, WindowEntry
from tidegate.store.sqlite.connection import StateConnection

_TAB = (
    'SELECT tabs.id, window_id, source_id, kind, title, is_active, tabs.focused_at, "table",'
    ' "database", "schema", seen_at FROM tabs JOIN windows ON windows.id = window_id'
)


class SqliteWindowStore:
    """`api.WindowStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def open_window(self, source_id: str, title: str, now: float) -> WindowEntry:
        with self._file.changing() as connection:
            return _window(connection, source_id, title, now)

    def open_table(
        self, source_id: str, title: str, database: str, schema: str, table: str, now: float
    ) -> TabEntry:
        with self._file.changing() as connection:
            found = connection.execute(
                f"{_TAB} WHERE source_id = ? AND kind = 'table' AND \"table\" = ?"
                ' AND "database" = ? AND "schema" = ?',
                (source_id, table, database, schema),
            ).fetchone()
            if found is None:
                window = _window(connection, source_id, title, now)
                tab_id = _add_tab(
                    connection, window.id, ("table", table, table, database, schema), now
                )
            else:
                tab_id = found[0]
            _focus(connection, tab_id, now)
            return _tab(connection, tab_id)

    def focus(self, tab_id: str, source_ids: Iterable[str], now: float) -> TabEntry | None:
        with self._file.changing() as connection:
            row = connection.execute(f"{_TAB} WHERE tabs.id = ?", (tab_id,)).fetchone()
            if row is None or row[2] not in set(source_ids):
                return None
            _focus(connection, tab_id, now)
            return _tab(connection, tab_id)

    def tabs(self, source_ids: Iterable[str], limit: int) -> list[TabEntry]:
        with self._file.reading() as connection:
            rows = connection.execute(
                f"{_TAB} WHERE source_id IN (SELECT value FROM json_each(?))"
                " ORDER BY tabs.focused_at DESC, serial DESC LIMIT ?",
                (msgspec.json.encode(list(source_ids)).decode(), limit),
            )
            return [_entry(row) for row in rows]

    def close_tab(self, tab_id: str) -> bool:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM tabs WHERE id = ?", (tab_id,))
            closed = connection.changes() > 0
            _tidy(connection)
            return closed

    def show(self, window_id: str, now: float) -> None:
        with self._file.changing() as connection:
            connection.execute("UPDATE windows SET seen_at = ? WHERE id = ?", (now, window_id))


def _window(connection: apsw.Connection, source_id: str, title: str, now: float) -> WindowEntry:
    row = connection.execute(
        "SELECT id, source_id, seen_at FROM windows WHERE source_id = ?"
        " ORDER BY focused_at DESC LIMIT 1",
        (source_id,),
    ).fetchone()
    if row is None:
        window = WindowEntry(str(uuid.uuid4()), source_id)
        connection.execute(
            "INSERT INTO windows VALUES (?, ?, ?, ?, NULL)", (window.id, source_id, now, now)
        )
        tab_id = _add_tab(connection, window.id, ("query", title, None, None, None), now)
        _focus(connection, tab_id, now)
    else:
        window = WindowEntry(row[0], row[1], row[2])
        connection.execute("UPDATE windows SET focused_at = ? WHERE id = ?", (now, window.id))
    return window


def _add_tab(
    connection: apsw.Connection, window_id: str, shown: tuple[Any, ...], now: float
) -> str:
    tab_id = str(uuid.uuid4())
    connection.execute(
        'INSERT INTO tabs (id, window_id, kind, title, "table", "database", "schema", is_active,'
        " focused_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
        (tab_id, window_id, *shown, now),
    )
    connection.execute(
        "DELETE FROM tabs WHERE serial IN"
        " (SELECT serial FROM tabs ORDER BY focused_at DESC, serial DESC LIMIT -1 OFFSET ?)",
        (MAX_TABS,),
    )
    _tidy(connection)
    return tab_id


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


def _tab(connection: apsw.Connection, tab_id: str) -> TabEntry:
    (row,) = connection.execute(f"{_TAB} WHERE tabs.id = ?", (tab_id,))
    return _entry(row)


def _entry(row: tuple[Any, ...]) -> TabEntry:
    fields = dict(zip(TabEntry.__struct_fields__, row, strict=True))
    return msgspec.convert(fields, TabEntry, strict=False)
