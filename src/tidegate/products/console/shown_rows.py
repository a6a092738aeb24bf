"""Reads rows as the grid of the Data page shows them, by keys that were read exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.model.requests import ReadRows
from tidegate.model.results import Column, Page
from tidegate.model.row_changes import FoundRow, TableShape
from tidegate.model.schema import ColumnInfo
from tidegate.model.statements import Statement
from tidegate.products.console.cells import cell_of, text_of
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.data_rows import literal_of
from tidegate.products.console.row_pages import exact_literal
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, qualified

_AT_ONCE = 200
_MOST_TEXT = 60_000
"""Rows, and characters of conditions, of one statement."""


class ShownRows:
    """Rows as the grid shows them, with what is masked as it is shown."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def read(
        self,
        place: Place,
        table: str,
        rows: Sequence[FoundRow],
        shape: TableShape,
        columns: Sequence[str],
        caller: Caller,
    ) -> dict[tuple[str, ...], list[Any]]:
        """The cells of these columns, by the texts of the key. Raises: TidegateError, as the
        gate."""
        found, _ = await self._calls.table(caller, place, table)
        dialect = self._calls.source(caller, place.source).dialect
        by_name = {column.name: column for column in found.columns}
        key = sorted([each for each in found.columns if each.key], key=lambda each: each.key)
        names = [*[each.name for each in key], *columns]
        listed = ", ".join([identifier(name, dialect) for name in names])
        shown: dict[tuple[str, ...], list[Any]] = {}
        conditions = [_condition(row, shape, by_name, dialect) for row in rows]
        for some in _portions(conditions):
            text = (
                f"SELECT {listed} FROM {qualified(found.schema, found.name, dialect)}"
                f" WHERE {' OR '.join(some)}"
            )
            sink = _Sink(len(key))
            request = ReadRows(
                Statement(text),
                limits=self._calls.row_limits(len(some) + 1),
                database=place.database,
                sink=sink,
            )
            await self._calls.ask(caller, request, place.source, Page)
            shown |= sink.rows
        return shown


def _condition(
    row: FoundRow, shape: TableShape, columns: dict[str, ColumnInfo], dialect: str
) -> str:
    parts = [
        f"{identifier(name, dialect)} = {_literal(value, columns[name], dialect)}"
        for name, value in [(shape.names[place], row.shown[place]) for place in shape.key]
    ]
    return f"({' AND '.join(parts)})"


def _literal(value: Any, column: ColumnInfo, dialect: str) -> str:
    rules = find(dialect)
    if isinstance(value, str) and not rules.untyped_columns:
        return literal_of(value, column, dialect)
    if isinstance(value, float):
        return exact_literal(value, dialect)
    return rules.literal(value)


def _portions(conditions: Sequence[str]) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for each in conditions:
        if some and (len(some) == _AT_ONCE or size + len(each) > _MOST_TEXT):
            yield some
            some, size = [], 0
        some.append(each)
        size += len(each)
    if some:
        yield some


class _Sink:
    """Makes cells of rows after their keys (`model.results.RowSink`)."""

    writer = None

    def __init__(self, width: int) -> None:
        self._width = width
        self.rows: dict[tuple[str, ...], list[Any]] = {}

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Nothing is made of the columns."""

    async def write(self, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            key = tuple([text_of(value) for value in row[: self._width]])
            self.rows[key] = [cell_of(value) for value in row[self._width :]]
