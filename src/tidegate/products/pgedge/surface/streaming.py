"""Streams the rows of a statement into the text of its result, as they are fetched.

A small result is not streamed: its reply is whole. What is streamed has a budget of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.products.pgedge.surface.result_text import ObjectRows
from tidegate.protocol.text_stream import TextStream
from tidegate.results.json_values import encode_rows

FIRST_BYTES = 65_536
"""Bytes of a result that is still sent whole."""
MAX_ROWS = 100_000
MAX_BYTES = 67_108_864
"""The most that one call may stream."""


class StreamedRows:
    """A sink (`model.results.RowSink`) that writes rows as JSON objects after `heading`.

    `size` counts the bytes of the rows' text. The client's reading holds the database back.
    """

    def __init__(self, stream: TextStream, heading: str) -> None:
        self._stream = stream
        self._waiting = bytearray(heading.encode())
        self._rows = ObjectRows(())
        self.size = 0
        self._first_row = b""

    @property
    def writer(self) -> None:
        return None

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._rows = ObjectRows(columns)

    async def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raises: TidegateError LIMIT_BYTES beyond the budget, CALL_CANCELLED if the client has
        gone."""
        encoded = encode_rows(rows)
        if not self.size and len(rows) == 1:
            self._first_row = encoded
        part = b"".join(self._rows.of_json(encoded))
        self.size += len(part)
        if self.size > MAX_BYTES:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"The result is larger than the {MAX_BYTES:,} bytes that one call may stream",
                hint="Select fewer columns, or use limit and offset.",
            )
        self._waiting += part
        if self._stream.started or len(self._waiting) > FIRST_BYTES:
            await self._stream.write(bytes(self._waiting))
            self._waiting.clear()

    @property
    def sent(self) -> bool:
        """Whether a part has left."""
        return self._stream.started

    @property
    def notes(self) -> list[str]:
        """What was cut of the rows."""
        return self._rows.notes

    @property
    def first_row(self) -> bytes:
        """The first row as JSON, if it came alone."""
        return self._first_row

    def rest(self) -> bytes:
        """What was not sent, and the end of the rows."""
        return bytes(self._waiting) + self._rows.end()
