"""Stamps: the MACs of rows that give no right, and that people and gates trust all the same.

A text that a person has checked, a message that a gate is going to sign and send, where the state
was last: who can write the tables must not make one. A stamp is a MAC over the row alone, in
another table. So a row that was put back counts again, which says what was true once; where that
would matter, rows are sealed in lists (`seals.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidegate.store.held_rows import Dialect, Row
from tidegate.store.seal_lives import SealLives
from tidegate.store.sealed_lists import SealKeys, StampedArea

MEANING: Final[Mapping[StampedArea, tuple[str, ...]]] = {
    "about": ("state_id", "system_id", "timeline", "epoch_at"),
    "answers": ("handle", "actor", "source_id", "question", "sql"),
    "changes": (
        "id", "source", "source_id", "actor", "actor_name", "made_at", "expires_at", "state",
        "tables", "rows", "size", "approval", "call_id", "undoes", "undone_by", "database",
    ),
    "confirmed_pairs": (
        "id", "source_id", "question", "sql", "slots", "tables", "schema_digest", "result_digest",
        "confirmed_by", "confirmed_at",
    ),
    "query_runs": ("query_id", "operator", "version"),
    "query_versions": (
        "query_id", "version", "text", "parameters", "chart", "changed_by", "changed_at",
    ),
    "webhook_messages": ("id", "type", "approval", "body", "made_at"),
}  # fmt: skip
"""The columns under the MAC, those of the key first."""
_OF_SOURCES: Final[tuple[StampedArea, ...]] = ("answers", "changes", "confirmed_pairs")
OfSource = Mapping[StampedArea, Sequence[Row]]
_OF_TWO: frozenset[StampedArea] = frozenset({"query_runs", "query_versions"})
"""Areas whose key is two columns."""
_NUMBERS = frozenset({"changed_at", "confirmed_at", "epoch_at", "expires_at", "made_at"})
"""Columns that hold a float, whatever was written."""
_QUOTED = frozenset({"text"})


class Stamps:
    """The stamps of one state. Without a key there are none, and all rows count."""

    def __init__(self, dialect: Dialect, lives: SealLives) -> None:
        self._dialect = dialect
        self._lives = lives
        self._table = f"{dialect.prefix}stamps"

    def write(self, connection: Any, area: StampedArea, values: Mapping[str, Any]) -> None:
        """Within a transaction, stamp a row as it is written there."""
        keys = self._lives.keys
        if keys is not None:
            self._write(connection, keys, area, [values[name] for name in MEANING[area]])

    def is_good(self, connection: Any, area: StampedArea, values: Sequence[Any]) -> bool:
        """Whether a row, as its columns under the MAC were read, has its stamp."""
        return bool(self.good(connection, area, [tuple(values)]))

    def has_mac(self, area: StampedArea, values: Sequence[Any], mac: bytes | None) -> bool:
        """Whether a row has this stamp; True without a key."""
        keys = self._lives.keys
        return keys is None or (mac is not None and bytes(mac) == _mac(keys, area, values))

    def stamp(self, connection: Any, area: StampedArea) -> None:
        """Within a transaction, stamp the rows of an area as they are."""
        keys = self._lives.keys
        if keys is not None:
            self._stamp(connection, keys, area)

    def good(self, connection: Any, area: StampedArea, rows: Sequence[Row]) -> list[Row]:
        """Those of the rows that have their stamps. They begin with the columns under the MAC."""
        keys = self._lives.keys
        if keys is None or not rows:
            return list(rows)
        mark, size = self._dialect.mark, len(MEANING[area])
        found: dict[str, bytes] = {}
        for start in range(0, len(rows), 500):
            names = [_name_of(area, row) for row in rows[start : start + 500]]
            some = self._dialect.run(
                connection,
                f"SELECT name, mac FROM {self._table} WHERE area = {mark}"
                f" AND name IN ({', '.join([mark] * len(names))})",
                (area, *names),
            )
            found.update((name, bytes(mac)) for name, mac in some)
        return [
            row for row in rows if found.get(_name_of(area, row)) == _mac(keys, area, row[:size])
        ]

    def select(
        self, connection: Any, area: StampedArea, rest: str, values: Sequence[Any] = ()
    ) -> list[Row]:
        """The columns under the MAC of the rows that have their stamps."""
        sql = f"SELECT {columns_of(area)} FROM {self._dialect.prefix}{area} {rest}"
        return self.good(connection, area, self._dialect.run(connection, sql, values))

    def of_source(self, connection: Any, source_id: str) -> OfSource:
        """The rows that go with a source to its new id."""
        rest = f"WHERE source_id = {self._dialect.mark}"
        return {area: self.select(connection, area, rest, (source_id,)) for area in _OF_SOURCES}

    def rename_source(self, connection: Any, had: OfSource, source_id: str, source: str) -> None:
        """Within a transaction that gives these rows a new id and name of their source, stamp them
        so."""
        for area, rows in had.items():
            for row in rows:
                values: dict[str, Any] = dict(zip(MEANING[area], row, strict=True))
                values |= {"source_id": source_id, "source": source}
                self.write(connection, area, values)

    def missing(self, connection: Any) -> tuple[str, ...]:
        """The rows that have not their stamps, for people."""
        found: list[str] = []
        for area in _areas(self._dialect):
            sql = f"SELECT {columns_of(area)} FROM {self._dialect.prefix}{area}"
            rows = self._dialect.run(connection, sql, ())
            good = {_name_of(area, row) for row in self.good(connection, area, rows)}
            names = [_name_of(area, row) for row in rows]
            found += [f"the row {name} of `{area}`" for name in names if name not in good]
        return tuple(found)

    def sweep(self, connection: Any, area: StampedArea) -> None:
        """Within a transaction, remove the stamps of rows that are no more."""
        if self._lives.keys is None:
            return
        first, second = MEANING[area][:2]
        name = f"{first} || '/' || {second}" if area in _OF_TWO else first
        self._dialect.run(
            connection,
            f"DELETE FROM {self._table} WHERE area = {self._dialect.mark} AND name NOT IN"
            f" (SELECT {name} FROM {self._dialect.prefix}{area})",
            (area,),
        )

    def remove(self, connection: Any, area: StampedArea, names: Sequence[str]) -> None:
        """Within a transaction, remove the stamps of rows that go."""
        if self._lives.keys is not None and names:
            mark = self._dialect.mark
            self._dialect.run(
                connection,
                f"DELETE FROM {self._table} WHERE area = {mark}"
                f" AND name IN ({', '.join([mark] * len(names))})",
                (area, *names),
            )

    def stamp_all(
        self, connection: Any, keys: SealKeys, areas: Sequence[StampedArea] | None = None
    ) -> None:
        """Within a transaction in which no one else changes them, stamp all rows as they are: of
        all areas, or of these."""
        for area in areas or tuple(MEANING):
            sql = f"DELETE FROM {self._table} WHERE area = {self._dialect.mark}"
            self._dialect.run(connection, sql, (area,))
            if area in _areas(self._dialect):
                self._stamp(connection, keys, area)

    def _stamp(self, connection: Any, keys: SealKeys, area: StampedArea) -> None:
        sql = f"SELECT {columns_of(area)} FROM {self._dialect.prefix}{area}"
        for row in self._dialect.run(connection, sql, ()):
            self._write(connection, keys, area, row)

    def _write(
        self, connection: Any, keys: SealKeys, area: StampedArea, row: Sequence[Any]
    ) -> None:
        mark = self._dialect.mark
        self._dialect.run(
            connection,
            f"INSERT INTO {self._table} (area, name, mac) VALUES ({mark}, {mark}, {mark})"
            " ON CONFLICT (area, name) DO UPDATE SET mac = excluded.mac",
            (area, _name_of(area, row), _mac(keys, area, row)),
        )


def _areas(dialect: Dialect) -> list[StampedArea]:
    """A file is on no server."""
    return [area for area in MEANING if dialect.is_foreign or area != "about"]


def columns_of(area: StampedArea) -> str:
    """The columns under the MAC, as SQL has them."""
    return ", ".join(f'"{name}"' if name in _QUOTED else name for name in MEANING[area])


def _name_of(area: StampedArea, row: Sequence[Any]) -> str:
    return f"{row[0]}/{row[1]}" if area in _OF_TWO else str(row[0])


def _mac(keys: SealKeys, area: StampedArea, row: Sequence[Any]) -> bytes:
    values = [
        float(value) if name in _NUMBERS and value is not None else value
        for name, value in zip(MEANING[area], row, strict=True)
    ]
    return keys.row(f"stamp of {area}", values)
