"""Streams rows from a worker process to the caller."""

from __future__ import annotations

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.worker.process import Body, WorkerProcess
from tidegate.model.results import Column
from tidegate.products.duckdb.engine.messages import Fill, Filled, Portion, Rows, Run, Started
from tidegate.results.column_kinds import column_of
from tidegate.results.page import PageBuilder

READ_AHEAD = 2_048
"""Rows that a request for more brings at least, unless they are large, or belong to a change."""


class ProcessCursor:
    """A statement in a worker process, which is free again as soon as the last row is read."""

    def __init__(self, running: RunningStatement[WorkerProcess]) -> None:
        self.columns: tuple[Column, ...] = ()
        self.affected = 0
        self._running = running
        self._ready: Rows = []
        self._ended = False
        self._untouched = True

    async def begin(self, run: Run) -> None:
        """Start the statement. It has ended if this raises."""
        started = await self._ask("run", run, Started)
        self.columns = tuple([column_of(name, kind) for name, kind in started.columns])
        self._take(started.portion)

    async def fetch(self, max_rows: int) -> list[Row]:
        self._untouched = False
        while len(self._ready) < max_rows and not self._ended:
            rest = max_rows - len(self._ready)
            wanted = rest if self._running.writes else max(rest, READ_AHEAD)
            self._take(await self._ask("fetch", wanted, Portion))
        rows, self._ready = self._ready[:max_rows], self._ready[max_rows:]
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        """As `Cursor.fetch_into`; the worker builds a page that needs more than one request."""
        if not self._ended and self._untouched and isinstance(sink, PageBuilder) and sink.empty:
            self._untouched = False
            filled = await self._ask("fill", Fill(sink.limits, sink.cells), Filled)
            sink.adopt(filled.page, filled.rest.rows)
            self._take(Portion([], filled.rest.ended, filled.rest.affected))
            return
        while wanted := sink.remaining:
            sink.write(await self.fetch(wanted))

    async def close(self) -> None:
        self._ready = []
        await self._running.close()

    async def _ask(self, verb: str, body: object, kind: type[Body]) -> Body:
        """The worker's answer. The statement has ended if this raises."""
        async with self._running as worker:
            return await worker.ask(verb, body, kind)

    def _take(self, portion: Portion) -> None:
        self._ready += portion.rows
        if portion.ended:
            self._ended = True
            self.affected = portion.affected
            self._running.release()
