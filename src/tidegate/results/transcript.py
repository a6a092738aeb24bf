"""Passes a result's rows on to a writer, within the limit of rows, and keeps none. Pure but for
what the writer does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.pages import Column, Limits, Page, RowWriter, Truncation

CHUNK_ROWS = 512


class Transcript:
    """Stands where a `PageBuilder` stands: `await cursor.pour(transcript)`, then `page`.

    The writer bounds what it writes; the limit of bytes is that of a page and not looked at.
    """

    def __init__(self, columns: tuple[Column, ...], limits: Limits, writer: RowWriter) -> None:
        self._columns = columns
        self._most = limits.max_rows
        self._writer = writer
        self._count = 0
        self._ended = False
        self._truncations: tuple[Truncation, ...] = ()
        writer.begin(columns)

    @property
    def wanted(self) -> int:
        """How many rows to add next; one more than allowed tells of a cut."""
        return 0 if self._ended else min(self._most - self._count + 1, CHUNK_ROWS)

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Pass rows on; none means that the result has ended."""
        if not rows:
            self._ended = True
            return
        room = self._most - self._count
        kept = rows[:room]
        if kept:
            self._writer.write(kept)
            self._count += len(kept)
        if len(rows) > room:
            self._ended = True
            self._truncations = (Truncation("rows", self._most, self._count),)

    def page(self, *, affected: int, elapsed_ms: float) -> Page:
        """The page without rows that tells how many there were."""
        return Page(self._columns, b"[]", self._count, affected, self._truncations, elapsed_ms)
