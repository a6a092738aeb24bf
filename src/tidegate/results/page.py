"""Ends a page of a result at its limits, and records everything that was cut. Pure.

Rows are encoded once, as they come, and then released: a page holds only its bytes. The bytes
that count are those of the encoded array of rows.

A `Truncation` says, by kind: `rows`: (most rows allowed, rows in the page); `bytes`: (most bytes
allowed, bytes in the page); `value`: (bytes that each value of the one row could take, how many of
its values were cut). Values are cut only when a single row is larger than the whole page may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tidegate.model.results import Cells, Column, Limits, Page, Truncation
from tidegate.results.json_values import Rows, append_rows, encode, encode_rows
from tidegate.results.numbers import (
    append_short_rows,
    decimal_places,
    integer_places,
    shorten_rows,
)

FIRST_ROWS = 32
"""Rows in the first chunk, when nothing is known of their size."""

CHUNK_BYTES = 131_072
"""About how much a later chunk should take when it is encoded."""

MAX_CHUNK_ROWS = 512
"""More rows at once are slower: they fall out of the processor's cache between the passes."""

_COMMA = ord(",")

decode = msgspec.json.decode


class PageBuilder:
    """Builds one page: `await cursor.fetch_into(builder)`, or `write` as many rows as
    `remaining` asks for until it is 0."""

    __slots__ = (
        "_as_text",
        "_buffer",
        "_bytes",
        "_cells",
        "_columns",
        "_count",
        "_decimals",
        "_ended",
        "_full",
        "_has_plain_numbers",
        "_integers",
        "_limits",
        "_truncations",
        "rest",
    )

    def __init__(self, columns: tuple[Column, ...], limits: Limits, cells: Cells = "json") -> None:
        self._columns = columns
        self._limits = limits
        self._cells: Cells = cells
        self._as_text = cells == "text"
        is_short = cells == "short"
        self._decimals = decimal_places(columns) if is_short else None
        self._integers: frozenset[int] = integer_places(columns) if is_short else frozenset()
        self._buffer = bytearray()  # the array of rows, without the bracket that ends it
        self._bytes = 2  # the brackets
        self._count = 0
        self._ended = False
        self._full = False
        self._has_plain_numbers = is_short
        self._truncations: tuple[Truncation, ...] = ()
        self.rest: Rows = ()
        """Rows that were added and found no place in the page."""

    @property
    def empty(self) -> bool:
        """Whether nothing has been added yet."""
        return not self._buffer and not self._ended

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def row_count(self) -> int:
        """The rows taken so far."""
        return self._count

    @property
    def cells(self) -> Cells:
        return self._cells

    def adopt(self, page: Page, rest: Rows) -> None:
        """Be what another builder, with these limits and cells, has built in another process."""
        self._buffer[:] = page.rows[:-1]
        self._bytes = len(page.rows)
        self._count = page.row_count
        self._truncations = page.truncations
        self._has_plain_numbers = page.has_plain_numbers
        self._ended = True
        self.rest = rest

    @property
    def remaining(self) -> int:
        """How many rows to fetch next; 0: enough. One row more than allowed means that the result
        is cut."""
        if self._ended:
            return 0
        if self._full:
            return 1
        rest = self._limits.max_rows - self._count + 1
        if self._count == 0:
            return min(rest, FIRST_ROWS)
        fitting = CHUNK_BYTES * self._count // self._bytes
        return max(1, min(rest, fitting, MAX_CHUNK_ROWS))

    def write(self, rows: Rows) -> None:
        """Take the rows that were fetched; none means that the result has ended."""
        before = self._count
        room = self._limits.max_rows - before
        if not rows:
            self._ended = True
        elif self._full:
            self._cut("bytes", self._limits.max_bytes, self._bytes)
        elif room <= 0:
            self._cut("rows", self._limits.max_rows, before)
        elif not self._append(rows[:room]):
            self._fill(rows[:room])
        elif len(rows) > room:
            self._cut("rows", self._limits.max_rows, self._count)
        if self._ended:
            self.rest = rows[self._count - before :]

    def _append(self, rows: Rows) -> bool:
        """Take all of the rows, or say False and take none."""
        buffer = self._buffer
        start = len(buffer)
        if self._decimals is None:
            append_rows(buffer, rows, as_text=self._as_text)
        elif not append_short_rows(buffer, rows, self._decimals, self._integers):
            self._has_plain_numbers = False
        size = len(buffer)
        if size > self._limits.max_bytes:
            del buffer[start:]
            return False
        if start:
            buffer[start] = _COMMA  # where these rows' own bracket opened
        del buffer[-1:]
        self._bytes = size
        self._count += len(rows)
        return True

    def page(
        self,
        *,
        affected: int = 0,
        elapsed_ms: float = 0.0,
        more: str | None = None,
        status: str | None = None,
    ) -> Page:
        """The page of what was added."""
        return Page(
            columns=self._columns,
            rows=b"".join((self._buffer or b"[", b"]")),
            row_count=self._count,
            affected=affected,
            truncations=self._truncations,
            elapsed_ms=elapsed_ms,
            more=more,
            status=status,
            has_plain_numbers=self._has_plain_numbers,
        )

    def _fill(self, rows: Rows) -> None:
        """Take the rows that still fit; cut the first one to fit if none does."""
        for row in rows:
            if not self._append([row]):
                break
        if self._count == 0 and self._take_cut(rows[0]) and len(rows) == 1:
            self._full = True  # whether a row is missing, only the next fetch can tell
        else:
            self._cut("bytes", self._limits.max_bytes, self._bytes)

    def _take_cut(self, row: Sequence[Any]) -> bool:
        """Take a row that is larger than the page, with its largest values cut, if it can be."""
        shown = [row] if self._decimals is None else shorten_rows([row], self._decimals)
        values: list[Any] = decode(encode_rows(shown, as_text=self._as_text))[0]
        sizes = [len(encode(value)) for value in values]
        room = self._limits.max_bytes - 4 - (len(values) - 1)
        share = _fair_share(sizes, room)
        if share < 2:
            return False  # not even empty strings fit
        cut = 0
        for place, size in enumerate(sizes):
            if size > share:
                step = 4 if isinstance(row[place], bytes) else 1  # base64 comes in fours
                values[place] = _shortened(values[place], share, step)
                cut += 1
        self._has_plain_numbers = False
        self._buffer += b"[" + encode(values)
        self._bytes = len(self._buffer) + 1
        self._count = 1
        self._truncations += (Truncation("value", share, cut),)
        return True

    def _cut(self, kind: Literal["rows", "bytes"], limit: int, returned: int) -> None:
        self._ended = True
        self._truncations += (Truncation(kind, limit, returned),)


def _fair_share(sizes: list[int], room: int) -> int:
    """The largest size such that all sizes, cut to it, fit into the room."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(0, room) // left
        room -= size
        left -= 1
    return max(sizes, default=0)


def _shortened(value: Any, size: int, step: int) -> str:
    """The beginning of a JSON value as a string that takes at most `size` bytes."""
    whole: str = value if isinstance(value, str) else encode(value).decode()
    length = size - 2
    while (over := len(encode(whole[:length])) - size) > 0:
        length -= max(1, over // 6)  # one character takes up to six bytes
    return whole[: length // step * step]
