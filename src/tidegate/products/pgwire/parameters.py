"""Reads the parameters of statements from PostgreSQL's text and binary formats. Pure.

Source: PostgreSQL 17, `src/backend/utils/adt` (the `in` and `recv` functions of each type).
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from tidegate.errors import Code, TidegateError
from tidegate.products.pgwire.packers import FLOAT4, FLOAT8, INT16, INT32, INT64, INTERVAL, UINT32
from tidegate.products.pgwire.values import ARRAY_ELEMENTS, EPOCH, EPOCH_DAYS, SPECIAL_NUMERIC
from tidegate.sql.dialects import find


def _read_bytes(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    raise ValueError("not in hex format")


_TRUE = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "off", "0"})


def _read_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("not a boolean")


_FROM_TEXT: Mapping[int, Callable[[str], Any]] = {
    16: _read_boolean,
    17: _read_bytes,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
    1700: Decimal,
}


def _unpack_numeric(data: bytes) -> Any:
    count, weight, sign, scale = struct.unpack_from("!hhHH", data)
    for name, code in SPECIAL_NUMERIC.items():
        if sign == code:
            return Decimal(name)
    groups = struct.unpack_from(f"!{count}h", data, 8)
    digits = "".join(f"{group:04}" for group in groups) or "0"
    number = Decimal(digits).scaleb((weight - count + 1) * 4)
    return (-number if sign == 0x4000 else number).quantize(Decimal(1).scaleb(-scale))


def _unpack_timestamp(data: bytes) -> str:
    moment = EPOCH + datetime.timedelta(microseconds=INT64.unpack(data)[0])
    return moment.isoformat(sep=" ")


def _unpack_timestamp_tz(data: bytes) -> str:
    return _unpack_timestamp(data) + "+00:00"


def _unpack_date(data: bytes) -> str:
    return datetime.date.fromordinal(EPOCH_DAYS + INT32.unpack(data)[0]).isoformat()


def _unpack_time(data: bytes) -> str:
    seconds, fraction = divmod(INT64.unpack(data)[0], 1_000_000)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction).isoformat()


def _unpack_interval(data: bytes) -> str:
    microseconds, days, months = INTERVAL.unpack(data)
    return f"{months} months {days} days {microseconds} microseconds"


def _unpack_jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError("an unknown version of jsonb")
    return data[1:].decode()


def _unpack_boolean(data: bytes) -> bool:
    return data != b"\0"


def _unpack(packer: struct.Struct) -> Callable[[bytes], Any]:
    return lambda data: packer.unpack(data)[0]


_FROM_BINARY: Mapping[int, Callable[[bytes], Any]] = {
    0: bytes.decode,
    16: _unpack_boolean,
    17: bytes,
    18: bytes.decode,
    19: bytes.decode,
    20: _unpack(INT64),
    21: _unpack(INT16),
    23: _unpack(INT32),
    25: bytes.decode,
    26: _unpack(UINT32),
    114: bytes.decode,
    700: _unpack(FLOAT4),
    701: _unpack(FLOAT8),
    1042: bytes.decode,
    1043: bytes.decode,
    1082: _unpack_date,
    1083: _unpack_time,
    1114: _unpack_timestamp,
    1184: _unpack_timestamp_tz,
    1186: _unpack_interval,
    1700: _unpack_numeric,
    2950: lambda data: str(UUID(bytes=data)),
    3802: _unpack_jsonb,
}


def _unpack_array(data: bytes, oid: int) -> list[Any]:
    element = ARRAY_ELEMENTS[oid]
    dimensions, _, element_oid = struct.unpack_from("!iiI", data)
    read = _FROM_BINARY[element_oid or element.oid]
    if not 0 <= dimensions <= 1:
        raise ValueError("arrays of several dimensions are sent as text")
    if dimensions == 0:
        return []
    (count,) = struct.unpack_from("!i", data, 12)
    at, found = 20, list[Any]()
    for _ in range(count):
        (length,) = struct.unpack_from("!i", data, at)
        at += 4
        if length < 0:
            found.append(None)
            continue
        if at + length > len(data):
            raise ValueError("the array ends too early")
        found.append(read(data[at : at + length]))
        at += length
    return found


def read_parameter(data: bytes | None, oid: int, form: int, dialect: str) -> Any:
    """The value of a parameter of that type (0: unknown). For PostgreSQL a text stays as it is:
    the database reads it better.

    Raises: TidegateError ARGUMENT_INVALID with SQLSTATE 22P02 or 22P03.
    """
    if data is None:
        return None
    try:
        if form == 0:
            text = data.decode()
            read = None if find(dialect).is_postgres else _FROM_TEXT.get(oid)
            return text if read is None else read(text)
        if oid in ARRAY_ELEMENTS:
            return _unpack_array(data, oid)
        return _FROM_BINARY[oid](data)
    except KeyError:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"A parameter of the type with oid {oid} is not read in binary format.",
            hint="Send it as text.",
            details={"sqlstate": "0A000"},
        ) from None
    except (ValueError, struct.error, InvalidOperation, OverflowError) as error:
        named = "text" if form == 0 else "binary"
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"A parameter in {named} format is no value of the type with oid {oid}:"
            f" {type(error).__name__}.",
            details={"sqlstate": "22P02" if form == 0 else "22P03"},
        ) from None
