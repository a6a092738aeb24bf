"""A result that is in memory, as a cursor."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.engines.api import Row, RowCollector
from tidegate.model.results import Column


class RowsCursor:
    """Gives out the rows of a whole result. `affected` counts what a statement changed."""

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Row] = (), *, affected: int = 0
    ) -> None:
        self.columns = tuple(columns)
        self.affected = affected
        self._rows = list(rows)
        self._at = 0

    async def fetch(self, max_rows: int) -> list[Row]:
        rows = self._rows[self._at : self._at + max_rows]
        self._at += len(rows)
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            rows = await self.fetch(wanted)
            sink.write(rows)
            if len(rows) < wanted:
                return

    async def close(self) -> None:
        self._rows = []
