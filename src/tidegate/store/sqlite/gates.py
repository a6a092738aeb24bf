"""The gates of a state, in the state file.

A state in a file has one gate and leases nothing. The area is here for a state that was in
PostgreSQL, and may go there again.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from typing import Any, cast

import apsw

from tidegate.store.gates import GateEntry
from tidegate.store.sqlite.connection import StateConnection

_COLUMNS = "id, holder, place, public_key, processes, head, renewed_at, expires_at"
_CLAIM = (
    f"INSERT INTO gates AS had ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET"
    " holder = excluded.holder, place = excluded.place, public_key = excluded.public_key,"
    " processes = CASE WHEN excluded.processes = 0 THEN had.processes ELSE excluded.processes END,"
    " head = CASE WHEN length(excluded.head) = 0 THEN had.head ELSE excluded.head END,"
    " renewed_at = excluded.renewed_at, expires_at = excluded.expires_at"
    " WHERE had.holder = excluded.holder OR had.expires_at <= excluded.renewed_at"
)


class SqliteGateStore:
    """`gates.GateStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def claim(self, claim: GateEntry) -> GateEntry:
        with self._file.changing() as connection:
            connection.execute(_CLAIM, claim)
            row: Any = connection.execute(
                f"SELECT {_COLUMNS} FROM gates WHERE id = ?", (claim.id,)
            ).fetchone()
            return GateEntry(*row)

    def list(self) -> tuple[GateEntry, ...]:
        with self._file.reading() as connection:
            return list_gates(connection)

    def forget(self, id: str) -> bool:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM gates WHERE id = ?", (id,))
            return connection.changes() > 0


def list_gates(connection: apsw.Connection) -> tuple[GateEntry, ...]:
    """All gates by id."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM gates ORDER BY id")
    return tuple([GateEntry(*row) for row in cast("list[Any]", rows.fetchall())])
