"""The rows of a result, held for the page that scrolls through them.

A statement runs once. Its rows are written as they come, as cells ready to be sent, into a file
that has no name and goes with the process; what is cut in a cell is in a second such file. In
memory is where each row begins, and where what was cut is.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, cast

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column, ColumnKind, Truncation
from tidegate.products.console.cells import BYTES_SHOWN, MOST_SHOWN, cell_of, text_of
from tidegate.products.console.exact_values import SHOWN, pack, unpack
from tidegate.products.console.result_quota import ResultQuota, unwritable
from tidegate.results.json_values import text_rows
from tidegate.system.descriptors import read_at, write_at

MOST_BYTES = 128 * 1_048_576
"""Bytes of one result in files."""
MOST_CUT = 200_000
"""Cells of one result that are cut."""
_EXACT: frozenset[ColumnKind] = frozenset({"array", "struct", "other"})
_BINARY: frozenset[ColumnKind] = frozenset({"bytes", "other"})
_ROW_BYTES, _CUT_BYTES = 8, 24
_AT_ONCE = 1_048_576
_MEMORY_AT_ONCE = 4_096
"""The most that is taken of the room before it is needed, in files and in memory."""


class StoredRows:
    """The rows of one result (`model.results.BoundedRowWriter`). They are written by the engine's
    thread and read by others, each under the lock; `space` has locks of its own."""

    def __init__(
        self, space: ResultQuota, most_bytes: int = MOST_BYTES, *, untyped: bool = False
    ) -> None:
        """`untyped`: a column may hold values of another type than its own."""
        self._space = space
        self._untyped = untyped
        self._exact_places: tuple[int, ...] = ()
        self._exact: IO[bytes] | None = None
        """Values of those columns that a text does not say, of one row after the other."""
        self._exact_ends = array("Q")
        self._exact_size = 0
        self._rows: IO[bytes] | None = None
        self._whole: IO[bytes] | None = None
        self._most = most_bytes
        self._ends = array("Q")
        self._cut: tuple[array[int], array[int], array[int]] = (
            *(array("Q"), array("Q"), array("Q")),
        )
        """Of each cell that is cut: its row and column, where it is whole, and its bytes."""
        self._count = 0
        self._size = 0
        self._whole_size = 0
        self._used = 0
        """Bytes in files, with the rows that are about to be written."""
        self._free = (0, 0)
        """Bytes in files and in memory that were taken and are not used."""
        self._lock = threading.Lock()
        self._encode = msgspec.json.Encoder().encode
        self.columns: tuple[Column, ...] = ()
        self.over = False
        """No more rows come: the result may go when others need its room."""
        self.gone = False
        """The rows were let go."""
        self.cut: Truncation | None = None
        """The bound at which rows came that were not kept."""
        space.enter(self)

    # What the engine writes

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Raises: TidegateError STATE_FAILED."""
        with self._lock:
            self.columns = columns
            if self._rows is not None:
                return  # the statement was sent again, before it had given rows
            self._exact_places = tuple(
                [n for n, each in enumerate(columns) if self._untyped or each.kind in _EXACT]
            )
            files: list[IO[bytes]] = []
            try:
                for _ in range(3 if self._exact_places else 2):
                    files.append(self._space.new_file())
            except TidegateError:
                for file in files:
                    file.close()
                raise
            self._rows, self._whole, *exact = files
            self._exact = exact[0] if exact else None

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Keep rows as far as there is room. Raises: TidegateError STATE_FAILED, and then all that
        was kept is let go."""
        try:
            with self._lock:
                if self._rows is not None and not self.gone and self.cut is None:
                    self._keep(self._rows, rows)
        except OSError as error:
            self.close()
            raise unwritable(self._space.directory, error) from error
        finally:
            self._space.sweep()

    def _keep(self, file: IO[bytes], rows: Sequence[Sequence[Any]]) -> None:
        parts: list[bytes] = []
        exacts: list[bytes] = []
        ends, exact_ends = array("Q"), array("Q")
        size, exact_size = self._size, self._exact_size
        for row, values in zip(self._texts(rows), rows, strict=True):
            part, wholes = self._part(row, values)
            exact = pack([values[n] for n in self._exact_places]) if self._exact_places else b""
            needed = len(part) + len(exact) + sum([len(each) for _, each in wholes])
            if not self._has_room(needed, len(wholes)):
                break
            for place, data in wholes:
                self._keep_whole(self._count + len(parts), place, data)
            size += len(part)
            parts.append(part)
            ends.append(size)
            exact_size += len(exact)
            exacts.append(exact)
            exact_ends.append(exact_size)
        if parts:
            _write(file, b"".join(parts), self._size)
            if self._exact is not None:
                _write(self._exact, b"".join(exacts), self._exact_size)
                self._exact_size = exact_size
                self._exact_ends.extend(exact_ends)
            self._size = size
            self._ends.extend(ends)
            self._count += len(parts)

    def _has_room(self, files: int, wholes: int) -> bool:
        """Whether a row of so many bytes is kept; if not, `cut` says why."""
        memory = _ROW_BYTES * (2 if self._exact_places else 1) + _CUT_BYTES * wholes
        used = self._used
        if used + files > self._most or len(self._cut[0]) + wholes > MOST_CUT:
            self.cut = Truncation("bytes", self._most, used)
            return False
        free_files, free_memory = self._free
        least = max(0, files - free_files), max(0, memory - free_memory)
        if any(least):
            more = (
                max(least[0], min(used, _AT_ONCE)) if least[0] else 0,
                max(least[1], _MEMORY_AT_ONCE) if least[1] else 0,
            )
            if not self._space.take(self, *more):
                more = least
                if not self._space.take(self, *more):
                    self.cut = Truncation("bytes", used, used)
                    return False
            free_files, free_memory = free_files + more[0], free_memory + more[1]
        self._free = free_files - files, free_memory - memory
        self._used += files
        return True

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

    def _part(
        self, row: Sequence[Any], values: Sequence[Any]
    ) -> tuple[bytes, list[tuple[int, bytes]]]:
        """A row as JSON and a comma, and the cells that are cut, whole, by their columns. Most rows
        are short, and so hold none."""
        try:
            part = self._encode(row)
        except (UnicodeError, ValueError):
            part = b"\x00" * (MOST_SHOWN + 1)  # an invalid text: it is repaired below
        if len(part) <= MOST_SHOWN and b"{" not in part:
            return part + b",", []
        cells = [cell_of(value) for value in values]
        wholes = [
            (place, data)
            for place, (cell, value) in enumerate(zip(cells, values, strict=True))
            if isinstance(cell, dict)
            and (data := _whole_of(cast("dict[str, Any]", cell), value)) is not None
        ]
        return self._encode(cells) + b",", wholes

    def _keep_whole(self, row: int, column: int, data: bytes) -> None:
        if self._whole is None:
            return
        _write(self._whole, data, self._whole_size)
        keys, begins, sizes = self._cut
        keys.append(row << 16 | column)
        begins.append(self._whole_size)
        sizes.append(len(data))
        self._whole_size += len(data)

    # What a page reads

    @property
    def count(self) -> int:
        """How many rows were kept."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes in files."""
        return self._size + self._whole_size + self._exact_size

    def page(self, offset: int, limit: int) -> bytes:
        """Rows as a JSON array of arrays of cells. Raises: TidegateError RESULT_GONE."""
        with self._lock:
            self._check_held()
            end = min(offset + limit, len(self._ends))
            if self._rows is None or offset >= end:
                return b"[]"
            begin = self._ends[offset - 1] if offset else 0
            data = read_at(self._rows.fileno(), self._ends[end - 1] - begin, begin)
        return b"[" + data[:-1] + b"]"

    def cell(self, row: int, column: int) -> tuple[bytes | None, bool] | None:
        """A whole cell as bytes, and whether it is binary; None bytes for NULL. None if there is no
        such cell. Raises: TidegateError RESULT_GONE."""
        if not 0 <= row < self.count or not 0 <= column < len(self.columns):
            return None
        (cells,) = msgspec.json.decode(self.page(row, 1))
        return self._whole_cell(cells[column], row, column)

    def _whole_cell(self, cell: Any, row: int, column: int) -> tuple[bytes | None, bool]:
        if not isinstance(cell, dict):
            return None if cell is None else str(cell).encode(), False
        fields = cast("dict[str, Any]", cell)
        with self._lock:
            self._check_held()
            keys, begins, sizes = self._cut
            key = row << 16 | column
            place = bisect_left(keys, key)
            if place < len(keys) and keys[place] == key and self._whole is not None:
                data = read_at(self._whole.fileno(), sizes[place], begins[place])
            else:
                data = bytes.fromhex(fields["text"])
        return data, "binary" in fields

    def values(self, rows: int = 512) -> Iterator[list[list[Any]]]:
        """All rows, whole, in parts of up to so many rows or some megabytes: texts and bytes, or
        exactly the values where a text does not say them (`is_exact`).

        Raises: TidegateError RESULT_GONE, as soon as they are let go.
        """
        for begin in range(0, self.count, rows):
            part: list[list[Any]] = []
            weight = 0
            exacts = self._exact_rows(begin, rows)
            for number, cells in enumerate(msgspec.json.decode(self.page(begin, rows)), begin):
                if exacts:
                    found = unpack(exacts[number - begin])
                    weight += len(exacts[number - begin])
                    for place, value in zip(self._exact_places, found, strict=True):
                        cells[place] = cells[place] if value is SHOWN else _Exact(value)
                for place, cell in enumerate(cells):
                    if isinstance(cell, _Exact):
                        cells[place] = cell.value
                    elif isinstance(cell, dict):
                        data, binary = self._whole_cell(cell, number, place)
                        whole = data or b""
                        weight += len(whole)
                        cells[place] = whole if binary else whole.decode("utf-8", "replace")
                part.append(cells)
                if weight > _AT_ONCE:
                    yield part
                    part, weight = [], 0
            if part:
                yield part

    def is_exact(self, column: int) -> bool:
        """Whether `values` gives the column's values and not their texts."""
        return column in self._exact_places

    def _exact_rows(self, begin: int, rows: int) -> list[bytes]:
        with self._lock:
            self._check_held()
            ends = self._exact_ends[begin : begin + rows]
            if self._exact is None or not ends:
                return []
            first = self._exact_ends[begin - 1] if begin else 0
            data = read_at(self._exact.fileno(), ends[-1] - first, first)
        begins = [first, *ends[:-1]]
        return [data[a - first : b - first] for a, b in zip(begins, ends, strict=True)]

    def _check_held(self) -> None:
        if self.gone:
            raise result_gone()

    def close(self) -> None:
        """Let the rows go."""
        self._space.leave(self)

    def release(self) -> None:
        """Close the files, and forget where the rows are."""
        with self._lock:
            for file in (self._rows, self._whole, self._exact):
                if file is not None:
                    file.close()
            self._rows = self._whole = self._exact = None
            self._exact_ends = array("Q")
            self._ends, self._cut = array("Q"), (array("Q"), array("Q"), array("Q"))


class _Exact(NamedTuple):
    """A value that is no cell."""

    value: Any


def result_gone() -> TidegateError:
    """The error of a result that is not held any more."""
    return TidegateError(
        Code.RESULT_GONE, "The result is not held any more", hint="Run the statement again."
    )


def _whole_of(cell: dict[str, Any], value: Any) -> bytes | None:
    """The whole value of a cell that does not show all of it."""
    if "binary" not in cell:
        return text_of(value).encode()
    return bytes(cast("bytes", value)) if cell["binary"] > BYTES_SHOWN else None


def _write(file: IO[bytes], data: bytes, at: int) -> None:
    """Raises: OSError."""
    view = memoryview(data)
    while view:
        written = write_at(file.fileno(), view, at)
        view, at = view[written:], at + written
