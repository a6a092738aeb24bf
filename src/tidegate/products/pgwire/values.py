"""Types and values in PostgreSQL's text and binary formats. Pure. `parameters` reads values,
`row_encoder` writes rows of them.

Source: PostgreSQL 17, `src/backend/utils/adt` (the `out` and `send` functions of each type) and
`pg_type.dat` for the oids. Values are as engines give them, see `results/json_values.py`: times as
Python's objects or as ISO 8601 texts.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

from tidegate.model.results import BoundedArray, Column, ColumnKind
from tidegate.products.pgwire.messages import Field
from tidegate.products.pgwire.other_types import BOX_OID, OTHER_TYPES, modifier_of, pack_none
from tidegate.products.pgwire.packers import (
    FLOAT4,
    FLOAT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    TIME_TZ,
    UINT32,
)
from tidegate.results import json_values
from tidegate.sql.dialects import find

Encode = Callable[[Any], bytes]
"""A value that is not None, in one format. Raises: ValueError, TypeError, struct.error,
OverflowError for what the type cannot hold."""

TEXT_OID = 25
TEXT_OIDS = frozenset({0, TEXT_OID, 705, 1042, 1043})
"""Types of texts, and the one used for a type that is not known."""
EPOCH_DAYS = datetime.date(2000, 1, 1).toordinal()
"""The day from which dates are counted, as Python numbers days."""
EPOCH = datetime.datetime(2000, 1, 1)
_EPOCH_TZ = EPOCH.replace(tzinfo=datetime.UTC)
_DAY_US = 86_400_000_000
_INFINITE: dict[str, int] = {"infinity": 2**63 - 1, "-infinity": -(2**63)}


class WireType(NamedTuple):
    """How the values of a column travel. `array` is the oid of its arrays, 0 if there is none.
    `packs`: they are written in binary here."""

    oid: int
    size: int
    text: Encode
    binary: Encode
    array: int = 0
    packs: bool = True


# Text.


def write_text(value: Any) -> bytes:
    if type(value) is int:
        return b"%d" % value
    written = value if type(value) is str else json_values.text(value)
    return (written or "").replace("\0", "").encode("utf-8", "replace")


def _write_boolean(value: Any) -> bytes:
    if value == 1:
        return b"t"
    if value == 0:
        return b"f"
    return write_text(value)  # a database without strict types keeps anything in any column


def _write_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return write_text(value)
    return b"\\x" + bytes(value).hex().encode()


def _write_time(value: Any) -> bytes:
    """A date, time or timestamp, from Python's object or an ISO 8601 text."""
    written = value if isinstance(value, str) else value.isoformat()
    if written[10:11] == "T":
        written = f"{written[:10]} {written[11:]}"
    if written.endswith("Z"):
        written = written[:-1] + "+00"
    found = _CLOCK.fullmatch(written)
    if found is not None:  # no zeros that say nothing, as PostgreSQL writes it
        head, fraction, zone = found.groups("")
        fraction = fraction.rstrip("0")
        written = head + (fraction if fraction != "." else "") + zone.removesuffix(":00")
    return written.encode()


_CLOCK = re.compile(r"(.*\d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d(?::\d\d)*)?", re.ASCII)


def _write_interval(value: Any) -> bytes:
    months, days, microseconds = _read_interval(value)
    years, months = int(months / 12), months - int(months / 12) * 12
    words: list[str] = []
    is_before = False
    for count, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if count:  # a plus says that the part before it is negative (`EncodeInterval`)
            plus = "+" if is_before and count > 0 else ""
            words.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
            is_before = count < 0
    if microseconds or not words:
        seconds, fraction = divmod(abs(microseconds), 1_000_000)
        sign = "-" if microseconds < 0 else "+" if is_before else ""
        clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        words.append(clock + (f".{fraction:06}".rstrip("0") if fraction else ""))
    return " ".join(words).encode()


_DURATION = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,6}))?S)?)?"
)


