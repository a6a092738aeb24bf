"""Values of parameters as a person types them, made into values of the types that a saved query
declares. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.products.console.data_calls import speaks_sql
from tidegate.sql.dialects import find
from tidegate.store.saved_queries import ParameterType

Value = str | int | float | bool | None
Params = Mapping[str, Value] | Sequence[Value] | None
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "1"), True),
    **dict.fromkeys(("false", "f", "no", "0"), False),
}


def typed_values(
    params: Params, types: Mapping[str, ParameterType] | None, source: Source
) -> Mapping[str, Any] | Sequence[Any] | None:
    """The parameters with each text of a declared type as a value of it. Raises: TidegateError
    ARGUMENT_INVALID for a text that is none."""
    if not types or not isinstance(params, Mapping):
        return params
    untyped = speaks_sql(source) and find(source.dialect).untyped_columns
    return {
        name: _value(name, value, types[name], untyped)
        if isinstance(value, str) and name in types
        else value
        for name, value in params.items()
    }


def _value(name: str, text: str, type: ParameterType, untyped: bool) -> Any:
    read, wanted = _READERS[type]
    try:
        value = read(text)
    except (ValueError, InvalidOperation, KeyError, OverflowError):
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"{text[:80]!r} is no value of :{name[:40]}: it takes {wanted}"
        ) from None
    return _for_untyped(value) if untyped else value


def _for_untyped(value: Any) -> Any:
    """The value for a database that has no decimals and no dates of its own."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, datetime.date) else value


def _decimal(text: str) -> Decimal:
    value = Decimal(text.strip())
    if not value.is_finite() or abs(value.adjusted()) > 400:
        raise ValueError(text)
    return value


def _integer(text: str) -> int:
    stripped = text.strip()
    if len(stripped) > 100:
        raise ValueError(text)
    return int(stripped)


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.strip().lower()]


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text.strip())


def _timestamp(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.strip())


_READERS: Mapping[ParameterType, tuple[Callable[[str], Any], str]] = {
    "text": (str, "a text"),
    "integer": (_integer, "a whole number"),
    "decimal": (_decimal, "a number, such as 12.50"),
    "boolean": (_boolean, "true or false"),
    "date": (_date, "a date, such as 2026-01-31"),
    "timestamp": (_timestamp, "a moment, such as 2026-01-31 12:00:00"),
}
