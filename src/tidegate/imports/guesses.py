"""Guesses how a file is to be read, and what its columns hold.

Each guess can be changed by a person. `007` is a text, as is any column with such a value: a number
would lose what was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import structs

from tidegate.imports.column_types import Extent
from tidegate.imports.delimited import MOST_LINE, DelimitedRecords, PositionedReader, shown
from tidegate.imports.model import (
    MOST_COLUMNS,
    DateOrder,
    Encoding,
    Kind,
    Reading,
    Record,
    Records,
    Unreadable,
    Value,
)
from tidegate.imports.open_file import Readable
from tidegate.imports.parsing import parse_date, parse_moment, parse_time

SAMPLE_ROWS = 10_000
_SAMPLE_ROOM = 16_777_216
_VALUE_ROOM = 64
"""Records that the guesses are made of, bytes that these may take, and what a value takes beside
its characters."""
_SAMPLE_BYTES = 262_144
_DELIMITERS = (",", ";", "\t", "|")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_POINT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_COMMA = re.compile(r"-?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+),[0-9]+")
_GROUPED_POINT = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+\.[0-9]+")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]{1,3}")
_ORDERED = re.compile(r"([0-9]{1,2})[-/.]([0-9]{1,2})[-/.][0-9]{4}(?:[T ].*)?")
_NULL_WORDS = ("NULL", "\\N", "null", "N/A", "NA")
_BOOLEANS = frozenset({"true", "false"})
_DOUBLE_DIGITS = 15
_AT_ONCE = 2_000
_WIDER: dict[Kind, Kind] = {
    "integer": "decimal", "decimal": "float", "date": "timestamp", "timestamp": "timestamp_tz",
}  # fmt: skip
"""The kind that takes all that another one takes, and more."""


class Guess(NamedTuple):
    """How a file is read. `is_order_sure`: the dates tell the order of day and month."""

    reading: Reading
    is_order_sure: bool = True
    note: str = ""


def guess_encoding(file: Readable) -> tuple[Encoding, str]:
    """The encoding of an open file, and a note on it. Raises: Unreadable."""
    reader = PositionedReader(file)
    head = reader.read(4) or b""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16", ""
    if b"\0" in head and len(head) == 4:
        raise Unreadable("it is no text of UTF-8, UTF-16 with a mark, or Windows-1252")
    line = _first_not_utf8(file)
    if line is None:
        return "utf-8", ""
    return "cp1252", f"Line {line:,} is not UTF-8: the file is read as Windows-1252."


def _first_not_utf8(file: Readable) -> int | None:
    """The first line with bytes that are not UTF-8. A character may lie across two parts. Raises:
    Unreadable."""
    reader, line, rest = PositionedReader(file), 1, b""
    while part := reader.read(1_048_576):
        if len(rest) > 4 * MOST_LINE:
            raise Unreadable(f"a line has over {MOST_LINE:,} characters")
        end = part.rfind(b"\n") + 1
        whole, rest = (rest + part[:end], part[end:]) if end else (b"", rest + part)
        try:
            whole.decode("utf-8")
        except UnicodeDecodeError as error:
            return line + whole[: error.start].count(b"\n")
        line += whole.count(b"\n")
    try:
        rest.decode("utf-8")
    except UnicodeDecodeError:
        return line
    return None


def guess_text(file: Readable, name: str) -> Guess:
    """How an open file of delimited text is read. Raises: Unreadable."""
    encoding, note = guess_encoding(file)
    tabbed = name.lower().endswith((".tsv", ".tab"))
    best: tuple[int, int] = (-1, 0)
    reading = Reading(encoding=encoding, delimiter="\t" if tabbed else ",")
    order = sorted(_DELIMITERS, key=lambda each: each != reading.delimiter)
    for delimiter in order:
        tried = structs.replace(reading, encoding=encoding, delimiter=delimiter)
        found = _sample(file, tried)
        score = _score(found)
        if score > best:
            best, reading = score, tried
    if _is_spaced(file, reading):
        reading = structs.replace(reading, trims=True)
    rows = _sample(file, reading)
    return _guess_rest(reading, rows, note)


def guess_rows(records: Records) -> Guess:
    """How rows that are no text are read."""
    reading = Reading(header=records.names is None)
    if not reading.header:
        return Guess(reading)  # its values have types of their own
    guess = _guess_rest(reading, first_records(records), "")
    return guess._replace(reading=structs.replace(guess.reading, decimal="."))


def first_records(records: Records) -> list[Record]:
    """The first records, as many as may be in memory. Raises: Unreadable."""
    found: list[Record] = []
    room = _SAMPLE_ROOM
    for record in islice(records, SAMPLE_ROWS):
        found.append(record)
        room -= sum([_VALUE_ROOM + (0 if value is None else len(value)) for value in record.values])
        if room <= 0:
            break
    return found


def _sample(file: Readable, reading: Reading) -> list[Record]:
    found = list(islice(DelimitedRecords(file, reading, _SAMPLE_BYTES), 1_000))
    # The last one may be cut.
    return found[:-1] if len(found) > 1 and found[-1].problem else found


def _score(rows: Sequence[Record]) -> tuple[int, int]:
    """How well rows look: whether all have the same number of values, and how many."""
    if not rows or any(row.problem for row in rows):
        return (-1, 0)
    widths = [len(row.values) for row in rows]
    width = max(set(widths), key=widths.count)
    alike = widths.count(width) * 100 // len(widths)
    return (alike if width > 1 else 0, width)


def _is_spaced(file: Readable, reading: Reading) -> bool:
    """Whether a space follows each delimiter, for which nothing else is a reason."""
    rows = [row for row in _sample(file, reading)[:100] if len(row.values) > 1]
    later = [value for row in rows for value in row.values[1:] if not isinstance(value, bytes)]
    return (
        bool(later)
        and all(value is None or value.startswith(" ") for value in later)
        and any(value is not None for value in later)
    )


def _guess_rest(reading: Reading, rows: Sequence[Record], note: str) -> Guess:
    rows = [row for row in rows if not row.problem]
    if reading.header and not _is_header(rows):
        reading = structs.replace(reading, header=False)
    columns = columns_of(rows[1:] if reading.header else rows)
    words = [word for word in _NULL_WORDS if any(_is_null_word(word, each) for each in columns)]
    if words:
        reading = structs.replace(reading, nulls=(*reading.nulls, *words))
        columns = [[None if value in words else value for value in each] for each in columns]
    if _has_decimal_comma(columns, reading):
        reading = structs.replace(reading, decimal=",")
    order, is_sure = _guess_order(columns)
    return Guess(structs.replace(reading, dates=order), is_sure, note)


def _is_null_word(word: str, values: Sequence[Value]) -> bool:
    """Whether a word is NULL in a column: all else there are numbers, dates and the like."""
    rest = [value for value in values if value != word]
    has_word, has_more = len(rest) < len(values), any(value is not None for value in rest)
    if not has_word or not has_more:
        return has_word and word == "\\N"
    decimals = (structs.replace(Reading(), decimal=decimal) for decimal in (".", ","))
    return any(guess_kind(rest, reading) != "text" for reading in decimals)


def _is_header(rows: Sequence[Record]) -> bool:
    if not rows:
        return False
    first = rows[0].values
    names = [value.strip() for value in first if isinstance(value, str)]
    if len(names) < len(first) or not all(names) or len(set(names)) < len(names):
        return False
    return all(guess_kind([name], Reading()) == "text" for name in names) and not any(
        name[0].isdigit() for name in names if len(names) == 1
    )


def columns_of(rows: Sequence[Record]) -> list[list[Value]]:
    """The values by column, of rows that may differ in their number of values."""
    width = min(max([len(row.values) for row in rows], default=0), MOST_COLUMNS)
    return [
        [row.values[place] for row in rows if place < len(row.values)] for place in range(width)
    ]


def _texts(values: Sequence[Value]) -> list[str]:
    return [value.strip() for value in values if isinstance(value, str)]


def _has_decimal_comma(columns: Sequence[Sequence[Value]], reading: Reading) -> bool:
    commas = points = 0
    for values in columns:
        texts = _texts(values)
        if not texts:
            continue
        whole_or = [text for text in texts if not _WHOLE.fullmatch(text)]
        commas += bool(whole_or) and all(_COMMA.fullmatch(text) for text in whole_or)
        points += bool(whole_or) and all(_POINT.fullmatch(text) for text in whole_or)
    return commas > points


def _guess_order(columns: Sequence[Sequence[Value]]) -> tuple[DateOrder, bool]:
    first = second = seen = 0
    for values in columns:
        for text in _texts(values):
            found = _ORDERED.fullmatch(text)
            if found is None:
                break
            seen += 1
            first, second = max(first, int(found[1])), max(second, int(found[2]))
    if not seen:
        return "ymd", True
    if second > 12 >= first:
        return "mdy", True
    return "dmy", first > 12 >= second


def guess_kind(values: Sequence[Value], reading: Reading) -> Kind:
    """The narrowest kind that takes all values of a column, and keeps what is written."""
    if any(isinstance(value, bytes) for value in values):
        return "bytes"
    texts = [value for value in values if value is not None]
    if not texts:
        return "text"
    kinds: tuple[Kind, ...] = (
        "integer", "decimal", "float", "boolean", "date", "time", "timestamp", "timestamp_tz",
    )  # fmt: skip
    for kind in kinds:
        if all(_is_of(kind, text, reading) for text in texts if isinstance(text, str)):
            return kind
    return "text"


def _is_of(kind: Kind, text: str, reading: Reading) -> bool:
    match kind:
        case "integer":
            return bool(_WHOLE.fullmatch(text)) and len(text) <= 18 and text != "-0"
        case "decimal":
            if reading.decimal == ",":
                return bool(_WHOLE.fullmatch(text) or _COMMA.fullmatch(text))
            decimals = _WHOLE.fullmatch(text) or _POINT.fullmatch(text)
            return bool(decimals or _GROUPED_POINT.fullmatch(text))
        case "float":
            is_number = _FLOAT.fullmatch(text) or _POINT.fullmatch(text) or _WHOLE.fullmatch(text)
            return is_number is not None and _fits_double(text)
        case "boolean":
            return text.lower() in _BOOLEANS
        case _:
            return _is_temporal(kind, text, reading.dates)


def _fits_double(text: str) -> bool:
    """Whether a double keeps all digits of a number."""
    mantissa = text.lower().partition("e")[0]
    digits = sum(each.isdigit() for each in mantissa)
    return digits <= _DOUBLE_DIGITS and math.isfinite(float(text))


def _is_temporal(kind: Kind, text: str, order: DateOrder) -> bool:
    if not 4 <= len(text) <= 40 or not text[0].isdigit():
        return False
    try:
        if kind == "date":
            parse_date(text, order)
        elif kind == "time":
            parse_time(text)
        else:
            parse_moment(text, order, zoned=kind == "timestamp_tz")
    except ValueError:
        return False
    return True


class WholeColumn:
    """A column of which all values are read: `kind` takes each of them, `extent` is what they
    need."""

    def __init__(self, kind: Kind, *, is_guessed: bool) -> None:
        """`kind` is that of the first values; of a file that says itself what its columns are, it
        is not guessed."""
        self.kind: Kind = kind
        self.extent = Extent()
        self._is_guessed = is_guessed

    def add(self, values: Sequence[Value], reading: Reading) -> None:
        """Take further values: the kind is widened until it takes them, too."""
        texts = [value for value in values if isinstance(value, str)]
        while self._is_guessed and self.kind != "text":
            if all(_is_of(self.kind, text, reading) for text in texts):
                break
            self.kind = _WIDER.get(self.kind, "text")
        self.extent = self.extent.with_texts(texts)
        if self._is_guessed and self.kind == "float" and self.extent.digits > _DOUBLE_DIGITS:
            self.kind = "text"


def read_columns(
    records: Iterable[Record], reading: Reading, kinds: Sequence[Kind], *, are_guessed: bool
) -> list[WholeColumn]:
    """The columns by all of their values. A line that is not well formed is left out: that it is,
    is found when the rows are checked."""
    columns = [WholeColumn(kind, is_guessed=are_guessed) for kind in kinds]
    source = iter(records)
    while part := list(islice(source, _AT_ONCE)):
        whole = [each.values for each in part if len(each.values) == len(columns)]
        for column, values in zip(columns, zip(*whole, strict=True), strict=False):
            column.add(values, reading)
    return columns


def names_of(first: Sequence[Value], width: int) -> list[str]:
    """Names of columns that differ; those without one have a number."""
    taken: set[str] = set()
    found: list[str] = []
    for place in range(width):
        given = first[place] if place < len(first) else None
        base = " ".join(shown(given).split())[:128] if isinstance(given, str) else ""
        base = base or f"column{place + 1}"
        name, number = base, 2
        while name.casefold() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.casefold())
        found.append(name)
    return found
