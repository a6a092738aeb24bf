"""What callers' later calls need, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.store.carried import MOST_OF_OWNER, Carried
from tidegate.store.postgres.database import Database


class PostgresCarriedStore:
    """`carried.CarriedStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, value: Carried, parts: Sequence[bytes], now: float, most: int = MOST_OF_OWNER
    ) -> None:
        kind, id, owner, expires_at = value
        with self._database.changing(settles=False) as connection:
            connection.ask(
                # Rows that another gate is removing are left to it: no gate waits for another.
                "DELETE FROM tidegate.carried_values WHERE (kind, id, part) IN (SELECT kind, id,"
                " part FROM tidegate.carried_values WHERE expires_at <= %s"
                " FOR UPDATE SKIP LOCKED)",
                (now,),
            )
            connection.ask(
                "DELETE FROM tidegate.carried_values WHERE (kind, id, part) IN (SELECT kind, id,"
                " part FROM tidegate.carried_values WHERE kind = %s AND id IN (SELECT id FROM"
                " tidegate.carried_values WHERE kind = %s AND owner = %s AND part = 0"
                " AND id <> %s ORDER BY expires_at DESC OFFSET %s) FOR UPDATE SKIP LOCKED)",
                (kind, kind, owner, id, most - 1),
            )
            connection.ask(
                "DELETE FROM tidegate.carried_values WHERE kind = %s AND id = %s AND part >= %s",
                (kind, id, len(parts)),
            )
            connection.ask(
                "INSERT INTO tidegate.carried_values (kind, id, part, owner, body, expires_at)"
                " SELECT %s, %s, part, %s, body, %s"
                " FROM unnest(%s::bigint[], %s::bytea[]) AS given (part, body)"
                " ON CONFLICT (kind, id, part) DO UPDATE SET owner = excluded.owner,"
                " body = excluded.body, expires_at = excluded.expires_at",
                (kind, id, owner, expires_at, list(range(len(parts))), list(parts)),
            )

    def read(
        self, kind: str, id: str, now: float, first: int = 0, last: int = 0
    ) -> tuple[tuple[int, bytes], ...]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT part, body FROM tidegate.carried_values WHERE kind = %s AND id = %s"
                " AND part BETWEEN %s AND %s AND expires_at > %s ORDER BY part",
                (kind, id, first, last, now),
            )
            return tuple([(part, bytes(body)) for part, body in rows])

    def remove(self, kind: str, id: str) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "DELETE FROM tidegate.carried_values WHERE kind = %s AND id = %s", (kind, id)
            )
