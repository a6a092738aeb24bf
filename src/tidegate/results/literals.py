"""Writes a value of a result as the literal that its column takes back.

Results are told as `results/types.py` says, in one way for every engine; some databases do not read
all of it: an ISO 8601 duration, a moment that ends in Z. Here the column's type decides. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tidegate.pages import Column
from tidegate.results.types import text
from tidegate.sql.quoting import literal

Write = Callable[[Any], str]

_DURATION = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(-?\d+(?:\.\d+)?)S)?", re.ASCII
)
_UNITS = ("years", "months", "days", "seconds")


def literals(columns: Sequence[Column], dialect: str) -> list[Write]:
    """One writer of literals for each column."""
    special = _SPECIAL.get(dialect)
    return [
        (special and special(column.type)) or (lambda value: literal(value, dialect))
        for column in columns
    ]


# PostgreSQL: what is not a number is a literal without a type, which the column's type reads.


def _postgres(kind: str) -> Write | None:
    array = kind.endswith("[]")
    shaped = _duration if kind.removesuffix("[]") == "interval" else _same
    if array:
        return lambda value: "NULL" if value is None else literal(_array(value, shaped), "postgres")
    if shaped is _same:
        return None
    return lambda value: literal(shaped(value), "postgres")


def _array(values: Any, shaped: Callable[[Any], Any]) -> str:
    """PostgreSQL's own text of an array: `{1,NULL,"a b"}`."""
    if not isinstance(values, list):
        return str(values)
    return "{" + ",".join([_element(v, shaped) for v in cast("list[Any]", values)]) + "}"


def _element(value: Any, shaped: Callable[[Any], Any]) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _array(value, shaped)
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    written = text(shaped(value)) or ""
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'


# MySQL and MariaDB.


def _mysql(kind: str) -> Write | None:
    return {"timestamp": _mysql_moment, "time": _mysql_time, "geometry": _mysql_shape}.get(
        kind.partition("(")[0]
    )


def _mysql_moment(value: Any) -> str:
    """A moment in UTC, whatever the time zone of the session that replays it."""
    if not (isinstance(value, str) and value.endswith("Z")):
        return literal(value, "mysql")
    plain = literal(value[:-1].replace("T", " "), "mysql")
    return f"CONVERT_TZ({plain}, '+00:00', @@session.time_zone)"


def _mysql_time(value: Any) -> str:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return literal(value, "mysql")
    whole, _, fraction = (found[5] or "0").partition(".")
    hours, rest = divmod(int(found[4] or 0) * 86_400 + int(whole), 3600)
    clock = f"{found[1]}{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return literal(f"{clock}.{fraction}" if fraction else clock, "mysql")


def _mysql_shape(value: Any) -> str:
    written = literal(value, "mysql")
    return f"ST_GeomFromText({written})" if isinstance(value, str) else written


# DuckDB, whose types nest.


def _duckdb(kind: str) -> Write | None:
    if kind == "INTERVAL":
        return lambda value: literal(_duration(value), "duckdb")
    if kind.startswith(("DATE", "TIMESTAMP")) and not kind.endswith("]"):
        return lambda value: literal(_ancient(value), "duckdb")
    if kind == "TIME WITH TIME ZONE":
        return lambda value: literal(_offset(value), "duckdb")
    if kind.endswith("]"):
        inner = _duckdb_writer(kind[: kind.rindex("[")])
        return lambda value: _list(value, inner)
    if kind.startswith("STRUCT(") and kind.endswith(")"):
        fields = [_duckdb_writer(_behind_name(part)) for part in _parts(kind[7:-1])]
        return lambda value: _struct(value, fields)
    if kind.startswith("MAP(") and kind.endswith(")"):
        keys, values = [_duckdb_writer(part) for part in _parts(kind[4:-1])]
        return lambda value: _map(value, keys, values)
    return None


def _duckdb_writer(kind: str) -> Write:
    return _duckdb(kind) or (lambda value: literal(value, "duckdb"))


def _list(value: Any, inner: Write) -> str:
    return literal(value, "duckdb") if value is None else f"[{', '.join(map(inner, value))}]"


def _struct(value: Any, fields: Sequence[Write]) -> str:
    if not isinstance(value, Mapping):
        return literal(value, "duckdb")
    pairs = zip(cast("Mapping[str, Any]", value).items(), fields, strict=True)
    shown = [f"{literal(name, 'duckdb')}: {write(inner)}" for (name, inner), write in pairs]
    return "{" + ", ".join(shown) + "}"


def _map(value: Any, keys: Write, values: Write) -> str:
    if not isinstance(value, Mapping):
        return literal(value, "duckdb")
    pairs = cast("Mapping[Any, Any]", value)
    return f"MAP({_list(list(pairs), keys)}, {_list(list(pairs.values()), values)})"


def _parts(inside: str) -> list[str]:
    """What commas part, outside of parentheses and quotes."""
    parts, depth, quoted = [""], 0, False
    for sign in inside:
        quoted ^= sign == '"'
        if not quoted:
            depth += (sign in "([") - (sign in ")]")
            if sign == "," and not depth:
                parts.append("")
                continue
        parts[-1] += sign
    return [part.strip() for part in parts]


def _behind_name(field: str) -> str:
    """The type of a field: `"a b" INTEGER` or `a INTEGER`."""
    found = re.match(r'(?:"(?:[^"]|"")*"|\S+)\s+', field)
    return field[found.end() :] if found else field


def _offset(value: Any) -> Any:
    return f"{value[:-1]}+00" if isinstance(value, str) and value.endswith("Z") else value


def _ancient(value: Any) -> Any:
    return f"{value[:-2]}(BC)" if isinstance(value, str) and value.endswith(" BC") else value


# What several have in common.


def _same(value: Any) -> Any:
    return value


def _duration(value: Any) -> Any:
    """An ISO 8601 duration in words that PostgreSQL and DuckDB read; other values as they are."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    sign = found[1]
    shown = [
        f"{part.removeprefix('-') if sign and part.startswith('-') else sign + part} {unit}"
        for part, unit in zip(found.groups()[1:], _UNITS, strict=True)
        if part is not None
    ]
    return " ".join(shown)


_SPECIAL: dict[str, Callable[[str], Write | None]] = {
    "postgres": _postgres,
    "mysql": _mysql,
    "mariadb": _mysql,
    "duckdb": _duckdb,
}
