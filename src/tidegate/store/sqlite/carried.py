"""What callers' later calls need, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tidegate.store.carried import MOST_OF_OWNER, MOST_SWEPT, Carried
from tidegate.store.sqlite.connection import StateConnection


class SqliteCarriedStore:
    """`carried.CarriedStore` in the state file, by a connection that does not sync each write."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def put(
        self, value: Carried, parts: Sequence[bytes], now: float, most: int = MOST_OF_OWNER
    ) -> None:
        kind, id, owner, expires_at = value
        with self._file.changing() as connection:
            connection.execute("DELETE FROM carried_values WHERE kind = ? AND id = ?", (kind, id))
            connection.execute(
                "DELETE FROM carried_values WHERE (kind, id, part) IN (SELECT kind, id, part FROM"
                " carried_values WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
                (now, MOST_SWEPT),
            )
            connection.execute(
                "DELETE FROM carried_values WHERE (kind, id) IN (SELECT kind, id FROM"
                " carried_values WHERE kind = ? AND owner = ? AND part = 0"
                " ORDER BY expires_at DESC LIMIT -1 OFFSET ?)",
                (kind, owner, most - 1),
            )
            connection.executemany(
                "INSERT INTO carried_values (kind, id, part, owner, body, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(kind, id, part, owner, body, expires_at) for part, body in enumerate(parts)],
            )

    def read(
        self, kind: str, id: str, now: float, first: int = 0, last: int = 0
    ) -> tuple[tuple[int, bytes], ...]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT part, body FROM carried_values WHERE kind = ? AND id = ?"
                " AND part BETWEEN ? AND ? AND expires_at > ? ORDER BY part",
                (kind, id, first, last, now),
            )
            return tuple(cast("list[tuple[int, bytes]]", rows.fetchall()))

    def remove(self, kind: str, id: str) -> None:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM carried_values WHERE kind = ? AND id = ?", (kind, id))

    def sweep(self, now: float) -> int:
        with self._file.changing() as connection:
            connection.execute(
                "DELETE FROM carried_values WHERE (kind, id, part) IN (SELECT kind, id, part FROM"
                " carried_values WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
                (now, MOST_SWEPT),
            )
            return connection.changes()
