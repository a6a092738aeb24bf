"""Kept changes in the state file. What is forgotten is overwritten."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

import apsw
import msgspec

from tidegate.errors import TidegateError
from tidegate.model.changes import ChangeEntry
from tidegate.store.kept_changes import KeptChanges, with_ending
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import DIALECT, StateConnection


class SqliteChangeStore:
    """`api.ChangeStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._kept = KeptChanges(DIALECT, seals)

    def prepare(self, entry: ChangeEntry, key: bytes, image: bytes, total_bytes: int) -> None:
        with self._file.changing() as connection:
            over: int = connection.execute("SELECT coalesce(sum(size), 0) FROM changes").get
            over += entry.size - total_bytes
            rows = connection.execute("SELECT id, size FROM changes ORDER BY serial")
            oldest: list[str] = []
            for id, size in cast("list[tuple[str, int]]", rows.fetchall() if over > 0 else []):
                if over <= 0:
                    break
                oldest.append(id)
                over -= size
            self._forget(connection, oldest)
            self._kept.add(connection, entry)
            connection.execute("INSERT INTO change_keys (id, key) VALUES (?, ?)", (entry.id, key))
            connection.execute(
                "INSERT INTO change_images (id, image) VALUES (?, ?)", (entry.id, image)
            )

    def confirm(self, entry: ChangeEntry) -> bool:
        with self._file.changing() as connection:
            return self._kept.confirm(connection, entry)

    def mark_undone(self, entry: ChangeEntry, by: str) -> None:
        with self._file.changing() as connection:
            self._kept.mark_undone(connection, entry, by)

    def discard(self, entry: ChangeEntry) -> None:
        with self._file.changing() as connection:
            self._kept.discard(connection, entry)
            self._forget(connection, [entry.id])
        self._clear_log()

    def find(self, id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE id = ?", id)), None)

    def of_call(self, call_id: str) -> ChangeEntry | None:
        return next(iter(self._read("WHERE call_id = ? AND call_id <> ''", call_id)), None)

    def starting(self, start: str) -> tuple[ChangeEntry, ...]:
        return self._read("WHERE substr(id, 1, ?) = ? LIMIT 2", len(start), start)

    def current(self, entry: ChangeEntry) -> ChangeEntry | None:
        with self._file.reading() as connection:
            return with_ending(entry, self._kept.ending(connection, entry))

    def has_foreign(self, id: str) -> bool:
        with self._file.reading() as connection:
            return self._kept.has_foreign(connection, id)

    def image(self, id: str) -> tuple[bytes, bytes] | None:
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT key, image FROM change_keys JOIN change_images USING (id) WHERE id = ?",
                (id,),
            ).fetchone()
            return None if row is None else (row[0], row[1])

    def list(
        self,
        source_ids: Collection[str],
        *,
        limit: int,
        actor: str | None = None,
        approval: str | None = None,
        before: float | None = None,
    ) -> tuple[ChangeEntry, ...]:
        return self._read(
            "WHERE source_id IN (SELECT value FROM json_each(?1)) AND (?2 IS NULL OR actor = ?2)"
            " AND (?3 IS NULL OR approval = ?3) AND (?4 IS NULL OR made_at < ?4)"
            " ORDER BY serial DESC LIMIT ?5",
            msgspec.json.encode(sorted(source_ids)).decode(),
            *(actor, approval, before, limit),
        )

    def forget(self, now: float) -> int:
        with self._file.reading() as connection:
            rows = connection.execute("SELECT id FROM changes WHERE expires_at <= ?", (now,))
            ids = [row[0] for row in cast("list[tuple[str]]", rows.fetchall())]
        if not ids:
            return 0
        with self._file.changing(uses_reserve=True) as connection:
            self._forget(connection, ids)
        self._clear_log()
        return len(ids)

    def _forget(self, connection: apsw.Connection, ids: Collection[str]) -> None:
        if not ids:
            return
        connection.execute("PRAGMA secure_delete = ON")
        chosen = msgspec.json.encode(list(ids)).decode()
        for table in ("change_keys", "change_images", "changes"):
            connection.execute(
                f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))", (chosen,)
            )
        self._kept.forget(connection, list(ids))

    def _clear_log(self) -> None:
        """Take what was overwritten out of the write-ahead log, too, if no one reads from it."""
        with suppress(TidegateError, apsw.Error), self._file.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _read(self, rest: str, *values: Any) -> tuple[ChangeEntry, ...]:
        with self._file.reading() as connection:
            return self._kept.read(connection, rest, *values)
