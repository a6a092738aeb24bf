"""Edits of rows that are staged in tabs, in PostgreSQL.

Each write names the version that it replaces, in the statement that replaces it: of two pages that
write at once one is refused.
"""

from __future__ import annotations

from tidegate.store.postgres.database import Database
from tidegate.store.records import StagedEntry


class PostgresStagedEditStore:
    """`api.StagedEditStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, owner: str, tab_id: str) -> StagedEntry | None:
        with self._database.reading() as connection:
            row = connection.row(
                "SELECT version, body FROM tidegate.staged_edits WHERE tab_id = %s AND owner = %s",
                (tab_id, owner),
            )
            return None if row is None else StagedEntry(int(row[0]), bytes(row[1]))

    def write(self, owner: str, tab_id: str, version: int, body: bytes, now: float) -> bool:
        with self._database.changing() as connection:
            if version:
                changed = connection.change(
                    "UPDATE tidegate.staged_edits SET version = version + 1, changed_at = %s,"
                    " body = %s WHERE tab_id = %s AND owner = %s AND version = %s",
                    (now, body, tab_id, owner, version),
                )
            else:
                changed = connection.change(
                    "INSERT INTO tidegate.staged_edits (tab_id, owner, version, changed_at, body)"
                    " VALUES (%s, %s, 1, %s, %s) ON CONFLICT (tab_id) DO NOTHING",
                    (tab_id, owner, now, body),
                )
            return changed > 0
