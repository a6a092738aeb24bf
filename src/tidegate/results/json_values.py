"""Renders a value of a result in JSON: one rendering per type, for every engine.

    null                      null
    boolean                   true, false
    integer                   number; beyond 2^53 - 1 either way, a string of its digits
    floating point            number; "NaN", "Infinity", "-Infinity"
    decimal                   string, exact: "12.50", "NaN", "sNaN", "-Infinity"
    text                      string; U+FFFD for a lone surrogate, and for bytes that SQLite keeps
                              as text and that are not UTF-8
    bytes                     string, base64 with padding
    date, time, timestamp     string, ISO 8601; with a time zone if the value has one
    interval                  string, ISO 8601 duration: "P1DT2S"
    UUID                      string
    array, object             array, object, by the same rules inside
    JSON (msgspec.Raw)        as the database holds it, on one line; nested over some hundred
                              levels, a string of it
    anything else             string

As text cells every value is a string or null: numbers as above, booleans "true" and "false", arrays
and objects as their JSON. Pure.
"""

from __future__ import annotations

import datetime
import struct
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from math import isfinite, isnan
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec

from tidegate.typed_values import make_known

Rows = Sequence[Sequence[Any]]

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""

COLUMNWISE_ROWS = 8
"""From this many rows on, checking whole columns is cheaper than single values."""

_ENCODER = msgspec.json.Encoder()

encode = _ENCODER.encode

_PLAIN: frozenset[type] = frozenset(
    {
        type(None),
        bool,
        str,
        bytes,
        Decimal,
        datetime.datetime,
        datetime.date,
        datetime.time,
        datetime.timedelta,
        UUID,
        msgspec.Raw,
    }
)
"""Types that msgspec writes as this module says."""

