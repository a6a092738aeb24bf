"""The rows of a result, held for the page that scrolls through them.

A statement runs once. Its rows are written as they come, as cells ready to be sent, into a file
that has no name and goes with the process; what is cut in a cell is in a second such file. In
memory is where each row begins, and where what was cut is.
"""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import msgspec

from tidegate.edges.console.cells import BYTES_SHOWN, MOST_SHOWN, cell_of, text_of
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column, ColumnKind
from tidegate.results.json_values import text_rows

MOST_BYTES = 128 * 1_048_576
"""Bytes of one result in files."""
MOST_CUT = 200_000
"""Cells of one result that are cut."""
_BINARY: frozenset[ColumnKind] = frozenset({"bytes", "other"})
_ROW_BYTES, _CUT_BYTES = 8, 24


class HeldRows:
    """The rows of one result (`model.results.RowWriter`). They are written by the engine's thread
    and read by others. `on_full` is called there when no more are kept."""

    def __init__(
        self,
        directory: Path,
        on_full: Callable[[], None] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._directory = directory
        self._rows: IO[bytes] | None = None
        self._whole: IO[bytes] | None = None
        self._most = most_bytes
        self._on_full = on_full
        self._ends = array("Q")
        self._cut: tuple[array[int], array[int], array[int]] = (
            *(array("Q"), array("Q"), array("Q")),
        )
        """Of each cell that is cut: its row and column, where it is whole, and its bytes."""
        self._size = 0
        self._whole_size = 0
        self._lock = threading.Lock()
        self._encode = msgspec.json.Encoder().encode
        self.columns: tuple[Column, ...] = ()
        self.full = False
        """Rows came that were not kept, as there were too many bytes."""

    # What the engine writes

    def begin(self, columns: tuple[Column, ...]) -> None:
        with self._lock:
            self._rows, self._whole = (self._new_file(), self._new_file())
            self.columns = columns

    def _new_file(self) -> IO[bytes]:
        return TemporaryFile(dir=self._directory, buffering=0)

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        with self._lock:
            if self._rows is None or self._rows.closed or self.full:
                return
            parts: list[bytes] = []
            ends = array("Q")
            size = self._size
            for row, values in zip(self._texts(rows), rows, strict=True):
                if size + self._whole_size > self._most or len(self._cut[0]) >= MOST_CUT:
                    self.full = True
                    break
                part = self._part(row, values, len(self._ends) + len(parts))
                size += len(part)
                parts.append(part)
                ends.append(size)
            if parts:
                _write(self._rows, b"".join(parts), self._size)
                self._size = size
                self._ends.extend(ends)
        if self.full and self._on_full is not None:
            self._on_full()

    def _texts(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The rows with all but what may be bytes as text."""
        binary = [place for place, each in enumerate(self.columns) if each.kind in _BINARY]
        if not binary:
            return text_rows(rows)
        plain = [[None if n in binary else value for n, value in enumerate(row)] for row in rows]
        texts = [list(row) for row in text_rows(plain)]
        for row, values in zip(texts, rows, strict=True):
            for place in binary:
                row[place] = cell_of(values[place])
        return texts

    def _part(self, row: Sequence[Any], values: Sequence[Any], number: int) -> bytes:
        """A row as JSON and a comma. Most rows are short, and so hold no cell that is cut."""
        try:
            part = self._encode(row)
        except (UnicodeError, ValueError):
            part = b"\x00" * (MOST_SHOWN + 1)  # a text that is none: it is repaired below
        if len(part) <= MOST_SHOWN and b"{" not in part:
            return part + b","
        cells = [cell_of(value) for value in values]
        for place, (cell, value) in enumerate(zip(cells, values, strict=True)):
            if isinstance(cell, dict):
                self._keep_whole((number, place), cast("dict[str, Any]", cell), value)
        return self._encode(cells) + b","

    def _keep_whole(self, at: tuple[int, int], cell: dict[str, Any], value: Any) -> None:
        binary = "binary" in cell
        if self._whole is None or (binary and cell["binary"] <= BYTES_SHOWN):
            return
        data = bytes(cast("bytes", value)) if binary else text_of(value).encode()
        _write(self._whole, data, self._whole_size)
        keys, begins, sizes = self._cut
        keys.append(at[0] << 16 | at[1])
        begins.append(self._whole_size)
        sizes.append(len(data))
        self._whole_size += len(data)

    # What a page reads

    @property
    def count(self) -> int:
        """How many rows are held."""
        return len(self._ends)

    @property
    def file_bytes(self) -> int:
        """Bytes in files."""
        return self._size + self._whole_size

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory."""
        return _ROW_BYTES * len(self._ends) + _CUT_BYTES * len(self._cut[0])

    def page(self, offset: int, limit: int) -> bytes:
        """Rows as a JSON array of arrays of cells. Empty if the rows are gone."""
        with self._lock:
            end = min(offset + limit, len(self._ends))
            if self._rows is None or self._rows.closed or offset >= end:
                return b"[]"
            begin = self._ends[offset - 1] if offset else 0
            data = os.pread(self._rows.fileno(), self._ends[end - 1] - begin, begin)
        return b"[" + data[:-1] + b"]"

    def cell(self, row: int, column: int) -> tuple[bytes | None, bool] | None:
        """A whole cell as bytes, and whether it is binary; None bytes for NULL. None if there is no
        such cell."""
        if not 0 <= row < self.count or not 0 <= column < len(self.columns):
            return None
        (cells,) = msgspec.json.decode(self.page(row, 1))
        cell = cells[column]
        if not isinstance(cell, dict):
            return None if cell is None else str(cell).encode(), False
        fields = cast("dict[str, Any]", cell)
        with self._lock:
            keys, begins, sizes = self._cut
            key = row << 16 | column
            place = bisect_left(keys, key)
            whole = self._whole
            is_kept = place < len(keys) and keys[place] == key
            if is_kept and whole is not None and not whole.closed:
                data = os.pread(whole.fileno(), sizes[place], begins[place])
            else:
                data = bytes.fromhex(fields["text"])
        return data, "binary" in fields

    def values(self, rows: int = 512) -> Iterator[list[list[Any]]]:
        """All rows as texts and bytes, whole, in parts."""
        for begin in range(0, self.count, rows):
            part = msgspec.json.decode(self.page(begin, rows))
            for number, cells in enumerate(part, begin):
                for place, cell in enumerate(cells):
                    if isinstance(cell, dict):
                        data, binary = self.cell(number, place) or (b"", False)
                        whole = data or b""
                        cells[place] = whole if binary else whole.decode("utf-8", "replace")
            yield part

    def close(self) -> None:
        """Let the rows go."""
        with self._lock:
            for file in (self._rows, self._whole):
                if file is not None:
                    file.close()


def _write(file: IO[bytes], data: bytes, at: int) -> None:
    view = memoryview(data)
    try:
        while view:
            written = os.pwrite(file.fileno(), view, at)
            view, at = view[written:], at + written
    except OSError as error:
        raise TidegateError(
            Code.LIMIT_BYTES,
            f"The rows cannot be held: {error.strerror or 'the disk cannot be written'}",
            hint="Ask for fewer rows, or close results that you do not need.",
        ) from error
