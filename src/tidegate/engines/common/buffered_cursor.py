"""A result that is read at once because other statements of its transaction follow."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.engines.api import Cursor, Row, RowCollector
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column

MAX_BYTES = 67_108_864
"""About how much of a result is kept in memory."""
_CHUNK_ROWS = 512


class BufferedCursor:
    """All rows of a result. The connection that they came by is free for other statements."""

    def __init__(self, columns: tuple[Column, ...], rows: list[Row], affected: int) -> None:
        self.columns = columns
        self.affected = affected
        self._rows = rows
        self._next = 0

    @classmethod
    async def of(cls, cursor: Cursor, most_rows: int) -> BufferedCursor:
        """Read a cursor, up to so many rows, and close it.

        Raises: TidegateError LIMIT_BYTES for more than `MAX_BYTES`, and what reading it raises.
        """
        rows: list[Row] = []
        size = 0
        try:
            while len(rows) < most_rows:
                found = await cursor.fetch(min(_CHUNK_ROWS, most_rows - len(rows)))
                if not found:
                    break
                rows += found
                size += sum(map(_weight, found))
                if size > MAX_BYTES:
                    raise TidegateError(
                        Code.LIMIT_BYTES,
                        f"A result that is read in parts in a transaction has {MAX_BYTES:,} bytes"
                        " at most on this source.",
                        hint="Select less, or read it as a whole.",
                    )
        finally:
            await cursor.close()
        return cls(cursor.columns, rows, cursor.affected)

    async def fetch(self, max_rows: int) -> list[Row]:
        return list(self._taken(max_rows))

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(self._taken(wanted))

    async def close(self) -> None:
        self._rows, self._next = [], 0

    def _taken(self, max_rows: int) -> Sequence[Row]:
        first, self._next = self._next, self._next + max_rows
        return self._rows[first : self._next]


def _weight(row: Row) -> int:
    return 64 + sum([len(value) if isinstance(value, (str, bytes)) else 32 for value in row])
