"""Kept changes in PostgreSQL. What is forgotten is deleted with its key; the database overwrites it
when it cleans up, and its write-ahead log keeps it as long as it keeps the log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tidegate.model.changes import ChangeEntry
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows

_CHANGES = Rows(ChangeEntry, as_json=("tables",))


class PostgresChangeStore:
    """`api.ChangeStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def prepare(self, entry: ChangeEntry, key: bytes, image: bytes, total_bytes: int) -> None:
        with self._database.changing("changes") as connection:
            over = connection.number("SELECT sum(size) FROM tidegate.changes")
            over += entry.size - total_bytes
            oldest: list[str] = []
            if over > 0:
                rows = connection.ask("SELECT id, size FROM tidegate.changes ORDER BY serial")
                for id, size in rows.fetchall():
                    if over <= 0:
                        break
                    oldest.append(id)
                    over -= size
            _forget(connection, oldest)
            connection.ask(
                f"INSERT INTO tidegate.changes ({_CHANGES.columns}) VALUES ({_CHANGES.marks})",
                _CHANGES.values(entry),
            )
            connection.ask("INSERT INTO tidegate.change_keys VALUES (%s, %s)", (entry.id, key))
            connection.ask("INSERT INTO tidegate.change_images VALUES (%s, %s)", (entry.id, image))

    def confirm(self, id: str) -> bool:
        with self._database.changing() as connection:
            row = connection.row(
                "UPDATE tidegate.changes SET state = 'done' WHERE id = %s AND state = 'prepared'"
                " RETURNING undoes",
                (id,),
            )
            if row is None:
                return False
            if row[0]:
                connection.ask(
                    "UPDATE tidegate.changes SET state = 'undone', undone_by = %s"
                    " WHERE state = 'done' AND id = %s",
                    (id, row[0]),
                )
            return True

    def mark_undone(self, id: str, by: str) -> None:
        with self._database.changing() as connection:
            connection.ask(
                "UPDATE tidegate.changes SET state = 'undone', undone_by = %s WHERE id = %s",
                (by, id),
            )

    def discard(self, id: str) -> None:
        with self._database.changing() as connection:
            _forget(connection, [id])

    def find(self, id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE id = %s", id)), None)

    def of_call(self, call_id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE call_id = %s AND call_id <> ''", call_id)), None)

    def starting(self, start: str) -> tuple[ChangeEntry, ...]:
        return self._read("WHERE starts_with(id, %s) LIMIT 2", start)

    def image(self, id: str) -> tuple[bytes, bytes] | None:
        with self._database.reading() as connection:
            row = connection.row(
                "SELECT key, image FROM tidegate.change_keys JOIN tidegate.change_images USING (id)"
                " WHERE id = %s",
                (id,),
            )
            return None if row is None else (bytes(row[0]), bytes(row[1]))

    def list(
        self,
        source_ids: Collection[str],
        *,
        limit: int,
        actor: str | None = None,
        approval: str | None = None,
        before: float | None = None,
    ) -> tuple[ChangeEntry, ...]:
        conditions: list[str] = ["source_id = ANY(%s::text[])"]
        values: list[Any] = [list(source_ids)]
        for condition, value in (
            ("actor = %s", actor),
            ("approval = %s", approval),
            ("made_at < %s", before),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        where = " AND ".join(conditions)
        return self._read(f"WHERE {where} ORDER BY serial DESC LIMIT %s", *values, limit)

    def forget(self, now: float) -> int:
        with self._database.reading() as connection:
            rows = connection.ask("SELECT id FROM tidegate.changes WHERE expires_at <= %s", (now,))
            ids = [row[0] for row in rows]
        if not ids:
            return 0
        with self._database.changing() as connection:
            return _forget(connection, ids)

    def _read(self, rest: str, *values: Any) -> tuple[ChangeEntry, ...]:
        with self._database.reading() as connection:
            rows = connection.ask(f"SELECT {_CHANGES.columns} FROM tidegate.changes {rest}", values)
            return tuple(_CHANGES.records(rows))


def _forget(connection: StateConnection, ids: list[str]) -> int:
    gone = 0
    for table in ("change_keys", "change_images", "changes") if ids else ():
        gone = connection.change(f"DELETE FROM tidegate.{table} WHERE id = ANY(%s::text[])", (ids,))
    return gone
