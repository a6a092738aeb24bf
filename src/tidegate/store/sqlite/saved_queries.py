"""Saved queries and their versions, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import apsw
import msgspec

from tidegate.store.saved_queries import (
    MOST_VERSIONS,
    QueryContent,
    QueryParameter,
    QueryVersion,
    SavedQuery,
    changed_text,
    check_room_for_queries,
    taken_name,
    version_values,
)
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.store.stamps import columns_of
from tidegate.typed_values import convert_value, decode_json

_FIELDS = SavedQuery.__struct_fields__
_COLUMNS = ", ".join(f'"{name}"' for name in _FIELDS)
_MARKS = ", ".join("?" * len(_FIELDS))
_CHANGED = (
    *("name", "folder", "description", "shared_with", "database", "schema"),
    *("version", "text_version", "text_by", "changed_by", "changed_at"),
)
_IDS = "(SELECT value FROM json_each(?))"


class SqliteSavedQueryStore:
    """`saved_queries.SavedQueryStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._stamps = seals.stamps

    def add(self, query: SavedQuery, content: QueryContent) -> SavedQuery:
        new = msgspec.structs.replace(query, version=1, text_version=1, text_by=query.changed_by)
        with self._file.changing() as connection:
            _check_name(connection, new)
            connection.execute(
                f"INSERT INTO saved_queries ({_COLUMNS}) VALUES ({_MARKS})",
                [getattr(new, name) for name in _FIELDS],
            )
            self._add_version(connection, new, content)
            _check_room(connection, new.owner)
        return new

    def find(self, id: str) -> SavedQuery | None:
        with self._file.reading() as connection:
            return _find(connection, id)

    def list(self, source_ids: Iterable[str]) -> list[SavedQuery]:
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM saved_queries WHERE source_id IN {_IDS}"
                " ORDER BY folder, name, serial",
                (_array(source_ids),),
            )
            return [_query(row) for row in rows]

    def change(
        self, query: SavedQuery, was: int, content: QueryContent | None
    ) -> SavedQuery | None:
        with self._file.changing() as connection:
            known = _find(connection, query.id)
            if known is None or known.version != was:
                return None
            version = was + 1
            new = msgspec.structs.replace(
                query,
                source_id=known.source_id,
                owner=known.owner,
                version=version,
                text_version=known.text_version if content is None else version,
                text_by=known.text_by if content is None else query.changed_by,
            )
            _check_name(connection, new)
            changed = ", ".join(f'"{name}" = ?' for name in _CHANGED)
            connection.execute(
                # The version that was compared is in the WHERE: on a server another transaction
                # may have changed the row since it was read.
                f"UPDATE saved_queries SET {changed} WHERE id = ? AND version = ?",
                [*(getattr(new, name) for name in _CHANGED), new.id, was],
            )
            if connection.changes() == 0:
                return None
            if content is not None:
                self._add_version(connection, new, content)
                _check_room(connection, new.owner)
            return new

    def _add_version(
        self, connection: apsw.Connection, query: SavedQuery, content: QueryContent
    ) -> None:
        made = version_values(query, content)
        _write_version(connection, query, list(made.values()))
        self._stamps.write(connection, "query_versions", made)

    def remove(self, id: str, was: int) -> bool:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM saved_queries WHERE id = ? AND version = ?", (id, was))
            is_removed = connection.changes() > 0
            self._stamps.sweep(connection, "query_versions")
            self._stamps.sweep(connection, "query_runs")
            return is_removed

    def versions(self, id: str) -> list[QueryVersion]:
        with self._file.reading() as connection:
            rows = self._stamps.select(
                connection, "query_versions", "WHERE query_id = ? ORDER BY version DESC", (id,)
            )
            return [QueryVersion(row[1], QueryContent(""), *row[5:]) for row in rows]

    def version(self, id: str, version: int) -> QueryVersion | None:
        with self._file.reading() as connection:
            row = connection.execute(
                f"SELECT {columns_of('query_versions')} FROM query_versions"
                " WHERE query_id = ? AND version = ?",
                (id, version),
            ).fetchone()
            if row is not None and not self._stamps.is_good(connection, "query_versions", row):
                raise changed_text()
        if row is None:
            return None
        _, _, text, parameters, chart, by, at = row
        read = decode_json(parameters, tuple[QueryParameter, ...])
        return QueryVersion(version, QueryContent(text, read, chart), by, at)

    def note_run(self, id: str, operator: str, version: int) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "INSERT INTO query_runs SELECT id, ?, ? FROM saved_queries WHERE id = ?"
                " ON CONFLICT (query_id, operator) DO UPDATE SET version = excluded.version",
                (operator, version, id),
            )
            if connection.changes():
                run = {"query_id": id, "operator": operator, "version": version}
                self._stamps.write(connection, "query_runs", run)

    def last_runs(self, operator: str, ids: Collection[str]) -> Mapping[str, int]:
        with self._file.reading() as connection:
            rows = self._stamps.select(
                connection,
                "query_runs",
                f"WHERE operator = ? AND query_id IN {_IDS}",
                (operator, _array(ids)),
            )
            return {row[0]: row[2] for row in rows}

    def attach(self, tab_id: str, owner: str, id: str, version: int) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "DELETE FROM query_tabs WHERE tab_id NOT IN"
                " (SELECT id FROM tabs UNION ALL SELECT id FROM closed_tabs)"
            )
            connection.execute(
                "INSERT INTO query_tabs SELECT tabs.id, saved_queries.id, windows.owner, ?"
                " FROM saved_queries, tabs JOIN windows ON windows.id = window_id"
                " WHERE saved_queries.id = ? AND tabs.id = ? AND windows.owner = ?"
                " ON CONFLICT (tab_id) DO UPDATE SET query_id = excluded.query_id,"
                " version = excluded.version",
                (version, id, tab_id, owner),
            )

    def attached(self, owner: str) -> Mapping[str, tuple[str, int]]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT tab_id, query_id, version FROM query_tabs WHERE owner = ?", (owner,)
            )
            return {tab: (query, version) for tab, query, version in rows}


def _find(connection: apsw.Connection, id: str) -> SavedQuery | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM saved_queries WHERE id = ?", (id,)).fetchone()
    return None if row is None else _query(row)


def _query(row: tuple[Any, ...]) -> SavedQuery:
    return convert_value(dict(zip(_FIELDS, row, strict=True)), SavedQuery)


def _check_name(connection: apsw.Connection, query: SavedQuery) -> None:
    """Raises: TidegateError ARGUMENT_INVALID if the owner has another query of that name there."""
    taken = connection.execute(
        "SELECT 1 FROM saved_queries WHERE source_id = ? AND owner = ? AND folder = ? AND name = ?"
        " AND id <> ?",
        (query.source_id, query.owner, query.folder, query.name, query.id),
    ).fetchone()
    if taken is not None and query.owner:
        raise taken_name()


def _write_version(connection: apsw.Connection, query: SavedQuery, values: list[Any]) -> None:
    connection.execute(
        f"INSERT INTO query_versions ({columns_of('query_versions')}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    connection.execute(
        "DELETE FROM query_versions WHERE query_id = ?1 AND version NOT IN (SELECT version FROM"
        " query_versions WHERE query_id = ?1 ORDER BY version DESC LIMIT ?2)",
        (query.id, MOST_VERSIONS),
    )


def _check_room(connection: apsw.Connection, owner: str) -> None:
    """Raises: TidegateError LIMIT_BYTES if the owner's queries are more than they may be."""
    count, size = connection.execute(
        "SELECT count(DISTINCT id), coalesce(sum(octet_length(text) + octet_length(parameters)"
        " + octet_length(chart)), 0) FROM saved_queries JOIN query_versions ON query_id = id"
        " WHERE owner = ?",
        (owner,),
    ).fetchone() or (0, 0)
    check_room_for_queries(owner, count, size)


def _array(values: Iterable[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