def _read_interval(value: Any) -> tuple[int, int, int]:
    """(months, days, microseconds) of a timedelta or an ISO 8601 duration."""
    if isinstance(value, datetime.timedelta):
        return 0, value.days, value.seconds * 1_000_000 + value.microseconds
    found = _DURATION.fullmatch(str(value))
    if found is None:
        raise ValueError("not a duration")
    turn = -1 if found[1] else 1
    years, months, weeks, days, hours, minutes = (int(found[at] or 0) for at in range(2, 8))
    late = -1 if found[8] else 1
    seconds = late * (int(found[9] or 0) * 1_000_000 + int((found[10] or "").ljust(6, "0")))
    clock = (hours * 3600 + minutes * 60) * 1_000_000 + seconds
    return turn * (years * 12 + months), turn * (weeks * 7 + days), turn * clock


def _write_json(value: Any) -> bytes:
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return json_values.encode(json_values.plain(value))


# Binary.


def _pack_boolean(value: Any) -> bytes:
    return b"\1" if value else b"\0"


def _pack_integer(packer: struct.Struct) -> Encode:
    return lambda value: packer.pack(int(value))


def _pack_float(packer: struct.Struct) -> Encode:
    return lambda value: packer.pack(float(value))


def _pack_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _pack_date(value: Any) -> bytes:
    if isinstance(value, str):
        if value in _INFINITE:
            return INT32.pack(2**31 - 1 if value == "infinity" else -(2**31))
        value = datetime.date.fromisoformat(value)
    return INT32.pack(value.toordinal() - EPOCH_DAYS)


