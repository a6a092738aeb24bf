"""The rows of a query over resources, for the gate."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from tidegate.engines.api import Row, RowCollector
from tidegate.model.results import Truncation, UpstreamUse
from tidegate.products.cloud.engine.statement_run import StatementRun
from tidegate.products.cloud.engine.statement_work import StatementWork

_CHUNK: Final = 512


class StatementCursor:
    """The rows of a run, for the gate."""

    affected = 0

    def __init__(self, run: StatementRun, work: StatementWork) -> None:
        self._run = run
        self._work = work
        self._closed = False
        self.columns = run.columns
        self.truncations: tuple[Truncation, ...] = ()
        self.upstream = UpstreamUse(0, 0)

    async def fetch(self, max_rows: int) -> list[Row]:
        rows = await self._work.in_thread(self._run.take, max_rows)
        self._note()
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            rows = await self.fetch(min(wanted, _CHUNK))
            sink.write(rows)
            if self._run.has_ended:
                if rows:
                    sink.write([])
                return

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._note()
        self._work.end()
        await self._work.in_thread(self._run.close)

    def _note(self) -> None:
        self.truncations = tuple(self._work.fetches.truncations)
        fetches = self._work.fetches
        self.upstream = structs.replace(fetches.counts.use, skipped=fetches.skipped)
