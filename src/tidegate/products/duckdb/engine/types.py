"""DuckDB's types and values: how a column is asked for so that its values come exact.

The driver makes datetimes of dates, and loses infinities, nanoseconds and months on the way. So
DuckDB itself writes such values as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from duckdb.sqltypes import DuckDBPyType

from tidegate.errors import Code, TidegateError
from tidegate.results.json_values import json_raw

Coercion = Callable[[Any], Any]
Rows = Sequence[Sequence[Any]]

_TEXT = "VARCHAR"
_READ_EXACTLY = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "double", "varchar", "blob"}
    | {"utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "null", "enum"}
)
"""Types whose values the driver reads as they are. Every other, also one that a later version of
DuckDB brings, is written as text by DuckDB itself."""
_READ_BUT_INFINITE = frozenset(
    {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp with time zone", "time"}
    | {"time with time zone", "decimal", "uuid", "bignum", "bit", "float", "geometry"}
)
"""Types that the driver reads well enough where nothing can be written as text: what a change
returns."""
_NESTED = frozenset({"list", "array", "struct", "tuple", "map", "union"})


class Column:
    """How one column of a statement is asked for."""

    __slots__ = ("coercion", "expression")

    def __init__(self, place: int, kind: DuckDBPyType) -> None:
        name = f"#{place}"
        self.expression = name
        self.coercion: Coercion | None = None
        written = _written(kind, floats=_TEXT)
        if written != str(kind):
            self.expression = f"CAST({name} AS {written})"
            if _TEXT in written and (final := _written(kind, floats="DOUBLE")) != written:
                self.expression = f"CAST({self.expression} AS {final})"
        self.coercion = coercion_of(kind)


class ExactQuery:
    """How a statement is asked for: `columns` are its own, names and types; `text` what is run;
    `is_plain` says that this is the statement itself."""

    __slots__ = ("coerced_columns", "columns", "is_plain", "text")

    def __init__(self, text: str, names: Sequence[str], kinds: Sequence[DuckDBPyType]) -> None:
        """`text` is a query that can be used as a subquery, with nothing after it."""
        asked = [Column(place, kind) for place, kind in enumerate(kinds, 1)]
        self.columns = [(name, str(kind)) for name, kind in zip(names, kinds, strict=True)]
        self.coerced_columns: list[Column] = []
        self.text = text
        if any(column.coercion is not None for column in asked):
            self.coerced_columns = asked
        self.is_plain = all(column.expression[0] == "#" for column in asked)
        if not self.is_plain:
            expressions = ", ".join([column.expression for column in asked])
            self.text = f"SELECT {expressions} FROM (\n{text}\n)"


def check_exact(kinds: Sequence[DuckDBPyType]) -> None:
    """See that the driver reads the types exactly without our help, except infinite dates.

    Raises: TidegateError SQL_FAILED.
    """
    for kind in kinds:
        if not all(name in _READ_EXACTLY | _READ_BUT_INFINITE for name in _leaves(kind)):
            raise TidegateError(
                Code.SQL_FAILED,
                f"A statement that writes cannot return a value of the type {kind}.",
                hint="Return it as text, like `column::VARCHAR`. Nothing was changed.",
            )


def _leaves(kind: DuckDBPyType) -> Iterator[str]:
    """The names of the types of which a type is made."""
    if kind.id not in _NESTED:
        yield kind.id
        return
    for part in _parts(kind):
        yield from _leaves(part)


def _parts(kind: DuckDBPyType) -> list[DuckDBPyType]:
    """The types of what a nested type holds."""
    parts = cast("list[tuple[str, Any]]", kind.children)
    if kind.id == "array":
        return [parts[0][1]]
    return [part for _, part in (parts[1:] if kind.id == "union" else parts)]


def coerced(rows: list[tuple[Any, ...]], columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """The rows with the values that DuckDB gives as text in the form that all engines use."""
    if not rows or not columns:
        return rows
    values: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place, column in enumerate(columns):
        convert = column.coercion
        if convert is not None:
            values[place] = [None if value is None else convert(value) for value in values[place]]
    return list(zip(*values, strict=True))


def _written(kind: DuckDBPyType, floats: str) -> str:
    """The type with text in the place of every part that the driver does not read exactly."""
    name = kind.id
    if name == "float":
        return floats
    if name not in _NESTED:
        return str(kind) if name in _READ_EXACTLY else _TEXT
    parts = cast("list[tuple[str, Any]]", kind.children)
    if not parts or set(_leaves(kind)) <= _READ_EXACTLY:
        return str(kind)  # an empty structure cannot be written with parentheses
    if name == "list":
        return f"{_written(parts[0][1], floats)}[]"
    if name == "array":
        return f"{_written(parts[0][1], floats)}[{parts[1][1]}]"
    inner = [(label, _written(part, floats)) for label, part in parts]
    if name == "map" or name == "tuple":
        return f"{name.upper()}({', '.join(part for _, part in inner)})"
    if name == "union":
        inner = inner[1:]  # the first is its tag
    named = [f'"{label.replace(chr(34), chr(34) * 2)}" {part}' for label, part in inner]
    return f"{name.upper()}({', '.join(named)})"


def coercion_of(kind: DuckDBPyType) -> Coercion | None:
    """Turns DuckDB's text into the form that all engines use; None if it is the same."""
    name = kind.id
    if is_json(kind):
        return json_raw
    if name not in _NESTED:
        return _COERCIONS.get(name)
    parts = cast("list[tuple[str, Any]]", kind.children)
    if name == "union":
        return None  # the driver does not report which member a value is
    if name in ("list", "array"):
        inner = coercion_of(parts[0][1])
        return None if inner is None else lambda values: [_apply(inner, one) for one in values]
    coercions = [coercion_of(part) for _, part in parts]
    if not any(coercions):
        return None
    if name == "struct":
        by_name = dict(zip([label for label, _ in parts], coercions, strict=True))
        return lambda value: {
            label: _apply(by_name.get(label), one) for label, one in value.items()
        }
    if name == "map":
        listed = parts[0][1].id in _NESTED
        keys = None if is_json(parts[0][1]) else coercions[0]  # the key of an object is text
        return lambda value: _map(keys, coercions[1], value, listed)
    return lambda value: [_apply(each, one) for each, one in zip(coercions, value, strict=True)]


