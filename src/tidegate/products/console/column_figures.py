"""What the columns of a table hold: NULLs and the distribution of values of its first rows.

They are read through the gate, with the operator's rights: masks and row filters bind, and the call
is on record. Of a masked column nothing is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.charts.distribution import Distribution, distribution_of
from tidegate.model.requests import ReadRows
from tidegate.model.results import Column, Page
from tidegate.model.statements import Statement
from tidegate.products.console.data_calls import Caller, DataCalls, Place, check_sql
from tidegate.products.console.row_pages import order_of, rows_statement
from tidegate.results.row_stream import WriterSink

MOST_ROWS = 10_000
MOST_COLUMNS = 60
_LONGEST = 200
"""Characters of a text by which texts are distinguished."""


class ColumnsOf(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `columns`."""

    table: str


class _Cells:
    """Keeps the cells of the columns, long ones cut (`model.results.RowWriter`)."""

    def __init__(self) -> None:
        self.columns: tuple[Column, ...] = ()
        self.cells: list[list[Any]] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.cells = [[] for _ in columns]

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        for cells, values in zip(self.cells, zip(*rows, strict=True), strict=False):
            cells += [_cut(value) for value in values]


class ColumnFigures:
    """Figures of the columns of tables, within the operator's rights."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def read(self, body: ColumnsOf, caller: Caller) -> bytes:
        """The figures of each column as JSON. Raises: TidegateError TABLE_UNKNOWN, UNSUPPORTED; as
        the gate."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its columns are not counted")
        table, _ = await self._calls.table(caller, body, body.table)
        names = [each.name for each in table.columns if not each.masked][:MOST_COLUMNS]
        if not names:
            none: dict[str, Any] = {"rows": 0, "whole": False, "filtered": False, "columns": []}
            return msgspec.json.encode(none)
        order = order_of(table, [], source.dialect)
        text = rows_statement(table, order, [], source.dialect, names)
        cells = _Cells()
        request = ReadRows(
            Statement(text),
            limits=self._calls.row_limits(MOST_ROWS),
            database=body.database,
            sink=WriterSink(cells),
        )
        page, _ = await self._calls.ask(caller, request, body.source, Page, tool="columns")
        found = await asyncio.to_thread(_figures_of, cells)
        fields = {
            "rows": page.row_count,
            "whole": not page.truncations,
            "filtered": bool(page.filtered),
            "columns": found,
        }
        return msgspec.json.encode(fields)


def _figures_of(found: _Cells) -> list[Distribution]:
    return [
        distribution_of(column, cells)
        for column, cells in zip(found.columns, found.cells, strict=True)
    ]


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else value[:_LONGEST]
    if isinstance(value, (bytes, bytearray, memoryview, list, dict, msgspec.Raw)):
        return ""
    return value
