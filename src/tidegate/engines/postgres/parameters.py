"""Statements and their parameters as libpq sends them.

Parameters travel as text without a type, so the server infers it: `WHERE id = $1` makes an integer
of "7" and `$1::date` a date of a text, as they do for psql.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, cast
from uuid import UUID

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.results.json_values import not_finite

_PLAIN = (int, Decimal, UUID)
_DATED = (datetime.datetime, datetime.date, datetime.time)


def dump(params: Sequence[Any] | None) -> list[bytes | None]:
    """The parameters as libpq wants them. Raises: TidegateError ARGUMENT_INVALID,
    SQL_UNREADABLE."""
    return [None if value is None else _bytes(_text(value)) for value in params or ()]


def _bytes(text: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise TidegateError(Code.ARGUMENT_INVALID, "A parameter holds a lone surrogate.") from None
    if b"\0" in encoded:
        raise TidegateError(Code.ARGUMENT_INVALID, "PostgreSQL's text cannot hold a NUL character.")
    return encoded


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, _PLAIN):
        return str(value)
    if isinstance(value, float):
        return repr(value) if isfinite(value) else not_finite(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(cast("bytes", value)).hex()
    if isinstance(value, _DATED):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    if isinstance(value, Mapping):
        return msgspec.json.encode(value).decode()
    if isinstance(value, (list, tuple)):
        return _array(cast("Sequence[Any]", value))
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        "A parameter has a type that PostgreSQL does not know.",
        hint="Send null, true, false, numbers, text, lists of these, or an object for JSON.",
    )


def _array(values: Sequence[Any]) -> str:
    """An array's text, for `= ANY($1)`; a list of objects is JSON."""
    if any(isinstance(value, Mapping) for value in values):
        return msgspec.json.encode(values).decode()
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return _array(cast("Sequence[Any]", value))
    escaped = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
