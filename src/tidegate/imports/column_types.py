"""The types of a new table's columns, in the words of each dialect. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.imports.model import Kind, Value

_SQLITE: Mapping[Kind, str] = {
    "integer": "INTEGER", "decimal": "NUMERIC", "float": "REAL", "boolean": "BOOLEAN",
    "date": "DATE", "timestamp": "TIMESTAMP", "bytes": "BLOB",
}  # fmt: skip
_POSTGRES: Mapping[Kind, str] = {
    "integer": "bigint", "decimal": "numeric", "float": "double precision", "boolean": "boolean",
    "date": "date", "time": "time without time zone", "timestamp": "timestamp without time zone",
    "timestamp_tz": "timestamp with time zone", "bytes": "bytea",
}  # fmt: skip
_MYSQL: Mapping[Kind, str] = {
    "integer": "bigint", "float": "double", "boolean": "boolean", "date": "date",
    "time": "time(6)", "timestamp": "datetime(6)", "bytes": "longblob",
}  # fmt: skip
_DUCKDB: Mapping[Kind, str] = {
    "integer": "BIGINT", "float": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "time": "TIME",
    "timestamp": "TIMESTAMP", "timestamp_tz": "TIMESTAMP WITH TIME ZONE", "bytes": "BLOB",
}  # fmt: skip
_TYPES = {"sqlite": _SQLITE, "postgres": _POSTGRES, "mysql": _MYSQL, "duckdb": _DUCKDB}
_TEXTS = {"sqlite": "TEXT", "postgres": "text", "mysql": "longtext", "duckdb": "VARCHAR"}
_WIDEST = {"mysql": (65, 30), "duckdb": (38, 20)}
_SQLITE_DIGITS = 15
"""More would be cut: SQLite keeps a decimal number as a float."""
_SHORT = 255


def type_of(kind: Kind, values: Sequence[Value], dialect: str) -> str:
    """The type that takes such values of a kind."""
    types, text = _TYPES.get(dialect, _POSTGRES), _TEXTS.get(dialect, "text")
    if kind == "decimal" and dialect in ("sqlite", "mysql", "duckdb"):
        return _decimal(values, dialect) or text
    if kind == "text" and dialect == "mysql":
        longest = max([len(value) for value in values if isinstance(value, str)], default=0)
        return text if longest > _SHORT else f"varchar({_SHORT})"
    return types.get(kind, text)


def _decimal(values: Sequence[Value], dialect: str) -> str:
    """A type for decimal numbers that keeps all digits; empty if there is none."""
    digits = scale = 0
    for value in values:
        if isinstance(value, str):
            digits = max(digits, sum(each.isdigit() for each in value))
            last = max(value.rfind("."), value.rfind(","))
            scale = max(scale, len(value) - last - 1 if last >= 0 else 0)
    if dialect == "sqlite":
        return "NUMERIC" if digits <= _SQLITE_DIGITS else ""
    widest, most = _WIDEST[dialect]
    return f"decimal({widest},{scale})" if digits <= widest and scale <= most else ""
