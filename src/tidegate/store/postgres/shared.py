"""What all processes on one state must agree on: secrets, used nonces, failures and locks."""

from __future__ import annotations

import os

from tidegate.store.held_rows import Touched
from tidegate.store.postgres.database import LOCK, Database
from tidegate.store.postgres.epochs import NONCE_LIFE_S

_SECRET_BYTES = 32
SEALED = "request state"
"""What the kinds of nonces of sealed requests begin with."""
_FAILURES = 1_000
"""Locks of the failures of one key begin at this number, plus a hash of the key."""
_COMMITS_S = 600.0
"""How long the mark of a transaction is kept: far longer than anyone looks for it."""

_LOCK = (
    "INSERT INTO tidegate.locks (key, until) VALUES (%s, %s)"
    " ON CONFLICT (key) DO UPDATE SET until = excluded.until"
)


class PostgresSharedStore:
    """`api.SharedStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def secret(self, name: str) -> bytes:
        derived = self._database.seals.secret(name)
        if derived is not None:
            return derived
        with self._database.changing() as connection:
            connection.ask(
                "INSERT INTO tidegate.shared_secrets (name, value) VALUES (%s, %s)"
                " ON CONFLICT DO NOTHING",
                (name, os.urandom(_SECRET_BYTES)),
            )
            row = connection.row(
                "SELECT value FROM tidegate.shared_secrets WHERE name = %s", (name,)
            )
            return b"" if row is None else bytes(row[0])

    def use_once(self, kind: str, value: str, expires_at: float, now: float) -> bool:
        with self._database.changing() as connection:
            # The row is also for gates of a version that knows no list of what was used.
            return (
                self._database.seals.use_once(connection, f"{kind}/{value}", expires_at, now)
                and connection.change(
                    "INSERT INTO tidegate.used_values AS had (kind, value, expires_at)"
                    " SELECT %(kind)s, %(value)s, %(until)s FROM tidegate.about"
                    " WHERE greatest(epoch_at, %(began)s) IS NULL"
                    " OR %(until)s > greatest(epoch_at, %(began)s) + %(life)s"
                    " ON CONFLICT (kind, value) DO UPDATE"
                    " SET expires_at = excluded.expires_at WHERE had.expires_at <= %(now)s",
                    {
                        "kind": kind,
                        "value": value,
                        "until": expires_at,
                        "now": now,
                        "began": self._database.epoch_at,
                        "life": NONCE_LIFE_S if kind.startswith(SEALED) else 0.0,
                    },
                )
                > 0
            )

    def add_failure(self, key: str, now: float, *, most: int, window_s: float) -> bool:
        with self._database.changing(settles=False) as connection:
            # One at a time for a key: two that do not see each other would count too few.
            connection.ask(
                "SELECT pg_advisory_xact_lock(%s, %s + (hashtext(%s) & 1048575))",
                (LOCK, _FAILURES, key),
            )
            connection.ask("INSERT INTO tidegate.failures (key, at) VALUES (%s, %s)", (key, now))
            count = connection.number(
                "SELECT count(*) FROM tidegate.failures WHERE key = %s AND at > %s",
                (key, now - window_s),
            )
            if count < most:
                return False
            connection.ask("DELETE FROM tidegate.failures WHERE key = %s", (key,))
            return True

    def lock(self, key: str, until: float) -> None:
        with self._database.changing() as connection:
            connection.ask(_LOCK, (key, until))

    def locked_until(self, key: str, now: float) -> float | None:
        with self._database.reading() as connection:
            row = connection.row(
                "SELECT until FROM tidegate.locks WHERE key = %s AND until > %s", (key, now)
            )
            return None if row is None else float(row[0])

    def lock_sealed(self, key: str, until: float, now: float) -> None:
        with self._database.changing() as connection:
            connection.ask(_LOCK, (key, until))
            self._database.seals.lock(connection, key, until, now)

    def sealed_until(self, key: str, now: float) -> float | None:
        with self._database.reading() as connection:
            return self._database.seals.locked_until(connection, key, now)

    def keep_unrecorded(self, event: bytes) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(connection) as held,
        ):
            id = connection.number(
                "INSERT INTO tidegate.unrecorded_events (event) VALUES (%s) RETURNING id", (event,)
            )
            held.add("unrecorded_events", id, {"id": id, "event": event})

    def unrecorded(self) -> tuple[tuple[int, bytes], ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "unrecorded_events", "id, event", "ORDER BY id", is_whole=True
            )
            return tuple((row[0], bytes(row[1])) for row in rows)

    def forget_unrecorded(self, id: int) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("unrecorded_events", "id = %s", (id,))
            ),
        ):
            connection.ask("DELETE FROM tidegate.unrecorded_events WHERE id = %s", (id,))

    def forget(self, now: float, window_s: float) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask("DELETE FROM tidegate.used_values WHERE expires_at <= %s", (now,))
            connection.ask("DELETE FROM tidegate.failures WHERE at <= %s", (now - window_s,))
            connection.ask("DELETE FROM tidegate.locks WHERE until <= %s", (now,))
            connection.ask(
                "DELETE FROM tidegate.commits"
                " WHERE at < extract(epoch FROM clock_timestamp())::float8 - %s",
                (_COMMITS_S,),
            )