_SafeInteger = Annotated[int, msgspec.Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
_Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Value = _SafeInteger | _Finite | str | bool | None
_NoFloat = _SafeInteger | str | bool | None
_Number = _SafeInteger | _Finite | bool | None
_Integer = _SafeInteger | bool | None


class _Ordinary(msgspec.Struct):
    """Rows that one pass in C can recognize as plain, as most are. A struct, since
    msgspec keeps what it knows of one: of a bare type it would think again each time."""

    rows: list[tuple[_Value, ...]]


make_known(_Ordinary)

_NUMBERS: frozenset[type] = frozenset({int, float, bool, type(None)})

_SMALL_EXPONENTS = bytes([*range(0x43), *range(0x80, 0xC3)])
"""The top bytes of doubles below 2^49: no integer among them is large, and none is NaN."""

_SMALL_SEVENTHS = bytes(range(0x20))
"""The seventh bytes of positive 64-bit integers below 2^53."""


MOST_NESTED = 200
"""Levels of arrays and objects that a value in JSON has at the least where it is kept as text."""
_FRAMES = 600
"""Levels of the interpreter's bound on recursion that are left to the code that reads the value
again."""
_NEWLINES = str.maketrans("\r\n", "  ")
_raw = msgspec.json.Decoder(msgspec.Raw)


def json_raw(text: str) -> msgspec.Raw | str:
    """JSON as the database holds it, on one line; line breaks are only between its tokens. What is
    nested so deeply that a reader of the result may not follow is the text itself."""
    if text.count("[") + text.count("{") > MOST_NESTED:
        try:
            _raw.decode("[" * _FRAMES + text + "]" * _FRAMES)
        except (RecursionError, msgspec.DecodeError):
            return text
    return msgspec.Raw(text.translate(_NEWLINES) if "\n" in text or "\r" in text else text)


def encode_rows(rows: Rows, *, as_text: bool = False) -> bytes:
    """Rows as a JSON array of arrays."""
    buffer = bytearray()
    append_rows(buffer, rows, as_text=as_text)
    return bytes(buffer)


def append_rows(buffer: bytearray, rows: Rows, *, as_text: bool = False) -> None:
    """Write rows as a JSON array of arrays after what the buffer holds."""
    if as_text:
        rows = text_rows(rows)
    elif not _all_plain(rows):
        rows = [[plain(value) for value in row] for row in rows]
    start = len(buffer)
    try:
        _ENCODER.encode_into(rows, buffer, start)
    except (UnicodeError, TypeError, ValueError):
        repaired = [[_repaired(plain(value)) for value in row] for row in rows]
        _ENCODER.encode_into(repaired, buffer, start)


@lru_cache(maxsize=256)
def _ordinary_rows(width: int, floats: frozenset[int], numbers: frozenset[int]) -> type:
    """As `_Ordinary`, for rows of so many values that are floats at some places only, and no texts
    at others."""
    kinds: list[Any] = [
        (_Number if place in floats else _Integer)
        if place in numbers
        else (_Value if place in floats else _NoFloat)
        for place in range(width)
    ]
    row: Any = tuple[tuple(kinds)]
    return make_known(msgspec.defstruct("_OrdinaryRows", [("rows", list[row])]))


def have_floats_only_at(rows: Rows, floats: frozenset[int], numbers: frozenset[int]) -> bool:
    """Whether one pass in C sees that all values are texts, booleans, None and numbers that
    msgspec writes rightly, that those at places other than `floats` are no floats, and those at
    `numbers` no texts. A Decimal passes for a float, and a type like str or int for that."""
    try:
        msgspec.convert({"rows": rows}, _ordinary_rows(len(rows[0]), floats, numbers))
    except ValueError:
        return False
    return True


def append_ordinary_rows(buffer: bytearray, rows: Rows) -> None:
    """Write rows that msgspec writes rightly, as `append_rows`."""
    start = len(buffer)
    try:
        _ENCODER.encode_into(rows, buffer, start)
    except (UnicodeError, TypeError, ValueError):  # a lone surrogate, a type like str
        del buffer[start:]
        append_rows(buffer, rows)


def text_rows(rows: Rows) -> Rows:
    """Rows with every value as text or None."""
    if len(rows) < COLUMNWISE_ROWS:
        return [[text(value) for value in row] for row in rows]
    return list(zip(*[_text_column(column) for column in zip(*rows, strict=True)], strict=True))


def plain(value: Any) -> Any:
    """A value that msgspec writes as the table above says."""
    kind = cast("type[object]", type(value))
    if kind in _PLAIN:
        return value
    if isinstance(value, int):
        return int(value) if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else str(int(value))
    if isinstance(value, float):
        return value if isfinite(value) else not_finite(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {str(key): plain(inner) for key, inner in items}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in cast("Sequence[Any]", value)]
    if isinstance(value, (bytearray, memoryview)):
        return bytes(cast("bytearray", value))
    return value if isinstance(value, tuple(_PLAIN)) else str(value)


def text(value: Any) -> str | None:
    """A value as text, None for null."""
    if value is None or type(value) is str:
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if isfinite(value) else not_finite(value)
    shaped = plain(value)
    if isinstance(shaped, (list, dict)):
        return encode(_repaired(shaped)).decode()
    written = msgspec.to_builtins(shaped)
    return written if isinstance(written, str) else encode(written).decode()


def _all_plain(rows: Rows) -> bool:
    """Whether msgspec writes every value of the rows rightly as it is."""
    try:
        msgspec.convert({"rows": rows}, _Ordinary)
        return True
    except ValueError:
        pass  # there is something else among them; a signalling NaN raises no ValidationError
    if len(rows) >= COLUMNWISE_ROWS:
        return all(map(_column_is_plain, zip(*rows, strict=True)))
    for row in rows:
        for value in row:
            kind = cast("type[object]", type(value))
            if kind is int:
                if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                    return False
            elif kind is float:
                if not isfinite(value):
                    return False
            elif kind not in _PLAIN:
                return False
    return True


def _column_is_plain(column: tuple[Any, ...]) -> bool:
    """The same for a column. Text and numbers are recognized in one call of C each."""
    first = cast("type[object]", type(column[0]))
    try:
        if first is str:
            "".join(column)
            return True
        if first is int and _integers_are_small(column):
            return True
        return _numbers_are_small(column)
    except (TypeError, ValueError, OverflowError, struct.error):
        pass  # of several types, or neither text nor number
    kinds = set(map(type, column))
    if kinds <= _PLAIN:
        return True
    if not kinds <= _NUMBERS:
        return False
    try:
        return _numbers_are_small([value for value in column if value is not None])
    except (OverflowError, struct.error):  # an integer beyond the largest double
        return False


def _integers_are_small(column: Sequence[Any]) -> bool:
    """Quick and one-sided: False may also mean that there are negative ones."""
    count = len(column)
    packed = struct.pack(f"<{count}q", *column)
    return packed[7::8].count(0) == count and not packed[6::8].translate(None, _SMALL_SEVENTHS)


def _numbers_are_small(column: Sequence[Any]) -> bool:
    packed = struct.pack(f"<{len(column)}d", *column)
    if not packed[7::8].translate(None, _SMALL_EXPONENTS):
        return True
    return all(map(_number_is_plain, column))


def _number_is_plain(value: Any) -> bool:
    if type(value) is float:
        return isfinite(value)
    return type(value) in _PLAIN or -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _text_column(column: tuple[Any, ...]) -> Sequence[str | None]:
    kinds = set(map(type, column))
    if kinds <= {str, type(None)}:
        return column
    if kinds == {int}:
        return list(map(str, column))
    return [text(value) for value in column]


def not_finite(value: float) -> str:
    """The word for NaN or an infinity."""
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _repaired(value: Any) -> Any:
    """The same value without lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_repaired(key): _repaired(inner) for key, inner in items}
    if isinstance(value, list):
        return [_repaired(inner) for inner in cast("list[Any]", value)]
    return value
