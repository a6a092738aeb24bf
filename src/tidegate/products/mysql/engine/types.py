"""MySQL's types and values: columns, rows that are read, parameters that are sent.

Every type has two readings: of the text protocol, by which statements without parameters run, and
of the binary protocol, by which prepared ones do. Both give the same Python value:

    DECIMAL           text, exact: "12.50"
    DATE, DATETIME    text: "2026-01-02", "2026-01-02T03:04:05.600000"
    TIMESTAMP         text in UTC: "2026-01-02T03:04:05Z"
    invalid dates     as the server writes them: "0000-00-00", "2026-02-00 00:00:00"
    TIME              within a day "03:04:05"; else a duration: "-P1DT3600S"
    BIT               an integer
    JSON              JSON; MariaDB has no such type, there it is text
    GEOMETRY          well-known text by OGC 06-103r4: "POINT(1 2)"
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, cast
from uuid import UUID

import msgspec
from asyncmy import converters, protocol

from tidegate.engines.common.errors import lost
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.products.mysql.engine.packets import Specs
from tidegate.results.column_kinds import column_of
from tidegate.results.json_values import json_raw

_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
_MOST_DEPTH = 32


def well_known_text(data: bytes) -> str:
    """The text of a shape, like `POINT(1 2)`. Raises: ValueError, struct.error, IndexError."""
    reader = _Reader(data)
    text = reader.shape(0)
    if reader.at != len(data):
        raise ValueError("There are bytes after the shape.")
    return text


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.at = 0

    def shape(self, depth: int, *, named: bool = True) -> str:
        """One shape, with its name before it."""
        if depth > _MOST_DEPTH:
            raise ValueError("The shape is nested too deeply.")
        self._order = "<" if self._data[self.at] else ">"
        self.at += 1
        kind = self._count()
        name = _NAMES.get(kind)
        if name is None:
            raise ValueError("This kind of shape is unknown.")
        if kind == 1:
            body = f"({self._point()})"
        elif kind == 2:
            body = self._points()
        elif kind == 3:
            body = self._parts([self._points() for _ in range(self._count())])
        else:
            inner = [self.shape(depth + 1, named=kind == 7) for _ in range(self._count())]
            body = self._parts(inner)
        return name + body if named else body

    def _parts(self, parts: list[str]) -> str:
        return f"({','.join(parts)})" if parts else " EMPTY"

    def _points(self) -> str:
        return f"({','.join([self._point() for _ in range(self._count())])})"

    def _point(self) -> str:
        x, y = struct.unpack_from(self._order + "dd", self._data, self.at)
        self.at += 16
        return f"{_number(x)} {_number(y)}"

    def _count(self) -> int:
        (count,) = struct.unpack_from(self._order + "I", self._data, self.at)
        self.at += 4
        if count > len(self._data):
            raise ValueError("The shape says that it is larger than it is.")
        return count


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


DAY_S = 86_400

datetime_value: Callable[[bytes], datetime.datetime | str] = cast(
    "Any", converters
).convert_datetime
"""In C; what is no date stays text."""


def datetime_text(text: str) -> str:
    """`2026-01-02 03:04:05.6` as ISO 8601, with six digits or none after the second."""
    if len(text) < 19 or text[5:7] == "00" or text[8:10] == "00":
        return text
    fraction = text[20:]
    moment = f"{text[:10]}T{text[11:19]}"
    return f"{moment}.{fraction:0<6}" if fraction.strip("0") else moment


def timestamp_text(text: str) -> str:
    """The same of a moment: the session's time zone is UTC."""
    moment = datetime_text(text)
    return moment if moment is text else f"{moment}Z"


def time_text(text: str) -> str:
    """`26:00:00.5` as a duration, `02:00:00` as a time of day."""
    negative = text.startswith("-")
    clock, _, fraction = text.removeprefix("-").partition(".")
    fraction = f"{fraction:0<6}" if fraction.strip("0") else ""
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    if hours < 24 and not negative:
        return f"{hours:02}:{minutes:02}:{seconds:02}{'.' + fraction if fraction else ''}"
    days, rest = divmod(hours * 3600 + minutes * 60 + seconds, DAY_S)
    fraction = fraction.rstrip("0")
    duration = f"{days}D" if days else ""
    if rest or fraction or not days:
        duration += f"T{rest}{'.' + fraction if fraction else ''}S"
    return f"{'-' if negative else ''}P{duration}"


def date_bytes(data: bytes) -> str:
    """A date of the binary protocol, which leaves out what is zero."""
    year, month, day = struct.unpack("<HBB", data[:4].ljust(4, b"\0"))
    return f"{year:04}-{month:02}-{day:02}"


