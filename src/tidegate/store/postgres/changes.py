"""Kept changes in PostgreSQL. What is forgotten is deleted with its key; the database overwrites it
when it cleans up, and its write-ahead log keeps it as long as it keeps the log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tidegate.model.changes import ChangeEntry
from tidegate.store.kept_changes import KeptChanges, with_ending
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import DIALECT, Database


class PostgresChangeStore:
    """`api.ChangeStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept = KeptChanges(DIALECT, database.seals)

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
            self._forget(connection, oldest)
            self._kept.add(connection, entry)
            connection.ask("INSERT INTO tidegate.change_keys VALUES (%s, %s)", (entry.id, key))
            connection.ask("INSERT INTO tidegate.change_images VALUES (%s, %s)", (entry.id, image))

    def confirm(self, entry: ChangeEntry) -> bool:
        with self._database.changing() as connection:
            return self._kept.confirm(connection, entry)

    def mark_undone(self, entry: ChangeEntry, by: str) -> None:
        with self._database.changing() as connection:
            self._kept.mark_undone(connection, entry, by)

    def discard(self, entry: ChangeEntry) -> None:
        with self._database.changing() as connection:
            self._kept.discard(connection, entry)
            self._forget(connection, [entry.id])

    def find(self, id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE id = %s", id)), None)

    def of_call(self, call_id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE call_id = %s AND call_id <> ''", call_id)), None)

    def starting(self, start: str) -> tuple[ChangeEntry, ...]:
        return self._read("WHERE starts_with(id, %s) LIMIT 2", start)

    def current(self, entry: ChangeEntry) -> ChangeEntry | None:
        with self._database.reading() as connection:
            return with_ending(entry, self._kept.ending(connection, entry))

    def has_foreign(self, id: str) -> bool:
        with self._database.reading() as connection:
            return self._kept.has_foreign(connection, id)

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
            return self._forget(connection, ids)

    def _read(self, rest: str, *values: Any) -> tuple[ChangeEntry, ...]:
        with self._database.reading() as connection:
            return self._kept.read(connection, rest, *values)

    def _forget(self, connection: StateConnection, ids: list[str]) -> int:
        if not ids:
            return 0
        gone = 0
        for table in ("change_keys", "change_images", "changes"):
            sql = f"DELETE FROM tidegate.{table} WHERE id = ANY(%s::text[])"
            gone = connection.change(sql, (ids,))
        self._kept.forget(connection, ids)
        return gone
