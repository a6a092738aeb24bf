"""Charts of results that are held: the data of their marks, computed of all rows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import structs

from tidegate.charts.chart import Chart
from tidegate.charts.marks import compute_chart
from tidegate.charts.spec import ChartSpec, read_spec
from tidegate.charts.suggestion import MOST_ROWS, suggest_spec
from tidegate.errors import Code, TidegateError
from tidegate.products.console.data_calls import Caller
from tidegate.products.console.data_export import cut_of
from tidegate.products.console.runs import Run, Runs
from tidegate.products.console.stored_rows import StoredRows
from tidegate.results.notes import page_notes

MOST_AT_ONCE = 2
"""Charts that are computed at once."""


class ChartOfRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `runs/ID/chart`: a specification, or none for one that fits the columns."""

    spec: dict[str, Any] | None = None


class RunCharts:
    """Charts of what an operator's runs have given."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._room = asyncio.Semaphore(MOST_AT_ONCE)

    async def compute(self, id: str, body: ChartOfRun, caller: Caller) -> bytes:
        """The specification and its chart as JSON, both null where no column can be drawn.

        Raises: TidegateError ARGUMENT_INVALID, RESULT_GONE.
        """
        run = await self._runs.held(id, caller)
        if not run.is_over:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The statement is still running: its rows are not all there",
                hint="Plot them when it has ended.",
            )
        read = None if body.spec is None else read_spec(body.spec)
        async with self._room:
            return await asyncio.to_thread(_chart_of, run, body.spec, read)


def _chart_of(run: Run, spec: dict[str, Any] | None, read: ChartSpec | None) -> bytes:
    if read is None:
        spec = suggest_spec(run.rows.columns, _first_rows(run.rows))
        if spec is None:
            return msgspec.json.encode({"spec": None, "chart": None})
        read = read_spec(spec)
    chart = compute_chart(read, run.rows.columns, run.rows.values())
    notes = [cut_of(run), *([] if run.page is None else page_notes(run.page))]
    said = tuple([f"{each[0].upper()}{each[1:]}." for each in notes if each])
    whole: Chart = structs.replace(chart, notes=(*said, *chart.notes))
    return msgspec.json.encode({"spec": spec, "chart": whole})


def _first_rows(rows: StoredRows) -> list[list[Any]]:
    found: list[list[Any]] = []
    for part in rows.values():
        found += part
        if len(found) >= MOST_ROWS:
            break
    return found
