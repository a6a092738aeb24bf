"""Edits of rows that are staged in tabs, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from tidegate.store.records import StagedEntry
from tidegate.store.sqlite.connection import StateConnection


class SqliteStagedEditStore:
    """`api.StagedEditStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def find(self, owner: str, tab_id: str) -> StagedEntry | None:
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT version, body FROM staged_edits WHERE tab_id = ? AND owner = ?",
                (tab_id, owner),
            ).fetchone()
            return None if row is None else StagedEntry(int(row[0]), bytes(row[1]))

    def write(self, owner: str, tab_id: str, version: int, body: bytes, now: float) -> bool:
        with self._file.changing() as connection:
            if version:
                connection.execute(
                    "UPDATE staged_edits SET version = version + 1, changed_at = ?, body = ?"
                    " WHERE tab_id = ? AND owner = ? AND version = ?",
                    (now, body, tab_id, owner, version),
                )
            else:
                connection.execute(
                    "INSERT INTO staged_edits (tab_id, owner, version, changed_at, body)"
                    " VALUES (?, ?, 1, ?, ?) ON CONFLICT (tab_id) DO NOTHING",
                    (tab_id, owner, now, body),
                )
            return connection.changes() > 0