def datetime_bytes(data: bytes) -> datetime.datetime | str:
    """The same of a date with a time of day."""
    try:
        return datetime.datetime.fromisoformat(_moment(data))
    except ValueError:
        return _moment(data)


def timestamp_bytes(data: bytes) -> str:
    """The same of a moment."""
    return timestamp_text(_moment(data))


def _moment(data: bytes) -> str:
    hour, minute, second, micro = struct.unpack("<BBBI", data[4:11].ljust(7, b"\0"))
    return f"{date_bytes(data)} {hour:02}:{minute:02}:{second:02}.{micro:06}"


def time_bytes(data: bytes) -> str:
    """A TIME of the binary protocol."""
    negative, days, hours, minutes, seconds, micro = struct.unpack("<BIBBBI", data.ljust(12, b"\0"))
    sign = "-" if negative else ""
    return time_text(f"{sign}{days * 24 + hours}:{minutes}:{seconds}.{micro:06}")


def single(value: float | None) -> float | None:
    """A FLOAT of the binary protocol as the text protocol writes it: with the fewest digits."""
    if value is None:
        return None
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return float(f"{value:.9g}")


def bits(data: bytes) -> int:
    """A BIT value as an integer."""
    return int.from_bytes(data, "big")


def geometry(data: bytes) -> str | bytes:
    """A shape as well-known text; what cannot be read stays bytes."""
    try:
        return well_known_text(data[4:])
    except (ValueError, struct.error, IndexError):
        return data


Decoder = Callable[[Any], Any]

TIMES: dict[int, tuple[Decoder | None, Decoder]] = {
    7: (timestamp_text, timestamp_bytes),
    10: (None, date_bytes),
    11: (time_text, time_bytes),
    12: (datetime_value, datetime_bytes),
    14: (None, date_bytes),
}
"""By the type's code: how it is read from text, and from the binary protocol."""


BINARY = 63
"""The character set of what is not text."""

_MOST_BYTES_PER_CHARACTER = 4
_UNSIGNED, _ENUM, _SET = 32, 256, 2048

_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_NAMED = {4: "float", 5: "double", 6: "null", 13: "year", 245: "json", 255: "geometry"}
_TIMES = {7: "timestamp", 10: "date", 11: "time", 12: "datetime", 14: "date"}
_STRINGS = {15: "varchar", 253: "varchar", 254: "char"}
_BLOBS = (249, 250, 251, 252)
_SIZES = ((255, "tiny"), (65_535, ""), (16_777_215, "medium"))

_AS_BYTES = (0, None, None)
_AS_TEXT = (1, "utf8", None)
_AS_ASCII = (2, "ascii", None)
_STRING = 253
"""The code under which the driver takes a value with a length before it, and passes on its bytes:
so temporal values of the binary protocol come to the reader in `Field.binary`
as they are, also those that are no dates."""


class Field(msgspec.Struct, frozen=True):
    """A column of a result, and how its values are read in either protocol."""

    column: Column
    text: tuple[object, ...]
    binary: tuple[object, ...]


@lru_cache(maxsize=4096)
def read_field(definition: bytes) -> Field:
    """What a column definition says. Raises: IndexError, ValueError if it says nothing."""
    parts: list[bytes] = []
    at = 0
    for _ in range(6):
        size = definition[at]
        width = {0xFC: 2, 0xFD: 3}.get(size, 0)
        if width:
            size = int.from_bytes(definition[at + 1 : at + 1 + width], "little")
        at += 1 + width
        parts.append(definition[at : at + size])
        at += size
    at += 1
    charset = int.from_bytes(definition[at : at + 2], "little")
    length = int.from_bytes(definition[at + 2 : at + 6], "little")
    code = definition[at + 6]
    flags = int.from_bytes(definition[at + 7 : at + 9], "little")
    scale = definition[at + 9]
    name = _name(code, flags, length, scale, charset == BINARY)
    text, binary = _readings(code, flags, charset == BINARY)
    return Field(_column(parts[4].decode("utf-8", "replace"), name, code), text, binary)


def read_fields(definitions: tuple[bytes, ...]) -> tuple[tuple[Column, ...], Specs, Specs]:
    """The columns of a result, and how to read its rows by text and by the binary protocol.

    Raises: TidegateError SOURCE_UNREACHABLE if the definitions make no sense.
    """
    try:
        fields = [read_field(definition) for definition in definitions]
    except (IndexError, ValueError) as error:
        raise lost() from error
    return (
        tuple([field.column for field in fields]),
        tuple([field.text for field in fields]),
        tuple([field.binary for field in fields]),
    )


