"""Reads delimited text (CSV, TSV) by the standard library: records with their lines, NULL apart
from an empty text, and bytes that are not of the encoding.

A NULL word counts where it is not quoted: `""` is an empty text, and nothing at all is NULL.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial

from tidegate.imports.model import (
    MOST_BYTES,
    MOST_COLUMNS,
    Encoding,
    Reading,
    Record,
    Unreadable,
    Value,
)
from tidegate.imports.open_file import Readable, read_part

MOST_LINE = 4_194_304
"""Characters of a line, and of a record of several."""
MARK = "\udcff"
"""What takes the place of bytes that are not of the encoding; no text of any has it."""
_CODECS: dict[Encoding, str] = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "cp1252": "cp1252"}


def _mark(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return MARK, error.end
    raise error


def shown(text: str) -> str:
    """A text with a sign for what is not of the encoding."""
    return text.replace(MARK, "\N{REPLACEMENT CHARACTER}")


codecs.register_error("tidegate.undecoded", _mark)


class PositionedReader(io.RawIOBase):
    """Reads an open file from its beginning, also while others read it."""

    def __init__(self, file: Readable, most: int = MOST_BYTES) -> None:
        super().__init__()
        self._file = file
        self._at = 0
        self._most = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self._most - self._at)
        data = read_part(self._file, wanted, self._at) if wanted > 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class DelimitedRecords:
    """The records of an open file (`model.Records`). With `most` it ends after so many bytes."""

    names = None

    def __init__(self, file: Readable, reading: Reading, most: int = MOST_BYTES) -> None:
        self._file = file
        self._reading = reading
        self._most = most

    def __iter__(self) -> Iterator[Record]:
        raw = PositionedReader(self._file, self._most)
        lines = io.TextIOWrapper(
            io.BufferedReader(raw, 262_144),
            _CODECS[self._reading.encoding],
            errors="tidegate.undecoded",
            newline="",
        )
        return read_records(_bounded(lines), self._reading)


def _bounded(lines: io.TextIOWrapper) -> Iterator[str]:
    """Raises: Unreadable."""
    for line in iter(partial(lines.readline, MOST_LINE + 1), ""):
        if len(line) > MOST_LINE:
            raise Unreadable(f"a line has over {MOST_LINE:,} characters")
        yield line


def read_records(lines: Iterator[str], reading: Reading) -> Iterator[Record]:
    """The records of lines that keep their ends. A record that is not well formed, or too wide, is
    the last one, with its problem. Lines without anything are left out. Raises: Unreadable."""
    held: list[str] = []
    size = 0

    def given() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size > MOST_LINE:
                raise Unreadable(f"a record has over {MOST_LINE:,} characters")
            held.append(line)
            yield line

    trims, delimiter, nulls = reading.trims, reading.delimiter, frozenset(reading.nulls)
    if delimiter in '"\r\n' or (trims and delimiter == " "):
        raise Unreadable("values cannot be delimited by quotes, line ends, or spaces left out")
    source = csv.reader(given(), delimiter=delimiter, strict=True, skipinitialspace=trims)
    line = 1
    while True:
        try:
            values = next(source)
        except StopIteration:
            return
        except csv.Error as error:
            yield Record(line, [], (), _problem(error))
            return
        raw = held[0] if len(held) == 1 else "".join(held)
        held.clear()
        size = 0
        if len(values) > MOST_COLUMNS:
            yield Record(line, [], (), f"it has more than {MOST_COLUMNS:,} values")
            return
        if values:
            quoted = _quoted(raw, delimiter, trims=trims) if '"' in raw else None
            undecoded: tuple[int, ...] = ()
            if not raw.isascii() and MARK in raw:
                undecoded = tuple([at for at, each in enumerate(values) if MARK in each])
            yield Record(line, _values(values, quoted, nulls, trims=trims), undecoded)
        line = source.line_num + 1


def _problem(error: csv.Error) -> str:
    text = str(error)
    if "field limit" in text:
        return f"a value has over {csv.field_size_limit():,} characters"
    return "a quoted value does not end, or goes on after its quotes"


def _values(
    values: list[str], quoted: Sequence[bool] | None, nulls: frozenset[str], *, trims: bool
) -> list[Value]:
    if quoted is None:
        if trims:
            values = [value.strip(" ") for value in values]
        if nulls.isdisjoint(values):
            return [*values]
        return [None if value in nulls else value for value in values]
    found: list[Value] = []
    for value, is_quoted in zip(values, quoted, strict=False):
        bare = value.strip(" ") if trims and not is_quoted else value
        found.append(None if not is_quoted and bare in nulls else bare)
    return found


def _quoted(raw: str, delimiter: str, *, trims: bool) -> list[bool]:
    """Which values of a well formed record are quoted."""
    found: list[bool] = []
    at = 0
    while True:
        while trims and raw[at : at + 1] == " ":
            at += 1
        found.append(raw[at : at + 1] == '"')
        if found[-1]:
            at += 1
            while (end := raw.find('"', at)) >= 0 and raw[end + 1 : end + 2] == '"':
                at = end + 2
            at = end + 1 if end >= 0 else len(raw)
        after = raw.find(delimiter, at)
        if after < 0:
            return found
        at = after + 1
