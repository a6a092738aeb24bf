"""The types of a new table's columns, in the words of its dialect. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.imports.model import Kind, Value
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import ColumnTypes

_SHORT = 255


def type_of(kind: Kind, values: Sequence[Value], dialect: str) -> str:
    """The type that takes such values of a kind."""
    types = find(dialect).column_types
    if kind == "decimal" and types.decimal:
        return _decimal(values, types) or types.text
    if kind == "text" and types.short_text:
        longest = max([len(value) for value in values if isinstance(value, str)], default=0)
        return types.text if longest > _SHORT else types.short_text
    return types.by_kind.get(kind, types.text)


def _decimal(values: Sequence[Value], types: ColumnTypes) -> str:
    """A type for decimal numbers that keeps all digits; empty if there is none."""
    digits = scale = 0
    for value in values:
        if isinstance(value, str):
            digits = max(digits, sum(each.isdigit() for each in value))
            last = max(value.rfind("."), value.rfind(","))
            scale = max(scale, len(value) - last - 1 if last >= 0 else 0)
    fits = digits <= types.most_digits and scale <= types.most_scale
    return types.decimal.format(scale=scale) if fits else ""