def _microseconds(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _in_microseconds(time: datetime.timedelta) -> int:
    return (time.days * 86_400 + time.seconds) * 1_000_000 + time.microseconds


def _pack_time(value: Any) -> bytes:
    if isinstance(value, str):
        if value.startswith("24:00:00"):
            return INT64.pack(_DAY_US)
        value = datetime.time.fromisoformat(value)
    elif isinstance(value, datetime.timedelta):
        return INT64.pack(_in_microseconds(value))
    return INT64.pack(_microseconds(value))


def _pack_time_tz(value: Any) -> bytes:
    if isinstance(value, str):
        value = datetime.time.fromisoformat(value)
    offset = value.utcoffset() or datetime.timedelta()
    return TIME_TZ.pack(_microseconds(value), -round(offset.total_seconds()))


def _pack_timestamp(value: Any) -> bytes:
    if isinstance(value, str):
        if value in _INFINITE:
            return INT64.pack(_INFINITE[value])
        value = datetime.datetime.fromisoformat(value)
    if value.tzinfo is not None:
        value = value.replace(tzinfo=None)
    return INT64.pack(_in_microseconds(value - EPOCH))


def _pack_timestamp_tz(value: Any) -> bytes:
    if isinstance(value, str):
        if value in _INFINITE:
            return INT64.pack(_INFINITE[value])
        value = datetime.datetime.fromisoformat(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    return INT64.pack(_in_microseconds(value - _EPOCH_TZ))


def _pack_interval(value: Any) -> bytes:
    months, days, microseconds = _read_interval(value)
    return INTERVAL.pack(microseconds, days, months)


def _pack_uuid(value: Any) -> bytes:
    return (value if isinstance(value, UUID) else UUID(str(value))).bytes


def _pack_jsonb(value: Any) -> bytes:
    return b"\1" + _write_json(value)


_MOST_WHOLE, _MOST_SCALE = 131_072, 16_383
"""Digits of a numeric before and after its point (`numeric.c`)."""
_NUMERIC_HEAD = struct.Struct("!hhHH")
SPECIAL_NUMERIC = {"NaN": 0xC000, "Infinity": 0xD000, "-Infinity": 0xF000}
"""Signs of the numbers that have no digits."""


_SHORT_NUMBER = re.compile(r"(-?)(\d{1,8})(?:\.(\d{1,8}))?", re.ASCII)
_FOUR_GROUPS = struct.Struct("!hhHH4h")


def _pack_numeric(value: Any) -> bytes:
    """Base 10,000 digits with a weight, a sign and a display scale (`numeric_send`)."""
    short = _SHORT_NUMBER.fullmatch(str(value))
    return _pack_long_numeric(value) if short is None else _pack_short_numeric(*short.groups(""))


def _pack_short_numeric(sign: str, whole: str, fraction: str) -> bytes:
    """The same of a number that has two groups of digits at most on each side of its point."""
    first, second = divmod(int(whole), 10_000)
    third, fourth = divmod(int(fraction.ljust(8, "0")), 10_000)
    begin = 0 if first else 1 if second else 2 if third else 3 if fourth else 4
    end = 4 if fourth else 3 if third else 2 if second else 1 if first else 0
    if begin >= end:
        return _NUMERIC_HEAD.pack(0, 0, 0, len(fraction))
    packed = _FOUR_GROUPS.pack(
        end - begin, 1 - begin, 0x4000 if sign else 0, len(fraction), first, second, third, fourth
    )
    return packed[:8] + packed[8 + 2 * begin : 8 + 2 * end]


def _pack_long_numeric(value: Any) -> bytes:
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not number.is_finite():
        name = "NaN" if number.is_nan() else "Infinity" if number > 0 else "-Infinity"
        return struct.pack("!hhHh", 0, 0, SPECIAL_NUMERIC[name], 0)
    sign, digits, exponent = number.as_tuple()
    power = cast("int", exponent)
    if not -_MOST_SCALE <= power <= _MOST_WHOLE - len(digits):
        raise ValueError("more digits than numeric has")
    scale = max(0, -power)
    text = "".join(map(str, digits)) + "0" * max(0, power)
    whole, fraction = (text[:-scale], text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight = 0
    head = _NUMERIC_HEAD.pack(len(groups), weight, 0x4000 if sign and groups else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


# Types.

_TEXT = WireType(TEXT_OID, -1, write_text, write_text, 1009)
_BY_NAME: dict[str, WireType] = {
    "boolean": WireType(16, 1, _write_boolean, _pack_boolean, 1000),
    "bytea": WireType(17, -1, _write_bytes, _pack_bytes, 1001),
    '"char"': WireType(18, 1, write_text, write_text, 1002),
    "name": WireType(19, 64, write_text, write_text, 1003),
    "bigint": WireType(20, 8, write_text, _pack_integer(INT64), 1016),
    "smallint": WireType(21, 2, write_text, _pack_integer(INT16), 1005),
    "integer": WireType(23, 4, write_text, _pack_integer(INT32), 1007),
    "text": _TEXT,
    "oid": WireType(26, 4, write_text, _pack_integer(UINT32), 1028),
    "json": WireType(114, -1, _write_json, _write_json, 199),
    "real": WireType(700, 4, write_text, _pack_float(FLOAT4), 1021),
    "double precision": WireType(701, 8, write_text, _pack_float(FLOAT8), 1022),
    "character": WireType(1042, -1, write_text, write_text, 1014),
    "character varying": WireType(1043, -1, write_text, write_text, 1015),
    "date": WireType(1082, 4, _write_time, _pack_date, 1182),
    "time without time zone": WireType(1083, 8, _write_time, _pack_time, 1183),
    "timestamp without time zone": WireType(1114, 8, _write_time, _pack_timestamp, 1115),
    "timestamp with time zone": WireType(1184, 8, _write_time, _pack_timestamp_tz, 1185),
    "interval": WireType(1186, 16, _write_interval, _pack_interval, 1187),
    "time with time zone": WireType(1266, 12, _write_time, _pack_time_tz, 1270),
    "numeric": WireType(1700, -1, write_text, _pack_numeric, 1231),
    "uuid": WireType(2950, 16, write_text, _pack_uuid, 2951),
    "jsonb": WireType(3802, -1, _write_json, _pack_jsonb, 3807),
}
"""PostgreSQL's types as `format_type` names them. What is not here travels as text: a client that
asks for the binary format of such a type could not read ours."""

_BY_KIND: dict[ColumnKind, WireType] = {
    "boolean": _BY_NAME["boolean"],
    "integer": _BY_NAME["bigint"],
    "decimal": _BY_NAME["numeric"],
    "float": _BY_NAME["double precision"],
    "text": _TEXT,
    "bytes": _BY_NAME["bytea"],
    "date": _BY_NAME["date"],
    "time": _BY_NAME["time without time zone"],
    "time_tz": _BY_NAME["time with time zone"],
    "timestamp": _BY_NAME["timestamp without time zone"],
    "timestamp_tz": _BY_NAME["timestamp with time zone"],
    "interval": _BY_NAME["interval"],
    "uuid": _BY_NAME["uuid"],
    "json": _BY_NAME["json"],
    "array": _TEXT,
    "struct": _BY_NAME["json"],
    "other": _TEXT,
}
_WIDER_THAN_INT8 = frozenset({"hugeint", "uhugeint", "ubigint", "bigint unsigned", "varint"})
_CLOCKS = frozenset({"time", "time_tz", "timestamp", "timestamp_tz"})
_MOST_FRACTION = 6
_FINER_THAN_OURS = frozenset({"timestamp_ns", "timestamptz_ns", "time_ns"})
"""Their nanoseconds have no place in PostgreSQL's types: such values are text, whole."""
ARRAY_ELEMENTS = {each.array: each for each in _BY_NAME.values()}
_MODIFIER = re.compile(r"\([^)]*\)")


def wire_type(column: Column, dialect: str) -> WireType:
    """How the values of a column travel, by its type in a source of that dialect."""
    if find(dialect).is_postgres:
        name = _MODIFIER.sub("", column.type)
        if name.startswith("interval "):  # year to month
            name = "interval[]" if name.endswith("[]") else "interval"
        element = _named(name.removesuffix("[]"))
        if not name.endswith("[]"):
            return element or _TEXT
        return _array_of(element) if element is not None and element.array else _TEXTS
    if column.kind == "integer" and column.type.lower() in _WIDER_THAN_INT8:
        return _BY_NAME["numeric"]
    if column.kind == "integer" and column.type == "BOOLEAN":  # cloud: it holds them as 1 and 0
        return _BY_NAME["boolean"]
    if column.kind in _CLOCKS and (column.scale or 0) > _MOST_FRACTION:  # as JDBC drivers report
        return _TEXT
    if column.type.lower() in _FINER_THAN_OURS or column.type.startswith("UNION("):
        return _TEXT  # the value of a union is that of any of its members
    return _BY_KIND[column.kind]


def _named(name: str) -> WireType | None:
    """A type of PostgreSQL by its name; None for one that a database has made itself."""
    found = _BY_NAME.get(name)
    if found is not None or name not in OTHER_TYPES:
        return found
    oid, size, pack_text, array = OTHER_TYPES[name]

    def pack(value: Any) -> bytes:
        return pack_text(str(value))

    return WireType(oid, size, write_text, pack, array, pack_text is not pack_none)


def as_text(kind: WireType) -> WireType:
    """The type that clients are shown for one that is not written in binary here, where they asked
    for that: a text, with the same words."""
    return kind if kind.packs else WireType(TEXT_OID, -1, kind.text, kind.text)


def is_whole_type(column: Column, dialect: str) -> bool:
    """Whether PostgreSQL's own binary format of a column is that of the type that clients are shown
    for it: not where a type that is not known here is shown as text."""
    kind = wire_type(column, dialect)
    return kind.oid != TEXT_OID or column.type == "text"


def field_of(column: Column, kind: WireType, form: int) -> Field:
    """The column in a row description; `form` is its format code."""
    modifier = -1
    if column.precision is not None:
        if kind.oid == 1700:
            modifier = (column.precision << 16 | (column.scale or 0) & 0x7FF) + 4
        elif kind.oid in (1042, 1043):
            modifier = column.precision + 4
        elif kind.oid in (1560, 1562):
            modifier = column.precision
    elif kind.oid != TEXT_OID:
        modifier = modifier_of(column.type, kind.oid)
    return Field(column.name, kind.oid, kind.size, modifier, form)


def _array_of(element: WireType) -> WireType:
    delimiter = b";" if element.oid == BOX_OID else b","

    def write(value: Any) -> bytes:
        if not isinstance(value, list):
            return write_text(value)
        written = _write_array(cast("list[Any]", value), element.text, delimiter)
        bounds = value.bounds if isinstance(value, BoundedArray) else ""
        return f"{bounds}=".encode() + written if bounds else written

    def pack(value: Any) -> bytes:
        if not isinstance(value, list):
            raise ValueError("not an array")
        return _pack_array(cast("list[Any]", value), element)

    return WireType(element.array, -1, write, pack, packs=element.packs)


def _array_of_unknown() -> WireType:
    """An array whose elements have no type here: a text in both formats."""
    write = _array_of(_TEXT).text
    return WireType(TEXT_OID, -1, write, write)


_NEEDS_QUOTES = re.compile(rb'[\s{}"\\]')


def _write_array(values: Sequence[Any], write: Encode, delimiter: bytes) -> bytes:
    """`{1,NULL,"a b"}` (`array_out`)."""
    items: list[bytes] = []
    for value in values:
        if value is None:
            items.append(b"NULL")
        elif isinstance(value, list):
            items.append(_write_array(cast("list[Any]", value), write, delimiter))
        else:
            item = write(value)
            special = delimiter in item or item.upper() == b"NULL"
            if _NEEDS_QUOTES.search(item) is None and item and not special:
                items.append(item)
            else:
                items.append(b'"' + item.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"')
    return b"{" + delimiter.join(items) + b"}"


_LOWEST = re.compile(r"\[([+-]?\d+):")


def _pack_array(values: Sequence[Any], element: WireType) -> bytes:
    """Dimensions, then the elements (`array_send`)."""
    sizes: list[int] = []
    level: Sequence[Any] = values
    while isinstance(level, list):
        sizes.append(len(level))
        level = cast("Sequence[Any]", level[0]) if level else ()
    flat: list[Any] = list(values)
    for _ in sizes[1:]:
        flat = [item for part in flat for item in part]
    if not flat:
        sizes = []
    parts = [INT32.pack(len(sizes)), INT32.pack(int(None in flat)), UINT32.pack(element.oid)]
    bounds = values.bounds if isinstance(values, BoundedArray) else ""
    lowest = [int(each) for each in _LOWEST.findall(bounds)] or [1] * len(sizes)
    for size, low in zip(sizes, lowest, strict=True):
        parts += INT32.pack(size), INT32.pack(low)
    for item in flat:
        if item is None:
            parts.append(INT32.pack(-1))
        else:
            packed = element.binary(item)
            parts += INT32.pack(len(packed)), packed
    return b"".join(parts)


_TEXTS = _array_of_unknown()

_NAMES_BY_OID = {kind.oid: name for name, kind in _BY_NAME.items()} | {
    kind.array: f"{name}[]" for name, kind in _BY_NAME.items()
}
_OIDS_BY_NAME = {name: oid for oid, name in _NAMES_BY_OID.items()}


def type_name(oid: int) -> str | None:
    """PostgreSQL's name of a type that a parameter may be cast to; None for text and unknown
    types, which the database infers."""
    return None if oid in (0, TEXT_OID, 705, 1043) else _NAMES_BY_OID.get(oid)


_ALIASES = {
    "int2": 21, "int4": 23, "int": 23, "int8": 20, "float4": 700, "float8": 701, "float": 701,
    "decimal": 1700, "bool": 16, "varchar": 1043, "bpchar": 1042, "time": 1083, "timetz": 1266,
    "timestamp": 1114, "timestamptz": 1184,
}  # fmt: skip


def oid_of_alias(name: str) -> int:
    """The oid of a type by any of its names in a cast; 0 for one that is not known."""
    key = " ".join(name.lower().split())
    return _ALIASES.get(key) or _OIDS_BY_NAME.get(key, 0)


def oid_of(name: str) -> int:
    """The oid of a type that the database named; text for one that is not known."""
    return _OIDS_BY_NAME.get(_MODIFIER.sub("", name.lower()), TEXT_OID)
