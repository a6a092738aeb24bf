"""What callers' later calls need, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.store.carried import MOST_OF_OWNER, MOST_SWEPT, Carried
from tidegate.store.postgres.database import Database

_PUT = """
WITH surplus AS (
    SELECT id FROM tidegate.carried_values
    WHERE kind = %(kind)s AND owner = %(owner)s AND part = 0 AND id <> %(id)s
    ORDER BY expires_at DESC OFFSET %(most)s
), old AS (
    SELECT kind, id, part FROM tidegate.carried_values
    WHERE kind = %(kind)s AND id = %(id)s AND part >= %(count)s
        OR kind = %(kind)s AND id = ANY (ARRAY (SELECT id FROM surplus))
    FOR UPDATE SKIP LOCKED
), ended AS (
    SELECT kind, id, part FROM tidegate.carried_values
    WHERE expires_at <= %(now)s AND (kind, id) <> (%(kind)s, %(id)s)
    ORDER BY expires_at LIMIT %(swept)s FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM tidegate.carried_values AS value
    USING (TABLE old UNION TABLE ended) AS old
    WHERE (value.kind, value.id, value.part) = (old.kind, old.id, old.part)
)
INSERT INTO tidegate.carried_values (kind, id, part, owner, body, expires_at)
SELECT %(kind)s, %(id)s, part, %(owner)s, body, %(expires_at)s
FROM unnest(%(numbers)s::bigint[], %(bodies)s::bytea[]) AS given (part, body)
ON CONFLICT (kind, id, part) DO UPDATE
SET owner = excluded.owner, body = excluded.body, expires_at = excluded.expires_at
"""
"""One statement, so one way to the server. Rows that another gate is removing are left to it."""

_SWEEP = """
DELETE FROM tidegate.carried_values WHERE (kind, id, part) IN (
    SELECT kind, id, part FROM tidegate.carried_values
    WHERE expires_at <= %s ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED
)
"""


class PostgresCarriedStore:
    """`carried.CarriedStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, value: Carried, parts: Sequence[bytes], now: float, most: int = MOST_OF_OWNER
    ) -> None:
        kind, id, owner, expires_at = value
        with self._database.changing(settles=False) as connection:
            connection.ask(_PUT, {
                "kind": kind, "id": id, "owner": owner, "expires_at": expires_at, "now": now,
                "most": most - 1, "numbers": list(range(len(parts))), "bodies": list(parts),
                "count": len(parts), "swept": MOST_SWEPT,
            })  # fmt: skip

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

    def sweep(self, now: float) -> int:
        with self._database.changing(settles=False) as connection:
            return connection.change(_SWEEP, (now, MOST_SWEPT))
