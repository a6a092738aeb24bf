"""Edits rows through the gate as the console does: reads their images, then changes them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from support.undo_shops import AGENT, Gate, Shop
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.model.editing import Editability
from tidegate.model.requests import Disconnect
from tidegate.model.row_changes import (
    ChangedRows,
    ChangeRows,
    DescribeEditing,
    FoundRow,
    FoundRows,
    ReadImages,
    RowEdit,
)

ENGINES = ("sqlite", "postgres", "mysql", "duckdb", "postgres-debian")
FEEDS = ("sqlite", "postgres", "mysql", "duckdb")
"""Those that add the rows of a file."""
SCHEMAS = {"sqlite": "main", "postgres": "public", "duckdb": "main"}
Key = tuple[Any, ...]


def schema_of(shop: Shop) -> str:
    """The schema of the shop's tables."""
    return SCHEMAS.get(shop.name) or str(shop.rows("SELECT DATABASE()")[0][0])


async def meanwhile(gate: Gate, text: str) -> None:
    """Another program changes the database, around the gate."""
    with suppress(TidegateError):  # it was not connected
        await gate.ask(Disconnect(), AGENT)  # one program at a time has a file of DuckDB
    gate.shop.script(text)


class Editor:
    """Rows of one table of a shop."""

    def __init__(self, gate: Gate, table: str = "items", actor: Actor = AGENT) -> None:
        self.gate = gate
        self.table = table
        self.actor = actor
        self.schema = schema_of(gate.shop)

    async def read(self, *keys: Key) -> FoundRows:
        """The rows with these keys, as they are shown."""
        request = ReadImages(table=self.table, schema=self.schema, keys=keys)
        found = await self.gate.ask(request, self.actor)
        assert isinstance(found, FoundRows)
        return found

    async def describe(self) -> Editability:
        request = DescribeEditing(table=self.table, schema=self.schema)
        found = await self.gate.ask(request, self.actor)
        assert isinstance(found, Editability)
        return found

    def update(self, found: FoundRows, place: int, **values: Any) -> RowEdit:
        """An edit of a row that was read."""
        row = found.rows[place]
        assert row is not None
        return RowEdit(row.image, self.values(found, **values))

    def delete(self, found: FoundRows, place: int) -> RowEdit:
        row = found.rows[place]
        assert row is not None
        return RowEdit(row.image, None)

    def insert(self, found: FoundRows, **values: Any) -> RowEdit:
        return RowEdit(None, self.values(found, **values))

    def values(self, found: FoundRows, **values: Any) -> tuple[tuple[int, Any], ...]:
        names = found.shape.names
        return tuple([(names.index(name), value) for name, value in values.items()])

    def request(self, found: FoundRows, *edits: RowEdit) -> ChangeRows:
        return ChangeRows(table=self.table, schema=self.schema, shape=found.shape, edits=edits)

    async def submit(self, found: FoundRows, *edits: RowEdit) -> ChangedRows:
        done = await self.gate.ask(self.request(found, *edits), self.actor)
        assert isinstance(done, ChangedRows)
        return done

    async def refused(self, found: FoundRows, *edits: RowEdit) -> TidegateError:
        """The error that the edits end with."""
        return await self.gate.error(self.request(found, *edits), self.actor)

    def shown(self, row: FoundRow | None, found: FoundRows) -> dict[str, Any]:
        """A row by the names of its columns."""
        assert row is not None
        return dict(zip(found.shape.names, row.shown, strict=True))
