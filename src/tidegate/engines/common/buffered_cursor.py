"""A result that is read at once because other statements of its transaction follow."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.engines.api import Cursor, Row, RowCollector, counted_of
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column

MAX_BYTES = 67_108_864
"""About how much the results of a transaction that are read so keep in memory together."""
_CHUNK_ROWS = 512


class BufferBudget:
    """How much the open results of one transaction keep in memory."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> None:
        """Keep so many bytes more. Raises: TidegateError LIMIT_BYTES."""
        if self.size + size > MAX_BYTES:
            raise TidegateError(
                Code.LIMIT_BYTES,
                "Results that are read in parts in a transaction have"
                f" {MAX_BYTES:,} bytes at most, all together, on this source.",
                hint="Close some, select less, or read them as a whole.",
            )
        self.size += size


class BufferedCursor:
    """All rows of a result. The connection that they came by is free for other statements."""

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: list[Row],
        affected: int,
        budget: BufferBudget,
        *,
        counted: int = 0,
    ) -> None:
        self.columns = columns
        self.affected = affected
        self.counted = max(counted, affected)
        self._rows = rows
        self._next = 0
        self._budget = budget
        self._size = 0

    @classmethod
    async def of(cls, cursor: Cursor, most_rows: int, budget: BufferBudget) -> BufferedCursor:
        """Read a cursor, up to so many rows, and close it. What it keeps is taken from `budget`
        until it is closed.

        Raises: TidegateError LIMIT_BYTES for more than that has, and what reading it raises.
        """
        rows: list[Row] = []
        buffered = cls(cursor.columns, rows, cursor.affected, budget)
        try:
            while len(rows) < most_rows:
                found = await cursor.fetch(min(_CHUNK_ROWS, most_rows - len(rows)))
                if not found:
                    break
                buffered._keep(found)
        except BaseException:
            await buffered.close()
            raise
        finally:
            await cursor.close()
        buffered.columns, buffered.affected = cursor.columns, cursor.affected
        buffered.counted = counted_of(cursor)
        return buffered

    def _keep(self, rows: list[Row]) -> None:
        size = sum(map(_weight, rows))
        self._budget.take(size)
        self._size += size
        self._rows += rows

    async def fetch(self, max_rows: int) -> list[Row]:
        return list(self._taken(max_rows))

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(self._taken(wanted))

    async def close(self) -> None:
        self._budget.size -= self._size
        self._rows, self._next, self._size = [], 0, 0

    def _taken(self, max_rows: int) -> Sequence[Row]:
        first, self._next = self._next, self._next + max_rows
        return self._rows[first : self._next]


def _weight(row: Row) -> int:
    return 64 + sum([len(value) if isinstance(value, (str, bytes)) else 32 for value in row])
