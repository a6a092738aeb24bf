"""The types of a new table's columns, in the words of its dialect. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate.imports.model import Kind
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import ColumnTypes

_SHORT = 255


class Extent(NamedTuple):
    """The room that the texts of a column need: the most digits, those before and after the point,
    and the most characters."""

    digits: int = 0
    whole: int = 0
    scale: int = 0
    longest: int = 0

    def with_texts(self, texts: Sequence[str]) -> Extent:
        """The same with further texts."""
        most, most_whole, most_scale, longest = self
        for text in texts:
            digits = sum(each.isdigit() for each in text)
            last = max(text.rfind("."), text.rfind(","))
            scale = len(text) - last - 1 if last >= 0 else 0
            most, most_whole = max(most, digits), max(most_whole, digits - scale)
            most_scale, longest = max(most_scale, scale), max(longest, len(text))
        return Extent(most, most_whole, most_scale, longest)


def type_of(kind: Kind, extent: Extent, dialect: str) -> str:
    """The type that takes values of a kind and extent."""
    types = find(dialect).column_types
    if kind == "decimal" and types.decimal:
        return _decimal(extent, types) or types.text
    if kind == "text" and types.short_text:
        return types.text if extent.longest > _SHORT else types.short_text
    return types.by_kind.get(kind, types.text)


def _decimal(extent: Extent, types: ColumnTypes) -> str:
    """A type for decimal numbers that keeps all digits; empty if there is none."""
    digits = extent.whole + extent.scale
    fits = digits <= types.most_digits and extent.scale <= types.most_scale
    return types.decimal.format(scale=extent.scale) if fits else ""
