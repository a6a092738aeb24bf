"""Streams a result's rows to a sink, within the limit of rows, and keeps none.

`RowStream` connects a cursor to a `RowSink`. Two sinks are here: `WriterSink` for what never
waits (a file), `RowChannel` for a reader in another task (an event stream, a network client).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.results import (
    Column,
    DataRowCursor,
    DataRowSink,
    Limits,
    Page,
    RowCursor,
    RowSink,
    RowWriter,
    Truncation,
    gives_data_rows,
    is_bounded,
    takes_data_rows,
)

CHUNK_ROWS = 512
FIRST_ROWS = 32
"""Rows in the first chunk, when nothing is known of their size."""

CHUNK_BYTES = 131_072
WRITTEN_BYTES = 1_048_576
"""About what a later chunk should take: for a sink that may wait, and for a writer."""
_LOOKED_AT = 32
"""Rows of a chunk whose size is measured for a writer."""
MOST_DATA_ROWS = 4_096
"""Rows in a chunk that are already encoded."""

Rows = Sequence[Sequence[Any]]


class RowStream:
    """Reads a cursor for a sink: `await stream.read(cursor)`, then `page`.

    The sink bounds the bytes that it takes; the limit of bytes is that of a page and not applied.
    """

    def __init__(self, columns: tuple[Column, ...], limits: Limits, sink: RowSink) -> None:
        self._columns = columns
        self._most = limits.max_rows
        self._sink = sink
        self._writer = sink.writer
        self._chunk = FIRST_ROWS
        self._count: int = 0
        self._ended = False
        self._truncations: tuple[Truncation, ...] = ()
        sink.begin(columns)

    @property
    def row_count(self) -> int:
        """The rows taken so far."""
        return self._count

    async def read(self, cursor: RowCursor) -> None:
        """Stream the cursor's rows to the sink, up to the limit or the end of the result.

        Raises: what the cursor and the sink raise.
        """
        if self._writer is not None:
            await cursor.fetch_into(self)
            return
        if gives_data_rows(cursor) and takes_data_rows(self._sink):
            await self._pass_on(cursor, self._sink)
            return
        while wanted := self.remaining:
            rows = await cursor.fetch(wanted)
            kept = self._count_in(rows)
            if kept:
                await self._sink.write(kept)

    async def _pass_on(self, cursor: DataRowCursor, sink: DataRowSink) -> None:
        """As `read`, for rows that stay as the database has encoded them."""
        while not self._ended:
            room = self._most - self._count
            # A row after the last one that is allowed shows that the result was cut.
            rows = await cursor.fetch_data_rows(min(room, self._chunk) or 1)
            if not rows.row_count:
                self._ended = True
            elif not room:
                self._ended = True
                self._truncations = (Truncation("rows", self._most, self._count),)
            else:
                self._count += rows.row_count
                fitting = CHUNK_BYTES * rows.row_count // len(rows.messages)
                self._chunk = max(1, min(fitting, MOST_DATA_ROWS))
                await sink.write_data_rows(rows)

    @property
    def remaining(self) -> int:
        """How many rows to fetch next; one more than allowed shows that the result was cut."""
        return 0 if self._ended else min(self._most - self._count + 1, self._chunk)

    def write(self, rows: Rows) -> None:
        """Pass rows on to a sink that never waits; no rows mean that the result has ended."""
        kept, writer = self._count_in(rows), self._writer
        if kept and writer is not None:
            self._pass_to_writer(kept, writer)

    def _pass_to_writer(self, rows: Rows, writer: RowWriter) -> None:
        writer.write(rows)
        if is_bounded(writer) and (cut := writer.cut) is not None:
            self._ended = True
            self._count = writer.count
            self._truncations = (cut,)

    def _count_in(self, rows: Rows) -> Rows:
        """The rows that are within the limit."""
        if not rows:
            self._ended = True
            return rows
        room = self._most - self._count
        kept = rows[:room]
        self._count += len(kept)
        if len(rows) > room:
            self._ended = True
            self._truncations = (Truncation("rows", self._most, self._count),)
        if self._writer is None:
            weight = sum(map(_weight, rows)) // len(rows)
            self._chunk = max(1, min(CHUNK_BYTES // weight, CHUNK_ROWS))
        else:
            weight = max(map(_weight, rows[:: 1 + len(rows) // _LOOKED_AT]))
            self._chunk = max(1, min(WRITTEN_BYTES // weight, CHUNK_ROWS))
        return kept

    def page(self, *, affected: int, elapsed_ms: float) -> Page:
        """A page without rows that says how many there were."""
        page = Page(self._columns, b"[]", self._count, affected, self._truncations, elapsed_ms)
        size: int | None = getattr(self._sink, "size", None)
        return page if size is None else structs.replace(page, size=size)


class WriterSink:
    """A sink that never waits: everything goes to `writer` at once. `size` counts the bytes that
    it has written."""

    def __init__(self, writer: RowWriter, size: Callable[[], int] | None = None) -> None:
        self._writer = writer
        self._size = size

    @property
    def size(self) -> int | None:
        return None if self._size is None else self._size()

    @property
    def writer(self) -> RowWriter:
        return self._writer

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._writer.begin(columns)

    async def write(self, rows: Rows) -> None:
        self._writer.write(rows)


class RowChannel:
    """Passes rows to a reader in another task, one chunk at a time.

        channel = RowChannel()
        call = asyncio.create_task(gateway.handle(call_with(Query(..., sink=channel))))
        call.add_done_callback(lambda _: channel.end())
        async for rows in channel: ...

    The statement waits while a chunk lies unread. The reader leaves with `close`, which ends the
    statement.
    """

    def __init__(self) -> None:
        self._chunk: Rows | None = None
        self._closed = False
        self._ended = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self.columns: tuple[Column, ...] = ()

    @property
    def writer(self) -> None:
        return None

    def begin(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns

    async def write(self, rows: Rows) -> None:
        """Hand the rows over, and wait until the reader has taken them.

        Raises: TidegateError CALL_CANCELLED once the reader has left.
        """
        if not self._closed:
            self._chunk = rows
            self._emptied.clear()
            self._filled.set()
            await self._emptied.wait()
        if self._closed:
            raise TidegateError(
                Code.CALL_CANCELLED, "The client that reads the result has disconnected."
            )

    def end(self) -> None:
        """No more rows will come. The reader still gets a chunk that lies unread."""
        self._ended = True
        self._filled.set()

    def close(self) -> None:
        """The reader leaves: the next `write` fails, and the statement ends with it."""
        self._closed = True
        self._chunk = None
        self._filled.set()
        self._emptied.set()

    def __aiter__(self) -> RowChannel:
        return self

    async def __anext__(self) -> Rows:
        """The next chunk; the iteration stops at the end of the result."""
        await self._filled.wait()
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            raise StopAsyncIteration
        if not self._ended:
            self._filled.clear()
        self._emptied.set()
        return chunk


def _weight(row: Sequence[Any]) -> int:
    """About how many bytes a row takes in memory, at least 1."""
    return 16 + sum([len(value) if isinstance(value, (str, bytes)) else 16 for value in row])
