"""Turns the rows of a file into values for the columns of a table, and keeps them in a file.

Every row is read: what is no value is named by its line and column, and then nothing is kept.
Some rows are in memory at a time.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec

from tidegate.imports.model import LineError, Reading, Record, Records, Unreadable, Value
from tidegate.imports.open_file import OpenFile
from tidegate.imports.parsing import Parser, parser_of, read_plain
from tidegate.imports.row_parts import read_parts, write_encoded
from tidegate.model.editing import EditColumn
from tidegate.model.row_changes import MOST_FED

AT_ONCE = 500
MOST_ERRORS = 200
"""Errors that are kept; the rest is counted."""
_ENOUGH_ERRORS = 10_000
_MOST_SHOWN = 60
_UNDECODED = attrgetter("undecoded")


class Pair(NamedTuple):
    """A column of the file, by its place, and the one of the table that it goes into: `at` is its
    place in the shape."""

    place: int
    name: str
    column: EditColumn
    at: int


class HeldRows:
    """Rows that are ready to be added (`model.row_changes.RowFeed`), in a file without a name."""

    def __init__(self, file: OpenFile, name: str, file_digest: str, pairs: Sequence[Pair]) -> None:
        self.name = name
        self.file_digest = file_digest
        self.places = tuple([pair.at for pair in pairs])
        self.count = self.size = 0
        self.writing = (0, 0)
        """The first and the last of the rows that are being written."""
        self._file = file
        self._lines = array("Q")
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        for part in read_parts(self._file):
            yield msgspec.msgpack.decode(part)

    def note(self, first: int, last: int) -> None:
        self.writing = (first, last)

    def line_of(self, row: int) -> int:
        """The line of the file of a row, which is counted from 1."""
        return self._lines[row - 1]

    def add(self, lines: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
        """Keep some rows. Raises: OSError."""
        self._lines.extend(lines)
        self.count += len(rows)
        part = msgspec.msgpack.encode(rows)
        self._hash.update(part)
        self.size += write_encoded(self._file, part)


class Checked(msgspec.Struct, frozen=True):
    """What was found in all rows. `rows` are there if there are no errors."""

    rows: HeldRows | None
    count: int
    errors: tuple[LineError, ...]
    error_count: int


class _Errors:
    def __init__(self) -> None:
        self.kept: list[LineError] = []
        self.count = 0

    def add(self, line: int, column: str, message: str) -> None:
        self.count += 1
        if len(self.kept) < MOST_ERRORS:
            self.kept.append(LineError(line, column, message))


def check_rows(
    records: Records,
    reading: Reading,
    pairs: Sequence[Pair],
    held: HeldRows,
    note: Callable[[int], None],
) -> Checked:
    """Read all rows into `held`. `note` gets the number of rows so far, and may raise to end it.

    Raises: OSError, Unreadable.
    """
    errors, count = _Errors(), 0
    width = 0 if records.names is None else len(records.names)
    parsers = [parser_of(pair.column, reading) for pair in pairs]
    source = iter(records)
    if reading.header and records.names is None:
        width = len(next(source, Record(1, [])).values)
    while part := list(islice(source, AT_ONCE)):
        width = width or len(part[0].values)
        whole = [record for record in part if _fits(record, width, errors)]
        count += len(part)
        if count > MOST_FED:
            raise Unreadable(f"it has more than {MOST_FED:,} rows")
        columns = [
            _converted(pair, parser, reading, whole, errors)
            for pair, parser in zip(pairs, parsers, strict=True)
        ]
        if not errors.count:
            rows = list(zip(*columns, strict=True))
            held.add([record.line for record in whole], rows)
        note(count)
        if errors.count >= _ENOUGH_ERRORS:
            break
    kept = held if not errors.count and count else None
    return Checked(kept, count, tuple(errors.kept), errors.count)


def _fits(record: Record, width: int, errors: _Errors) -> bool:
    if record.problem:
        errors.add(record.line, "", f"This line cannot be read: {record.problem}.")
        return False
    found = len(record.values)
    if found != width:
        errors.add(record.line, "", f"It has {found:,} values, and the first line has {width:,}.")
        return False
    return True


def _converted(
    pair: Pair,
    parser: Parser | None,
    reading: Reading,
    records: Sequence[Record],
    errors: _Errors,
) -> list[Any]:
    """The values of one column."""
    place = pair.place
    values = [record.values[place] for record in records]
    if set(map(type, values)) == {str} and not any(map(_UNDECODED, records)):
        texts = cast("list[str]", values)
        plain = texts if parser is None else read_plain(texts, pair.column, reading)
        if plain is not None:
            return plain
        try:
            return [parser(text) for text in texts] if parser else texts
        except ValueError:
            pass
    return [_one(pair, parser, record, errors) for record in records]


def _one(pair: Pair, parser: Parser | None, record: Record, errors: _Errors) -> Any:
    value: Value = record.values[pair.place]
    column = pair.column
    if pair.place in record.undecoded:
        errors.add(record.line, pair.name, "It has bytes that are not of the encoding.")
        return None
    if value is None:
        if not column.nullable:
            errors.add(record.line, pair.name, f"It is NULL, and {column.name} takes none.")
        return None
    if isinstance(value, bytes):
        if column.editor != "bytes" and not column.classes:
            errors.add(record.line, pair.name, f"These are bytes, and {column.name} takes none.")
        return value
    try:
        return value if parser is None else parser(value)
    except ValueError as wanted:
        shown = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…"
        errors.add(
            record.line, pair.name, f"{shown!r} is no value of {column.name}: it takes {wanted}."
        )
        return None
