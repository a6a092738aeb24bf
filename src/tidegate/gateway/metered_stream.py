"""Streams the rows of a call that costs budgets of rows or bytes: no row leaves that is not held.

What is held is small, and is replaced as rows leave. Bytes are those of the rows as JSON, or of the
messages where rows pass as the database has encoded them.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.budgets.ledger import BudgetLedger
from tidegate.budgets.spending import Spending, SpendingEnded, StreamRoom
from tidegate.errors import TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import (
    Column,
    DataRowCursor,
    DataRowSink,
    Limits,
    RowCursor,
    RowSink,
    Truncation,
    gives_data_rows,
    takes_data_rows,
)
from tidegate.results.json_values import encode_rows
from tidegate.results.row_stream import CHUNK_BYTES, MOST_DATA_ROWS, Rows, RowStream

_ANY = StreamRoom()


class Allowance(NamedTuple):
    """What a stream may send: what its call holds, and where it gets more."""

    spending: Spending
    budgets: BudgetLedger
    cancellation: Cancellation

    @property
    def room(self) -> StreamRoom:
        """What may leave now."""
        return self.spending.stream or _ANY

    def has_room(self, rows: int, size: int) -> bool:
        """Whether so many rows may leave."""
        room = self.room
        most_rows, most_bytes = room.rows_room, room.bytes_room
        return (most_rows is None or rows <= most_rows - room.rows_used) and (
            most_bytes is None or size <= most_bytes - room.bytes_used
        )

    def use(self, rows: int, size: int) -> None:
        """Count rows that leave."""
        self.room.rows_used += rows
        self.room.bytes_used += size

    async def extend(self, size: int = 0) -> None:
        """Hold more. Raises: SpendingEnded, TidegateError."""
        await self.budgets.extend(self.spending, size, self.cancellation)

    @property
    def ended(self) -> SpendingEnded:
        """That no budget has more."""
        spending = self.spending
        return self.budgets.ended([*(spending.tight or {}).values()] or spending.meters)


class MeteredStream(RowStream):
    """A `RowStream` within an allowance. `whole`: it fails where that ends."""

    def __init__(
        self,
        columns: tuple[Column, ...],
        limits: Limits,
        sink: RowSink,
        allowance: Allowance,
        *,
        whole: bool,
    ) -> None:
        super().__init__(columns, limits, sink)
        self._allowance = allowance
        self._whole = whole
        self._counts_bytes = allowance.room.bytes_room is not None
        self._unsent: Rows = ()
        self._unsent_size = 0

    async def read(self, cursor: RowCursor) -> None:
        """As `RowStream.read`. Raises: TidegateError LIMIT_BUDGET where the rows must be whole."""
        try:
            if self._writer is None and gives_data_rows(cursor) and takes_data_rows(self._sink):
                await self._pass_on(cursor, self._sink)
            else:
                await self._read(cursor)
        except SpendingEnded as ended:
            await self._end(cursor, ended.error)

    async def _read(self, cursor: RowCursor) -> None:
        while True:
            if self._unsent:
                await self._send()
            elif self._ended:
                return
            elif not self.remaining:
                await self._allowance.extend()
            elif self._writer is not None:
                await cursor.fetch_into(self)
            else:
                self.write(await cursor.fetch(self.remaining))

    @property
    def remaining(self) -> int:
        stream = self._allowance.room
        if self._unsent:
            return 0
        wanted, room = super().remaining, stream.rows_room
        if room is None or self._count >= self._most:  # one more, to see whether there is more
            return wanted
        return min(wanted, room - stream.rows_used)

    def write(self, rows: Rows) -> None:
        """Take rows, and pass them on at once if there is room and their sink never waits."""
        kept, allowance = self._count_in(rows), self._allowance
        if not kept:
            return
        size = len(encode_rows(kept)) if self._counts_bytes else 0
        if self._writer is None or not allowance.has_room(len(kept), size):
            self._unsent, self._unsent_size = kept, size
            return
        allowance.use(len(kept), size)
        self._pass_to_writer(kept, self._writer)

    async def _send(self) -> None:
        """Send the rows that wait for room. Raises: SpendingEnded, TidegateError."""
        rows, size, allowance = self._unsent, self._unsent_size, self._allowance
        if not allowance.has_room(len(rows), size):
            await allowance.extend(size)
        fits = allowance.has_room(len(rows), size)
        if not fits:
            if self._whole:
                raise allowance.ended
            rows, size = self._fitting(rows)
        self._unsent = self._unsent[len(rows) :]
        if rows:
            allowance.use(len(rows), size)
            if self._writer is not None:
                self._pass_to_writer(rows, self._writer)
            else:
                await self._sink.write(rows)
        if not fits:
            raise allowance.ended

    def _fitting(self, rows: Rows) -> tuple[Rows, int]:
        """The first rows for which there is room, and their size."""
        least, most, size = 0, len(rows), 0
        while least < most:
            middle = (least + most + 1) // 2
            wanted = len(encode_rows(rows[:middle])) if self._counts_bytes else 0
            if self._allowance.has_room(middle, wanted):
                least, size = middle, wanted
            else:
                most = middle - 1
        return rows[:least], size

    async def _pass_on(self, cursor: DataRowCursor, sink: DataRowSink) -> None:
        """As `RowStream._pass_on`. A chunk for which there is no room is not sent."""
        allowance = self._allowance
        while not self._ended:
            room, chunk = self._most - self._count, self._chunk
            if room and allowance.room.rows_room is not None:
                if not allowance.has_room(1, 0):
                    await allowance.extend()
                stream = allowance.room
                chunk = min(chunk, (stream.rows_room or 0) - stream.rows_used)
            rows = await cursor.fetch_data_rows(min(room, chunk) or 1)
            if not rows.row_count:
                self._ended = True
                continue
            if not room:
                self._ended, self._truncations = (
                    True,
                    (Truncation("rows", self._most, self._count),),
                )
                continue
            size = len(rows.messages)
            if not allowance.has_room(rows.row_count, size):
                await allowance.extend(size)
                if not allowance.has_room(rows.row_count, size):
                    self._unsent = ((),)  # there is more
                    raise allowance.ended
            allowance.use(rows.row_count, size)
            self._count += rows.row_count
            self._chunk = max(1, min(CHUNK_BYTES * rows.row_count // size, MOST_DATA_ROWS))
            await sink.write_data_rows(rows)

    async def _end(self, cursor: RowCursor, error: TidegateError) -> None:
        """The budget has no more: cut the result, or fail, unless all of it was sent."""
        if not self._unsent and not self._ended:
            if gives_data_rows(cursor) and takes_data_rows(self._sink):
                self._ended = not (await cursor.fetch_data_rows(1)).row_count
            else:
                self._ended = not await cursor.fetch(1)
            if self._ended:
                return
        if self._whole:
            raise error
        self._count -= len(self._unsent)
        self._unsent, self._ended = (), True
        self._truncations = (Truncation("budget", self._count, self._count),)
