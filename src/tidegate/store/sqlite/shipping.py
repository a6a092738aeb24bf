"""How far the record is shipped, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from tidegate.store.shipping import Position
from tidegate.store.sqlite.connection import StateConnection


class SqliteShippingStore:
    """`api.ShippingStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def set_destinations(self, gate: str, names: Collection[str]) -> None:
        gone = set(self.destinations(gate)) - set(names)
        with self._file.changing() as connection:
            connection.executemany(
                "DELETE FROM shipping_destinations WHERE gate = ? AND name = ?",
                [(gate, name) for name in gone],
            )
            connection.executemany(
                "INSERT INTO shipping_destinations (gate, name) VALUES (?, ?)"
                " ON CONFLICT DO NOTHING",
                [(gate, name) for name in names],
            )

    def destinations(self, gate: str) -> tuple[str, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM shipping_destinations WHERE gate = ? ORDER BY name", (gate,)
            )
            return tuple(name for (name,) in cast("list[tuple[str]]", rows.fetchall()))

    def set_followed(self, gate: str, name: str) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE shipping_destinations SET followed = 1 WHERE gate = ? AND name = ?",
                (gate, name),
            )

    def followed(self, gate: str) -> frozenset[str]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM shipping_destinations WHERE gate = ? AND followed", (gate,)
            )
            return frozenset(name for (name,) in cast("list[tuple[str]]", rows.fetchall()))

    def positions(self, gate: str, destination: str) -> dict[str, Position]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT segment, offset, number, complete FROM shipping_positions"
                " WHERE gate = ? AND destination = ?",
                (gate, destination),
            )
            found = cast("list[tuple[str, int, int, int]]", rows.fetchall())
        return {
            segment: Position(offset, number, bool(complete))
            for segment, offset, number, complete in found
        }

    def save(self, gate: str, destination: str, positions: Mapping[str, Position]) -> None:
        with self._file.changing() as connection:
            connection.executemany(
                "INSERT INTO shipping_positions SELECT gate, name, ?3, ?4, ?5, ?6"
                " FROM shipping_destinations WHERE gate = ?1 AND name = ?2"
                " ON CONFLICT (gate, destination, segment) DO UPDATE SET offset = excluded.offset,"
                " number = excluded.number, complete = excluded.complete",
                [
                    (gate, destination, segment, each.offset, each.number, int(each.complete))
                    for segment, each in positions.items()
                ],
            )

    def forget(self, gate: str, segments: Collection[str]) -> None:
        with self._file.changing() as connection:
            connection.executemany(
                "DELETE FROM shipping_positions WHERE gate = ? AND segment = ?",
                [(gate, segment) for segment in segments],
            )
