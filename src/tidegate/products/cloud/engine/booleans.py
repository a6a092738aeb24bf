"""Columns of booleans in a result: SQLite has 1 and 0 of them, a provider true and false."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from tidegate.engines.api import Row

_WORDS: Final = {"true": True, "false": False}
BOOLEAN: Final = "BOOLEAN"
"""The type that a column of booleans is declared with."""


def with_booleans(rows: Iterator[Row], places: Collection[int]) -> Iterator[Row]:
    """The rows with True and False for 1 and 0 at these places."""
    for row in rows:
        values = list(row)
        for place in places:
            values[place] = as_boolean(values[place])
        yield tuple(values)


def as_boolean(value: Any) -> Any:
    """True or False for 1 or 0, or the word; else the value, which is what the provider sent."""
    if type(value) is int and value in (0, 1):
        return bool(value)
    return _WORDS.get(value.lower(), value) if isinstance(value, str) else value


def boolean_places(described: Sequence[tuple[str, str | None]]) -> list[int]:
    """The places of columns that are declared as booleans."""
    return [at for at, (_, declared) in enumerate(described) if declared == BOOLEAN]