def _column(name: str, type_name: str, code: int) -> Column:
    """The column. Two names mean something of MySQL's own: BIT is read as an integer, and
    TIMESTAMP is a moment in UTC."""
    if code == 7:
        return Column(name, type_name, "timestamp_tz")
    return Column(name, type_name, "integer") if code == 16 else column_of(name, type_name)


def _name(code: int, flags: int, length: int, scale: int, is_binary: bool) -> str:
    unsigned = " unsigned" if flags & _UNSIGNED else ""
    if code in _INTEGERS:
        width = "(1)" if code == 1 and length == 1 else ""
        return _INTEGERS[code] + width + unsigned
    if code in _NAMED:
        return _NAMED[code] + (unsigned if code in (4, 5) else "")
    if code in _TIMES:
        return _TIMES[code] + (f"({scale})" if code != 10 and 1 <= scale <= 6 else "")
    if code in (0, 246):
        digits = length - (0 if unsigned else 1) - (1 if scale else 0)
        return f"decimal({digits},{scale}){unsigned}"
    if code == 16:
        return f"bit({length})"
    if flags & _ENUM or code == 247:
        return "enum"
    if flags & _SET or code == 248:
        return "set"
    if code in _BLOBS:
        size = length if is_binary else length // _MOST_BYTES_PER_CHARACTER
        prefix = next((prefix for most, prefix in _SIZES if size <= most), "long")
        return prefix + ("blob" if is_binary else "text")
    if code in _STRINGS:
        name = _STRINGS[code]
        if is_binary:
            return f"{'binary' if name == 'char' else 'varbinary'}({length})"
        return f"{name}({length // _MOST_BYTES_PER_CHARACTER})"
    return ""


def _readings(
    code: int, flags: int, is_binary: bool
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    unsigned = bool(flags & _UNSIGNED)
    if code in _INTEGERS or code == 13:
        as_integer = (0, None, int)
        return as_integer, (code, unsigned, *as_integer)
    if code == 5:
        return (0, None, float), (code, False, 0, None, float)
    if code == 4:
        return (0, None, float), (code, False, 0, None, None)
    if code in (0, 246):
        return _AS_ASCII, (_STRING, False, *_AS_ASCII)
    if code in _TIMES:
        by_text, by_bytes = TIMES[code]
        reading = (0, None, by_text) if code == 12 else (2, "ascii", by_text)
        return reading, (_STRING, False, 0, None, by_bytes)
    if code == 16:
        reading = (0, None, bits)
    elif code == 245:
        reading = (1, "utf8", json_raw)
    elif code == 255:
        reading = (0, None, geometry)
    else:
        reading = _AS_BYTES if is_binary else _AS_TEXT
    return reading, (_STRING, False, *reading)


def single_places(definitions: tuple[bytes, ...]) -> tuple[int, ...]:
    """Where the FLOAT columns are: by the binary protocol they are sent as longer doubles."""
    return tuple(
        place
        for place, definition in enumerate(definitions)
        if read_field(definition).binary[0] == 4
    )


_pack = cast("Any", protocol).pack_binary_params


def pack(params: Sequence[Any]) -> bytes:
    """The parameters as the server wants them. Raises: TidegateError ARGUMENT_INVALID."""
    if not params:
        return b""
    try:
        return _pack(tuple([_plain(value) for value in params]), "utf-8")
    except UnicodeEncodeError:
        raise TidegateError(Code.ARGUMENT_INVALID, "A parameter holds a lone surrogate.") from None
    except ValueError as error:
        message = "An integer parameter takes more than 64 bits."
        raise TidegateError(Code.ARGUMENT_INVALID, message, hint="Send it as text.") from error


def check_count(expected: int, params: Sequence[Any] | None) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless there is a value for each placeholder."""
    given = 0 if params is None else len(params)
    if given != expected:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement has {expected} placeholders, and {given} parameters were given.",
            hint="Give as many parameters as there are placeholders (?).",
        )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str, bytes, bytearray, datetime.timedelta)):
        return value
    if isinstance(value, float):
        if isfinite(value):
            return value
        raise TidegateError(Code.ARGUMENT_INVALID, "MySQL has no infinity and no NaN.")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return value if value.is_finite() else _plain(float(value))
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (Mapping, list, tuple)):
        return msgspec.json.encode(value).decode()
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        "A parameter has a type that MySQL does not know.",
        hint="Send null, true, false, numbers, text, or objects and lists for JSON.",
    )
