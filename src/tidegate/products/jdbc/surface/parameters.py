"""The values of a query's parameters: how many there must be, and JSON as Python's types."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.decimals import MOST_POWER, is_long
from tidegate.sql.dialects import find
from tidegate.typed_values import convert_value

MOST_SETS = 100

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "TINYINT"), int),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), float),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), Decimal),
    **dict.fromkeys(("CHAR", "LONGVARCHAR", "NCHAR", "NVARCHAR", "VARCHAR"), str),
    **dict.fromkeys(("BIT", "BOOLEAN"), bool),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_WITH_TIMEZONE"), datetime.datetime),
    "DATE": datetime.date, "TIME": datetime.time, "UUID": UUID,
}  # fmt: skip
"""By the names of `java.sql.JDBCType`."""
_BINARY = frozenset({"BINARY", "BLOB", "LONGVARBINARY", "VARBINARY"})
"""Bytes, which are base64."""


def parameter_sets(
    parameters: Sequence[Any] | None,
    sets: Sequence[Sequence[Any]] | None,
    count: int,
    dialect: str,
) -> list[tuple[Any, ...]]:
    """The values of each execution, in the order of the `?`. Raises: TidegateError ARGUMENT_INVALID
    if a set has not `count` values, or a value does not fit its type."""
    if parameters is not None and sets is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "Both parameters and parameterSets are given.",
            hint="Send parameterSets alone: it holds one list for each execution.",
        )
    given = [list(each) for each in sets] if sets is not None else [list(parameters or ())]
    if not given or len(given) > MOST_SETS:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"parameterSets holds {len(given)} lists, of 1 to {MOST_SETS}."
        )
    for number, values in enumerate(given, 1):
        if len(values) != count:
            where = f"set {number} of parameterSets has" if sets is not None else "there are"
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Parameter count mismatch: the query has {count} parameter(s), and {where}"
                f" {len(values)} value(s).",
                hint="Give one value for each ? in `parameters`, from left to right.",
            )
    written = _as_it_is if find(dialect).typed_literals else _as_text
    return [
        tuple([written(_value(each, at)) for at, each in enumerate(values, 1)]) for values in given
    ]


def _as_it_is(value: Any) -> Any:
    return value


def _as_text(value: Any) -> Any:
    """The value for a database without types for decimals, dates and times, such as SQLite: it
    keeps them as texts."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value) if isinstance(value, (Decimal, UUID)) else value


def _value(given: Any, place: int) -> Any:
    if not isinstance(given, Mapping):
        return given
    typed = cast("Mapping[str, Any]", given)
    name, value = typed.get("type"), typed.get("value")
    if set(typed) != {"type", "value"} or not isinstance(name, str):
        raise _unfit(place, 'is an object, and no {"type": ..., "value": ...}')
    if value is None:
        return None
    wanted = name.upper().replace(" ", "_")
    if wanted not in _TYPES and wanted not in _BINARY:
        known = ", ".join(sorted((*_TYPES, *_BINARY)))
        raise _unfit(place, f"has the type {wanted[:40]}; known are {known}")
    try:
        if wanted in _BINARY:
            return base64.b64decode(value, validate=True)
        read = convert_value(value, _TYPES[wanted], strict=False)
    except (msgspec.ValidationError, binascii.Error, TypeError):
        raise _unfit(place, f"is no {wanted[:40]}") from None
    if isinstance(read, Decimal) and read.is_finite() and is_long(read):
        raise _unfit(place, f"has more than {MOST_POWER:,} digits")
    return read


def _unfit(place: int, what: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"Parameter {place} of the query {what}.",
        hint='Write the value itself, or like {"type": "DATE", "value": "2026-01-31"}.',
    )
