"""Maps the kind of a column to the codes of protocols: JDBC, PostgreSQL's wire, JSON Schema. Pure.

JDBC codes are those of `java.sql.Types`, oids those of PostgreSQL's `pg_type.dat`. The values that
a JSON Schema describes are those that `json_values.py` writes.
"""

from __future__ import annotations

from typing import Any

from tidegate.model.results import Column, ColumnKind

JDBC_CODES: dict[ColumnKind, int] = {
    "boolean": 16,
    "integer": -5,
    "decimal": 3,
    "float": 8,
    "text": 12,
    "bytes": -3,
    "date": 91,
    "time": 92,
    "time_tz": 2013,
    "timestamp": 93,
    "timestamp_tz": 2014,
    "interval": 1111,
    "uuid": 1111,
    "json": 1111,
    "array": 2003,
    "struct": 2002,
    "other": 1111,
}

POSTGRES_OIDS: dict[ColumnKind, int] = {
    "boolean": 16,
    "integer": 20,
    "decimal": 1700,
    "float": 701,
    "text": 25,
    "bytes": 17,
    "date": 1082,
    "time": 1083,
    "time_tz": 1266,
    "timestamp": 1114,
    "timestamp_tz": 1184,
    "interval": 1186,
    "uuid": 2950,
    "json": 114,
    "array": 25,
    "struct": 114,
    "other": 25,
}
"""An array and an unknown value travel as text: their element type is not part of the kind."""

_STRING: dict[str, Any] = {"type": ["string", "null"]}
_SCHEMAS: dict[ColumnKind, dict[str, Any]] = {
    "boolean": {"type": ["boolean", "null"]},
    # Whole numbers that a double cannot hold, decimals and infinities are written as strings.
    "integer": {"type": ["integer", "string", "null"]},
    "decimal": {"type": ["string", "number", "null"]},
    "float": {"type": ["number", "string", "null"]},
    "text": _STRING,
    "bytes": {"type": ["string", "null"], "contentEncoding": "base64"},
    "date": _STRING,
    "time": _STRING,
    "time_tz": _STRING,
    "timestamp": _STRING,
    "timestamp_tz": _STRING,
    "interval": _STRING,
    "uuid": _STRING,
    "json": {},
    "array": {"type": ["array", "string", "null"]},
    "struct": {},
    "other": {},
}


def json_schema(column: Column) -> dict[str, Any]:
    """The JSON Schema of the column's values; an empty schema allows anything."""
    return dict(_SCHEMAS[column.kind])
