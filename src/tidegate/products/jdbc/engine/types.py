"""The values of a JDBC result as Python's, and its columns as the gate describes them. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from tidegate.engines.api import Row
from tidegate.model.decimals import is_long
from tidegate.model.results import Column, ColumnKind, DriverType
from tidegate.products.jdbc.engine.known_databases import KnownDatabase
from tidegate.products.jdbc.engine.messages import JdbcColumn, Portion
from tidegate.results.column_kinds import MAX_NAME, read_type
from tidegate.results.json_values import json_raw
from tidegate.typed_values import convert_value, msgpack_decoder

_KINDS: dict[int, ColumnKind] = {
    -7: "boolean",
    16: "boolean",
    **dict.fromkeys((-6, 5, 4, -5), "integer"),
    **dict.fromkeys((2, 3), "decimal"),
    **dict.fromkeys((6, 7, 8), "float"),
    **dict.fromkeys((1, 12, -1, -15, -9, -16, 2005, 2011, 2009), "text"),
    **dict.fromkeys((-2, -3, -4, 2004), "bytes"),
    91: "date",
    92: "time",
    2013: "time_tz",
    93: "timestamp",
    2014: "timestamp_tz",
    2003: "array",
    2002: "struct",
}
"""By the code of `java.sql.Types`."""

_FORMS: dict[str, ColumnKind] = {"uuid": "uuid", "json": "json", "timestamp_tz": "timestamp_tz"}
_SIZED = frozenset({"decimal", "text", "bytes"})
_CLOCKS = frozenset({"time", "time_tz", "timestamp", "timestamp_tz"})
_MICROSECONDS = 6
"""Digits after the second that Python's types hold."""
_NO_TYPE = frozenset({"NULL", "UNKNOWN"})
"""What drivers say that do not know the type of a parameter."""
_TYPED = (int, Decimal, datetime.date, datetime.time, UUID)
_LEAST, _MOST = -(2**63), 2**63 - 1
"""Of Java's long."""
_MOST_DIGITS = 1_000_000
"""Drivers give the largest integer as the length of a column that has none."""

_Decode = Callable[[msgspec.Raw], list[Any]]


def column_of(column: JdbcColumn) -> Column:
    """The column as replies describe it."""
    kind = _FORMS.get(column.form) or _KINDS.get(column.code)
    if kind == "date" and column.form == "plain":  # MariaDB's YEAR
        kind = "integer"
    if kind is None or not column.type_name:
        kind = kind or read_type(column.type_name)[0]
    precision = scale = None
    if kind in _SIZED and 0 < column.precision < _MOST_DIGITS:
        precision = column.precision
        scale = column.scale if kind == "decimal" else None
    elif kind in _CLOCKS and column.scale > _MICROSECONDS:
        scale = column.scale
    label = column.label[:MAX_NAME]
    driver_type = DriverType(column.code, column.type_name[:MAX_NAME], column.class_name[:MAX_NAME])
    return Column(label, column.type_name.lower(), kind, precision, scale, driver_type)


def parameter_of(value: Any) -> Any:
    """A parameter as it travels to the JVM: what MessagePack has no type for as its type and its
    text (`Parameters.java`)."""
    if isinstance(value, bool) or not isinstance(value, _TYPED):
        return value
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else {"decimal": str(value)}
    if isinstance(value, Decimal):
        if not value.is_finite():
            return float(value)
        # Drivers write such a number out, digit by digit.
        return {"decimal": str(value)} if not is_long(value) else str(value)
    if isinstance(value, datetime.datetime):
        return {"timestamp_tz" if value.tzinfo else "timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"time": value.isoformat()} if value.tzinfo is None else value
    return {"uuid": str(value)}


def parameter_types(types: Sequence[str], product: KnownDatabase) -> tuple[str, ...]:
    """The types of a statement's parameters, empty where the database has none for one, whatever
    its driver says then."""
    return tuple(["" if product.loose or each in _NO_TYPE else each for each in types])


def rows_of(portion: Portion, columns: Sequence[JdbcColumn]) -> list[Row]:
    """The rows of a portion. A text that is no value of its column's form stays a text: an
    infinite date, a year of five digits, a moment with more digits than microseconds have."""
    if not portion.rows:
        return []
    values = [
        _DECODE.get(column.form, _plain)(raw)
        for column, raw in zip(columns, portion.columns, strict=True)
    ]
    return list(zip(*values, strict=True))


_plain: _Decode = msgspec.msgpack.Decoder(list[Any]).decode


def _typed(kind: Any) -> _Decode:
    decode: _Decode = msgpack_decoder(list[kind]).decode

    def read(raw: msgspec.Raw) -> list[Any]:
        try:
            return decode(raw)
        except msgspec.ValidationError:
            return [_single(value, kind) for value in _plain(raw)]

    return read


def _single(value: Any, kind: Any) -> Any:
    try:
        return convert_value(value, kind)
    except msgspec.ValidationError:
        return value


_FINE: Any = re.compile(rb"\.\d{6}[1-9]|\.\d{7}[1-9]|\.\d{8}[1-9]")
_FINE_TEXT = re.compile(r"\.(\d{7,9})(?!\d)")
_FAR = re.compile(r"([+-]?)(\d{4,9})(-(?!00)\d\d-(?!00)\d\d)(?:[T ](.+))?")


def _moments(kind: Any) -> _Decode:
    """Of dates and times, whose nanoseconds msgspec would round away."""
    decode: _Decode = msgpack_decoder(list[kind]).decode

    def read(raw: msgspec.Raw) -> list[Any]:
        if _FINE.search(raw) is None:
            try:
                return decode(raw)
            except msgspec.ValidationError:
                pass
        return [_moment(value, kind) for value in _plain(raw)]

    return read


def _moment(value: Any, kind: Any) -> Any:
    if not isinstance(value, str):
        return value
    fraction = _FINE_TEXT.search(value)
    if fraction is not None and fraction[1][6:].strip("0"):
        text = f"{value[: fraction.start()]}.{fraction[1]:0<9}{value[fraction.end() :]}"
        return _far(f"{text[:10]}T{text[11:]}" if text[10:11] == " " else text)
    found = _single(value, kind)
    return _far(found) if isinstance(found, str) else found


def _far(text: str) -> str:
    """A text of Java with a year that Python has not, as other engines write it."""
    found = _FAR.fullmatch(text)
    if found is None:
        return f"{text[:-3]}Z" if text == "24:00:00+00" else text
    sign, year, day, time = found.groups()
    if sign != "-" and int(year):
        return text.removeprefix("+")
    # ISO 8601 has a year 0, which is the first before the common era.
    shown = f" {time.replace('Z', '+00')}" if time else ""
    return f"{int(year) + 1:04}{day}{shown} BC"


def _integers(raw: msgspec.Raw) -> list[Any]:
    return [None if value is None else int(value) for value in _plain(raw)]


def _json(raw: msgspec.Raw) -> list[Any]:
    return [None if value is None else json_raw(value) for value in _plain(raw)]


_DECODE: dict[str, _Decode] = {
    "plain": _plain,
    "integer": _integers,
    "decimal": _typed(Decimal | None),
    "date": _moments(datetime.date | None),
    "time": _moments(datetime.time | None),
    "time_tz": _moments(datetime.time | None),
    "timestamp": _moments(datetime.datetime | None),
    "timestamp_tz": _moments(datetime.datetime | None),
    "uuid": _typed(UUID | None),
    "json": _json,
}
