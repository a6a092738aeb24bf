"""Writes a value of a result as the literal that its column takes back.

A result shows values as `results/json_values.py` says, in one way for every engine. Some databases
do not read all of it: an ISO 8601 duration, a moment that ends in Z. The column's type decides, and
each dialect's module says how. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.results import Column
from tidegate.results.json_values import text
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Write


def literals(columns: Sequence[Column], dialect: str) -> list[Write]:
    """One writer of literals for each column."""
    spoken = find(dialect)
    return [spoken.export_writer(column.type, text) or spoken.literal for column in columns]
