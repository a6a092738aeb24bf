"""Reads the neutral kind of a column from the name of its type.

The four databases mostly agree on what a type name means, so one table serves them all; a name
that means something else in one engine is decided there before it asks here. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tidegate.model.results import Column, ColumnKind

_NAMES: dict[ColumnKind, str] = {
    "boolean": "bool boolean",
    "integer": "int integer tinyint smallint mediumint bigint hugeint uhugeint int2 int4 int8 oid"
    " utinyint usmallint uinteger ubigint year serial bigserial xid8",
    "decimal": "decimal numeric dec number bignum varint",
    "float": "float float4 float8 real double",
    "text": "text char character varchar nchar nvarchar bpchar string clob name tinytext mediumtext"
    " longtext enum set citext xml bit",
    "bytes": "blob bytea binary varbinary tinyblob mediumblob longblob",
    "date": "date",
    "time": "time time_ns",
    "timestamp": "timestamp datetime timestamp_s timestamp_ms timestamp_ns",
    "timestamp_tz": "timestamptz timestamptz_ns",
    "time_tz": "timetz",
    "interval": "interval",
    "uuid": "uuid",
    "json": "json jsonb",
    "struct": "struct map union record tuple",
    "array": "list",
}
_KINDS: dict[str, ColumnKind] = {
    name: kind for kind, names in _NAMES.items() for name in names.split()
}
_TYPE = re.compile(
    r'\s*"?([a-z_0-9]+)"?([^(]*)(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?(.*)', re.DOTALL
)
_SIZED = frozenset({"decimal", "text", "bytes"})


@lru_cache(maxsize=1024)
def read_type(type_name: str) -> tuple[ColumnKind, int | None, int | None]:
    """(kind, precision, scale) of a type such as `numeric(10,2)` or `timestamp with time zone`."""
    found = _TYPE.fullmatch(type_name.lower())
    if found is None:
        return "other", None, None
    word, words, precision, scale, rest = found.groups()
    tail = words + rest
    if tail.rstrip().endswith("]"):
        return "array", None, None
    kind = _KINDS.get(word, "other")
    if "with time zone" in tail:
        kind = "time_tz" if kind == "time" else "timestamp_tz"
    if precision is None or kind not in _SIZED:
        return kind, None, None
    return kind, int(precision), int(scale) if scale is not None else None


MAX_NAME = 1_000
"""Characters of a column's name: some databases name a column by its expression, of any length."""


def column_of(name: str, type_name: str) -> Column:
    """The column, with the kind that its type's name shows."""
    return Column(name[:MAX_NAME], type_name, *read_type(type_name))