def _apply(coercion: Coercion | None, value: Any) -> Any:
    return value if coercion is None or value is None else coercion(value)


def _map(
    keys: Coercion | None, values: Coercion | None, found: dict[Any, Any], listed: bool
) -> dict[Any, Any]:
    """Of keys that Python cannot look up the driver makes two lists, `key` and `value`."""
    if listed and all(isinstance(part, list) for part in found.values()):
        lists = cast("dict[str, list[Any]]", found)
        coercions = {"key": keys, "value": values}
        return {
            name: [_apply(coercions[name], one) for one in part] for name, part in lists.items()
        }
    return {_apply(keys, key): _apply(values, value) for key, value in found.items()}


def is_json(kind: DuckDBPyType) -> bool:
    """Whether it is the type JSON, which the driver takes for text."""
    return str(kind) == "JSON"


_SHORT_FRACTION = re.compile(r"\.(\d{1,5})(?!\d)")
_SHORT_OFFSET = re.compile(r"([+-]\d\d)$")


def date_text(text: str) -> str:
    """`0044-03-15 (BC)` as `0044-03-15 BC`."""
    return text.replace(" (BC)", " BC") if text.endswith(")") else text


def timestamp_text(text: str) -> str:
    """`2026-01-02 03:04:05.6+00` as `2026-01-02T03:04:05.600000Z`."""
    if "(" in text or "inf" in text:
        return text.replace(" (BC)", " BC")
    return time_text(text.replace(" ", "T", 1))


def time_text(text: str) -> str:
    """Six digits or none after the second (nine if they are needed); Z, or `+02:00`."""
    if "." in text:
        text = _SHORT_FRACTION.sub(lambda found: f".{found[1]:0<6}", text)
    if text.endswith("+00"):
        return text[:-3] + "Z"
    return _SHORT_OFFSET.sub(r"\1:00", text) if text[-3] in "+-" else text


_INTERVAL = re.compile(
    r"(?:(-?\d+) years? ?)?(?:(-?\d+) months? ?)?(?:(-?\d+) days? ?)?"
    r"(?:(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?)?"
)


def interval_text(text: str) -> str:
    """`1 year 2 months 3 days 04:05:06.5` as an ISO 8601 duration, the time of day in seconds.

    If every part is negative the sign comes first; if only some are, at each of them.
    """
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return text
    years, months, days = (int(part or 0) for part in found.group(1, 2, 3))
    seconds, fraction, late = 0, "", 1
    if found[5] is not None:
        seconds = int(found[5]) * 3600 + int(found[6]) * 60 + int(found[7])
        fraction = (found[8] or "").rstrip("0")
        late = -1 if found[4] else 1
    timed = bool(seconds or fraction)
    signs = {part < 0 for part in (years, months, days) if part}
    if timed:
        signs.add(late < 0)
    turn = -1 if signs == {True} else 1
    dates = "".join(
        f"{part * turn}{unit}" for part, unit in ((years, "Y"), (months, "M"), (days, "D")) if part
    )
    if timed:
        point = f".{fraction}" if fraction else ""
        dates += f"T{'-' if late * turn < 0 else ''}{seconds}{point}S"
    return f"{'-' if turn < 0 else ''}P{dates or '0D'}"


_COERCIONS: dict[str, Coercion] = {
    "date": date_text,
    "timestamp": timestamp_text,
    "timestamp_s": timestamp_text,
    "timestamp_ms": timestamp_text,
    "timestamp_ns": timestamp_text,
    "timestamp with time zone": timestamp_text,
    "timestamptz_ns": timestamp_text,
    "time": time_text,
    "time_ns": time_text,
    "time with time zone": time_text,
    "interval": interval_text,
}
