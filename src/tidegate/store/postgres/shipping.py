"""How far the record of each gate is shipped, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.store.postgres.database import Database
from tidegate.store.shipping import Position


class PostgresShippingStore:
    """`api.ShippingStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_destinations(self, gate: str, names: Collection[str]) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "DELETE FROM tidegate.shipping_destinations"
                " WHERE gate = %s AND name <> ALL(%s::text[])",
                (gate, list(names)),
            )
            connection.ask(
                "INSERT INTO tidegate.shipping_destinations (gate, name)"
                " SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING",
                (gate, list(names)),
            )

    def destinations(self, gate: str) -> tuple[str, ...]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT name FROM tidegate.shipping_destinations WHERE gate = %s ORDER BY name",
                (gate,),
            )
            return tuple(row[0] for row in rows)

    def set_followed(self, gate: str, name: str) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "UPDATE tidegate.shipping_destinations SET followed = true"
                " WHERE gate = %s AND name = %s",
                (gate, name),
            )

    def followed(self, gate: str) -> frozenset[str]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT name FROM tidegate.shipping_destinations WHERE gate = %s AND followed",
                (gate,),
            )
            return frozenset(row[0] for row in rows)

    def positions(self, gate: str, destination: str) -> dict[str, Position]:
        with self._database.reading() as connection:
            rows = connection.ask(
                'SELECT segment, "offset", number, complete FROM tidegate.shipping_positions'
                " WHERE gate = %s AND destination = %s",
                (gate, destination),
            )
            return {row[0]: Position(*row[1:]) for row in rows}

    def save(self, gate: str, destination: str, positions: Mapping[str, Position]) -> None:
        with self._database.changing(settles=False) as connection:
            for segment, each in positions.items():
                connection.ask(
                    "INSERT INTO tidegate.shipping_positions SELECT gate, name, %s, %s, %s, %s"
                    " FROM tidegate.shipping_destinations WHERE gate = %s AND name = %s"
                    ' ON CONFLICT (gate, destination, segment) DO UPDATE SET "offset" ='
                    ' excluded."offset", number = excluded.number, complete = excluded.complete',
                    (segment, each.offset, each.number, each.complete, gate, destination),
                )

    def forget(self, gate: str, segments: Collection[str]) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "DELETE FROM tidegate.shipping_positions"
                " WHERE gate = %s AND segment = ANY(%s::text[])",
                (gate, list(segments)),
            )
