"""A chart in place of the rows of a result, for clients that show pages.

The statement runs as a read, and the chart is computed from all rows that the limits let through:
only the columns that it shows are kept. The answer has the chart's own table, so that it suffices
as text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import structs

from tidegate.charts.chart import Chart
from tidegate.charts.columns import ChartColumns
from tidegate.charts.marks import compute_chart
from tidegate.charts.spec import ChartSpec, read_spec
from tidegate.model.requests import Query
from tidegate.model.results import Column, Page, Truncation
from tidegate.results.json_values import text
from tidegate.results.notes import cut_note, page_notes
from tidegate.results.row_stream import WriterSink
from tidegate.surfaces.tool_context import NO_TERMS, ApprovalTerms, ToolContext

MOST_MARKS = 500
"""Marks of a chart whose data a model reads as well."""
_VALUE_BYTES = 16
"""About what a number or a time takes."""


class _ChartRows:
    """Keeps the columns that a chart shows (`model.results.BoundedRowWriter`)."""

    def __init__(self, spec: ChartSpec, most_bytes: int) -> None:
        self._spec = spec
        self._most = most_bytes
        self._places: list[int] = []
        self.columns: list[Column] = []
        self.rows: list[list[Any]] = []
        self.size = 0
        self.cut: Truncation | None = None

    @property
    def count(self) -> int:
        return len(self.rows)

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a column that the chart cannot show."""
        places = ChartColumns(self._spec, columns, ()).places
        self._places = sorted(set(places.values()))
        self.columns = [columns[place] for place in self._places]

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        if self.cut is not None:
            return
        for row in rows:
            kept = [row[place] for place in self._places]
            size = sum(map(_size_of, kept))
            if self.size + size > self._most:
                self.cut = Truncation("bytes", self._most, len(self.rows))
                return
            self.size += size
            self.rows.append(kept)


def _size_of(value: Any) -> int:
    """About the bytes of a value in memory."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return len(cast("bytes", value))
    if isinstance(value, (list, tuple, dict, msgspec.Raw)):
        return len(text(cast("Any", value)) or "")
    return _VALUE_BYTES


async def chart_of(
    context: ToolContext,
    query: Query,
    source: str | None,
    spec: Mapping[str, Any],
    terms: ApprovalTerms = NO_TERMS,
) -> tuple[Chart, Page]:
    """The chart of what a query gives, with what it lacks among its notes.

    Raises: TidegateError ARGUMENT_INVALID; as the gate.
    """
    read = read_spec(spec)
    rows = _ChartRows(read, query.limits.max_bytes)
    request = structs.replace(query, keep_rest=False, sink=WriterSink(rows, lambda: rows.size))
    page = await context.handle(request, source, Page, terms=terms, reads_only=True)
    chart = await asyncio.to_thread(compute_chart, read, rows.columns, [rows.rows], MOST_MARKS)
    said = [each for each in (cut_note(page), *page_notes(page)) if each]
    return structs.replace(chart, notes=(*said, *chart.notes)), page


def drawing_of(chart: Chart) -> bytes:
    """What the page draws of a chart, without its table, as JSON."""
    fields: dict[str, Any] = msgspec.to_builtins(chart)
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if name not in ("columns", "rows")}
    )
