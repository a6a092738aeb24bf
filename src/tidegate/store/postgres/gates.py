"""The gates of a state, in PostgreSQL."""

from __future__ import annotations

import psycopg

from tidegate.store.gates import GateEntry
from tidegate.store.postgres.connection import StateConnection, failed
from tidegate.store.postgres.database import Database, connect_once

_COLUMNS = "id, holder, place, public_key, processes, head, renewed_at, expires_at"
_CLAIM = (
    f"INSERT INTO tidegate.gates AS had ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (id) DO UPDATE SET"
    " holder = excluded.holder, place = excluded.place, public_key = excluded.public_key,"
    " processes = CASE WHEN excluded.processes = 0 THEN had.processes ELSE excluded.processes END,"
    " head = CASE WHEN octet_length(excluded.head) = 0 THEN had.head ELSE excluded.head END,"
    " renewed_at = excluded.renewed_at, expires_at = excluded.expires_at"
    " WHERE had.holder = excluded.holder OR had.expires_at <= excluded.renewed_at"
)
_BOUND_S = 2.0
"""The thread that follows the state renews the lease, and must see the state again by then."""


class PostgresGateStore:
    """`gates.GateStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, claim: GateEntry) -> GateEntry:
        # What is lost in a crash is claimed again soon, so no one waits for a standby here.
        with self._database.changing(settles=False, bound_s=_BOUND_S) as connection:
            connection.ask(_CLAIM, claim)
            # A claim that met the lease of another one has waited for its transaction.
            row = connection.row(
                f"SELECT {_COLUMNS} FROM tidegate.gates WHERE id = %s", (claim.id,)
            )
            return claim if row is None else GateEntry(*row)

    def list(self) -> tuple[GateEntry, ...]:
        with self._database.reading() as connection:
            return _read(connection)

    def forget(self, id: str) -> bool:
        with self._database.changing() as connection:
            return connection.change("DELETE FROM tidegate.gates WHERE id = %s", (id,)) > 0


def read_gates(url: str) -> tuple[tuple[GateEntry, ...], float]:
    """The gates of the state in the database of a URL, and the time there; nothing is made or
    changed. Raises: TidegateError STATE_FAILED, also if there is no state."""
    try:
        with connect_once(url) as connection:
            row = connection.row("SELECT extract(epoch FROM clock_timestamp())::float8")
            return _read(connection), float(row[0]) if row is not None else 0.0
    except psycopg.Error as error:
        raise failed(error) from error


def _read(connection: StateConnection) -> tuple[GateEntry, ...]:
    rows = connection.ask(f"SELECT {_COLUMNS} FROM tidegate.gates ORDER BY id")
    return tuple([GateEntry(*row) for row in rows])
