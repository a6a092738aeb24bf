"""Saved queries and their versions, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows, quoted
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
from tidegate.store.stamps import columns_of
from tidegate.typed_values import decode_json

_QUERIES = Rows(SavedQuery)
_CHANGED = (
    *("name", "folder", "description", "shared_with", "database", "schema"),
    *("version", "text_version", "text_by", "changed_by", "changed_at"),
)


class PostgresSavedQueryStore:
    """`saved_queries.SavedQueryStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stamps = database.seals.stamps

    def add(self, query: SavedQuery, content: QueryContent) -> SavedQuery:
        new = msgspec.structs.replace(query, version=1, text_version=1, text_by=query.changed_by)
        with self._database.changing("queries") as connection:
            _check_name(connection, new)
            connection.ask(
                f"INSERT INTO tidegate.saved_queries ({_QUERIES.columns})"
                f" VALUES ({_QUERIES.marks})",
                _QUERIES.values(new),
            )
            self._add_version(connection, new, content)
            _check_room(connection, new.owner)
        return new

    def find(self, id: str) -> SavedQuery | None:
        with self._database.reading() as connection:
            return _find(connection, id)

    def list(self, source_ids: Iterable[str]) -> list[SavedQuery]:
        with self._database.reading() as connection:
            rows = connection.ask(
                f"SELECT {_QUERIES.columns} FROM tidegate.saved_queries"
                " WHERE source_id = ANY(%s::text[]) ORDER BY folder, name, serial",
                (list(source_ids),),
            )
            return _QUERIES.records(rows)

    def change(
        self, query: SavedQuery, was: int, content: QueryContent | None
    ) -> SavedQuery | None:
        with self._database.changing("queries") as connection:
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
            changed = ", ".join(f"{quoted([name])} = %s" for name in _CHANGED)
            if not connection.change(
                f"UPDATE tidegate.saved_queries SET {changed} WHERE id = %s AND version = %s",
                [*_QUERIES.values(new, _CHANGED), new.id, was],
            ):
                return None
            if content is not None:
                self._add_version(connection, new, content)
                _check_room(connection, new.owner)
            return new

    def _add_version(
        self, connection: StateConnection, query: SavedQuery, content: QueryContent
    ) -> None:
        made = version_values(query, content)
        _write_version(connection, query, list(made.values()))
        self._stamps.write(connection, "query_versions", made)

    def remove(self, id: str, was: int) -> bool:
        with self._database.changing("queries") as connection:
            removed = connection.change(
                "DELETE FROM tidegate.saved_queries WHERE id = %s AND version = %s", (id, was)
            )
            self._stamps.sweep(connection, "query_versions")
            self._stamps.sweep(connection, "query_runs")
            return removed > 0

    def versions(self, id: str) -> list[QueryVersion]:
        with self._database.reading() as connection:
            rows = self._stamps.select(
                connection, "query_versions", "WHERE query_id = %s ORDER BY version DESC", (id,)
            )
            return [QueryVersion(row[1], QueryContent(""), *row[5:]) for row in rows]

    def version(self, id: str, version: int) -> QueryVersion | None:
        with self._database.reading() as connection:
            row = connection.row(
                f"SELECT {columns_of('query_versions')} FROM tidegate.query_versions"
                " WHERE query_id = %s AND version = %s",
                (id, version),
            )
            if row is not None and not self._stamps.is_good(connection, "query_versions", row):
                raise changed_text()
        if row is None:
            return None
        _, _, text, parameters, chart, by, at = row
        read = decode_json(parameters, tuple[QueryParameter, ...])
        return QueryVersion(version, QueryContent(text, read, chart), by, at)

    def note_run(self, id: str, operator: str, version: int) -> None:
        with self._database.changing(settles=False) as connection:
            noted = connection.change(
                "INSERT INTO tidegate.query_runs"
                " SELECT id, %s, %s FROM tidegate.saved_queries WHERE id = %s"
                " ON CONFLICT (query_id, operator) DO UPDATE SET version = excluded.version",
                (operator, version, id),
            )
            if noted:
                run = {"query_id": id, "operator": operator, "version": version}
                self._stamps.write(connection, "query_runs", run)

    def last_runs(self, operator: str, ids: Collection[str]) -> Mapping[str, int]:
        with self._database.reading() as connection:
            rows = self._stamps.select(
                connection,
                "query_runs",
                "WHERE operator = %s AND query_id = ANY(%s::text[])",
                (operator, list(ids)),
            )
            return {row[0]: row[2] for row in rows}

    def attach(self, tab_id: str, owner: str, id: str, version: int) -> None:
        with self._database.changing("queries") as connection:
            connection.ask(
                "DELETE FROM tidegate.query_tabs WHERE tab_id NOT IN"
                " (SELECT id FROM tidegate.tabs UNION ALL SELECT id FROM tidegate.closed_tabs)"
            )
            connection.ask(
                "INSERT INTO tidegate.query_tabs"
                " SELECT tabs.id, saved_queries.id, windows.owner, %s"
                " FROM tidegate.saved_queries, tidegate.tabs"
                " JOIN tidegate.windows ON windows.id = window_id"
                " WHERE saved_queries.id = %s AND tabs.id = %s AND windows.owner = %s"
                " ON CONFLICT (tab_id) DO UPDATE SET query_id = excluded.query_id,"
                " version = excluded.version",
                (version, id, tab_id, owner),
            )

    def attached(self, owner: str) -> Mapping[str, tuple[str, int]]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT tab_id, query_id, version FROM tidegate.query_tabs WHERE owner = %s",
                (owner,),
            )
            return {tab: (query, version) for tab, query, version in rows}


def _find(connection: StateConnection, id: str) -> SavedQuery | None:
    row = connection.row(
        f"SELECT {_QUERIES.columns} FROM tidegate.saved_queries WHERE id = %s", (id,)
    )
    return None if row is None else _QUERIES.record(row)


def _check_name(connection: StateConnection, query: SavedQuery) -> None:
    """Raises: TidegateError ARGUMENT_INVALID if the owner has another query of that name there."""
    taken = connection.row(
        "SELECT 1 FROM tidegate.saved_queries WHERE source_id = %s AND owner = %s AND folder = %s"
        " AND name = %s AND id <> %s",
        (query.source_id, query.owner, query.folder, query.name, query.id),
    )
    if taken is not None and query.owner:
        raise taken_name()


def _write_version(connection: StateConnection, query: SavedQuery, values: list[object]) -> None:
    connection.ask(
        f"INSERT INTO tidegate.query_versions ({columns_of('query_versions')})"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        values,
    )
    connection.ask(
        "DELETE FROM tidegate.query_versions WHERE query_id = %(id)s AND version NOT IN"
        " (SELECT version FROM tidegate.query_versions WHERE query_id = %(id)s"
        " ORDER BY version DESC LIMIT %(most)s)",
        {"id": query.id, "most": MOST_VERSIONS},
    )


def _check_room(connection: StateConnection, owner: str) -> None:
    """Raises: TidegateError LIMIT_BYTES if the owner's queries are more than they may be."""
    row = connection.row(
        "SELECT count(DISTINCT id), coalesce(sum(octet_length(text) + octet_length(parameters)"
        " + octet_length(chart)), 0)::bigint FROM tidegate.saved_queries"
        " JOIN tidegate.query_versions ON query_id = id WHERE owner = %s",
        (owner,),
    )
    count, size = row or (0, 0)
    check_room_for_queries(owner, count, size)
