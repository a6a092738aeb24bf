"""Cells: values of a result as the Data page shows them. Pure.

A cell is null, a text, a text that was cut, or the size and beginning of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from tidegate.model.results import Column, ColumnKind
from tidegate.results.json_values import text

MOST_SHOWN = 4_096
"""Characters of a cell in a page of rows."""
BYTES_SHOWN = 32
_KINDS: dict[ColumnKind, str] = {
    "boolean": "bool",
    "integer": "number",
    "decimal": "number",
    "float": "number",
    "text": "text",
    "uuid": "text",
    "bytes": "binary",
    "date": "time",
    "time": "time",
    "time_tz": "time",
    "timestamp": "time",
    "timestamp_tz": "time",
    "interval": "time",
    "json": "json",
    "array": "json",
    "struct": "json",
    "other": "other",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def kind_of(kind: ColumnKind) -> str:
    """The kind of a column for the page."""
    return _KINDS[kind]


def column_fields(column: Column, *, masked: bool) -> dict[str, Any]:
    """A column of a result for the page."""
    return {
        "name": column.name,
        "type": column.type,
        "kind": kind_of(column.kind),
        "masked": masked,
    }


def cell_of(value: Any) -> Any:
    """A value as a cell, cut if it is long."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(cast("bytes", value))
        return {"binary": len(raw), "text": raw[:BYTES_SHOWN].hex()}
    shown = text_of(value)
    if len(shown) <= MOST_SHOWN:
        return shown
    return {"text": shown[:MOST_SHOWN], "bytes": len(shown.encode()), "cut": True}


def text_of(value: Any) -> str:
    """A value that is not NULL as text; bytes in hexadecimal."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", value)).hex()
    shown = text(value) or ""
    return shown if shown.isascii() else _SURROGATE.sub("\ufffd", shown)


def row_of(values: Sequence[Any]) -> list[Any]:
    """A row as cells."""
    return [cell_of(value) for value in values]
