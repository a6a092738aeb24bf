"""A gate for surface tests: no policy, one SQLite file per source, and a record of every call."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from tidegate.errors import Code, GateError
from tidegate.types import (
    Browse,
    Call,
    Catalog,
    Column,
    ColumnInfo,
    Connect,
    ConnectionState,
    Counts,
    Databases,
    Ddl,
    Disconnect,
    Explain,
    ForeignKey,
    Index,
    ListSources,
    More,
    Page,
    Query,
    Reply,
    Source,
    SourceEntry,
    Status,
    Table,
    Truncation,
)

SHOP_ID = "9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1"


def sqlite_source(path: Path, name: str = "shop", id: str = SHOP_ID) -> Source:
    return Source(id=id, name=name, url=f"sqlite:///{path}", engine="sqlite", dialect="sqlite")


class SqliteGate:
    """Answers as the gateway does. `calls` keeps what came through."""

    def __init__(self, *sources: Source) -> None:
        self._by_name = {source.name: source for source in sources}
        self._by_name |= {source.id: source for source in sources}
        self._sources = sources
        self._shelf: dict[str, tuple[Source, tuple[Column, ...], list[tuple[object, ...]]]] = {}
        self._states: dict[str, ConnectionState] = {}
        self.calls: list[Call] = []

    async def handle(self, call: Call) -> Reply:
        self.calls.append(call)
        request = call.request
        if isinstance(request, ListSources):
            return Reply(tuple(SourceEntry(s, self._state(s)) for s in self._sources))
        if isinstance(request, More):
            return Reply(self._more(request))
        source = self._find(call.source)
        if isinstance(request, Connect):
            status = Status("shop.db", "main", f"SQLite {sqlite3.sqlite_version}")
            self._states[source.id] = ConnectionState(
                "connected", status, 1777198462.0, 1777198462.0
            )
            return Reply(self._states[source.id])
        if isinstance(request, Disconnect):
            if source.id not in self._states:
                raise GateError(Code.SOURCE_NOT_CONNECTED, "The source is not connected")
            self._states[source.id] = ConnectionState("disconnected")
            return Reply(self._states[source.id])
        connection = sqlite3.connect(source.url.removeprefix("sqlite:///"))
        try:
            if isinstance(request, Browse):
                return self._browse(connection, source, request)
            return Reply(self._run(connection, source, request, call))
        finally:
            connection.close()

    def _find(self, name: str | None) -> Source:
        if name is None and len(self._sources) == 1:
            return self._sources[0]
        if name is None:
            raise GateError(Code.ARGUMENT_INVALID, "Several sources: name one")
        if name not in self._by_name:
            raise GateError(Code.SOURCE_UNKNOWN, f"Unknown source {name}")
        return self._by_name[name]

    def _state(self, source: Source) -> ConnectionState:
        return self._states.get(source.id, ConnectionState("disconnected"))

    def _run(
        self, connection: sqlite3.Connection, source: Source, request: Query | Explain, call: Call
    ) -> Page:
        text = request.statement.text
        if isinstance(request, Explain):
            text = f"EXPLAIN QUERY PLAN {text}"
        if call.progress is not None:
            call.progress(0.2, "Executing")
        try:
            cursor = connection.execute(text)
        except sqlite3.Error as error:
            raise GateError(Code.SQL_FAILED, str(error)) from None
        rows = cursor.fetchall()
        if call.progress is not None:
            call.progress(0.8, "Formatting result")
        columns = tuple(Column(column[0]) for column in cursor.description or ())
        as_text = isinstance(request, Query) and request.cells == "text"
        if as_text:
            rows = [tuple(None if v is None else str(v) for v in row) for row in rows]
        shelve = isinstance(request, Query) and request.shelve
        return self._page(source, columns, rows, request.limits.max_rows, shelve)

    def _page(
        self,
        source: Source,
        columns: tuple[Column, ...],
        rows: list[tuple[object, ...]],
        most: int,
        shelve: bool,
    ) -> Page:
        handle = None
        if shelve and len(rows) > most:
            handle = f"r{len(self._shelf) + 1}"
            self._shelf[handle] = (source, columns, rows[most:])
        cut = (Truncation("rows", most, most),) if len(rows) > most else ()
        shown = rows[:most]
        return Page(
            columns, msgspec.json.encode(shown), len(shown), 0, cut, elapsed_ms=1.4, more=handle
        )

    def _more(self, request: More) -> Page:
        if request.handle not in self._shelf:
            raise GateError(Code.RESULT_GONE, f"No result is kept under {request.handle}")
        source, columns, rows = self._shelf.pop(request.handle)
        return self._page(source, columns, rows, request.max_rows, True)

    def _browse(self, connection: sqlite3.Connection, source: Source, request: Browse) -> Reply:
        if request.aspect == "status":
            return Reply(self._state(source))
        if request.aspect == "databases":
            return Reply(Databases(("shop.db",)))
        tables = _tables(connection)
        if request.aspect == "catalog":
            return Reply(Catalog("shop.db", "main", ("main",), tables, "1"))
        if request.aspect == "counts":
            counts = {
                ("main", t.name): connection.execute(f'SELECT count(*) FROM "{t.name}"').fetchone()[
                    0
                ]
                for t in tables
            }
            return Reply(Counts(counts))
        row = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = ?", (request.table,)
        ).fetchone()
        if row is None:
            raise GateError(Code.TABLE_UNKNOWN, f"Unknown table {request.table}")
        return Reply(Ddl(row[0]))


def _tables(connection: sqlite3.Connection) -> tuple[Table, ...]:
    names = connection.execute(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"
    ).fetchall()
    return tuple(_table(connection, name, kind) for name, kind in names)


def _table(connection: sqlite3.Connection, name: str, kind: str) -> Table:
    columns = tuple(
        ColumnInfo(column, type, not notnull, default, key)
        for _, column, type, notnull, default, key in connection.execute(
            f'PRAGMA table_info("{name}")'
        )
    )
    keys = tuple(
        ForeignKey(f"fk_{name}_{row[0]}", (row[3],), row[2], (row[4],), None, row[5], row[6])
        for row in connection.execute(f'PRAGMA foreign_key_list("{name}")')
    )
    indexes = tuple(
        Index(
            row[1],
            tuple(c[2] for c in connection.execute(f'PRAGMA index_info("{row[1]}")')),
            bool(row[2]),
            row[3] == "pk",
        )
        for row in connection.execute(f'PRAGMA index_list("{name}")')
    )
    return Table("main", name, kind, columns, indexes, keys)
