"""What the processes on one state file must agree on: secrets, used nonces, failures and locks."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import os
from typing import cast

from tidegate.store.held_rows import Touched
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection

_SECRET_BYTES = 32
_LOCK = (
    "INSERT INTO locks (key, until) VALUES (?1, ?2)"
    " ON CONFLICT (key) DO UPDATE SET until = excluded.until"
)


class SqliteSharedStore:
    """`api.SharedStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._seals = seals

    def secret(self, name: str) -> bytes:
        derived = self._seals.secret(name)
        if derived is not None:
            return derived
        with self._file.changing() as connection:
            connection.execute(
                "INSERT INTO shared_secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (name, os.urandom(_SECRET_BYTES)),
            )
            (row,) = connection.execute("SELECT value FROM shared_secrets WHERE name = ?", (name,))
            value: bytes = row[0]
            return value

    def use_once(self, kind: str, value: str, expires_at: float, now: float) -> bool:
        with self._file.changing() as connection:
            if not self._seals.use_once(connection, f"{kind}/{value}", expires_at, now):
                return False
            connection.execute(
                "DELETE FROM used_values WHERE kind = ? AND value = ? AND expires_at <= ?",
                (kind, value, now),
            )
            connection.execute(
                "INSERT INTO used_values (kind, value, expires_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (kind, value, expires_at),
            )
            return connection.changes() > 0

    def add_failure(self, key: str, now: float, *, most: int, window_s: float) -> bool:
        with self._file.changing() as connection:
            connection.execute("INSERT INTO failures (key, at) VALUES (?, ?)", (key, now))
            count: int = connection.execute(
                "SELECT count(*) FROM failures WHERE key = ? AND at > ?", (key, now - window_s)
            ).get
            if count < most:
                return False
            connection.execute("DELETE FROM failures WHERE key = ?", (key,))
            return True

    def lock(self, key: str, until: float) -> None:
        with self._file.changing() as connection:
            connection.execute(_LOCK, (key, until))

    def locked_until(self, key: str, now: float) -> float | None:
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT until FROM locks WHERE key = ? AND until > ?", (key, now)
            ).fetchone()
            return None if row is None else row[0]

    def lock_sealed(self, key: str, until: float, now: float) -> None:
        with self._file.changing() as connection:
            connection.execute(_LOCK, (key, until))
            self._seals.lock(connection, key, until, now)

    def sealed_until(self, key: str, now: float) -> float | None:
        with self._file.reading() as connection:
            return self._seals.locked_until(connection, key, now)

    def keep_unrecorded(self, event: bytes) -> None:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection) as held,
        ):
            connection.execute("INSERT INTO unrecorded_events (event) VALUES (?)", (event,))
            id = connection.last_insert_rowid()
            held.add("unrecorded_events", id, {"id": id, "event": event})

    def unrecorded(self) -> tuple[tuple[int, bytes], ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(
                connection, "unrecorded_events", "id, event", "ORDER BY id", is_whole=True
            )
            return tuple(cast("list[tuple[int, bytes]]", rows))

    def forget_unrecorded(self, id: int) -> None:
        with (
            self._file.changing() as connection,
            self._seals.changing(connection, Touched("unrecorded_events", "id = ?", (id,))),
        ):
            connection.execute("DELETE FROM unrecorded_events WHERE id = ?", (id,))

    def forget(self, now: float, window_s: float) -> None:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM used_values WHERE expires_at <= ?", (now,))
            connection.execute("DELETE FROM failures WHERE at <= ?", (now - window_s,))
            connection.execute("DELETE FROM locks WHERE until <= ?", (now,))
