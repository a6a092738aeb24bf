"""Writes the statement that reads a table of one source for a join in another. Pure.

It leaves out only rows of which no reading of the conditions could be true: the join compares once
more, by its own rules for text and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tidegate.model.joined_tables import Condition, TableNames
from tidegate.model.results import Column
from tidegate.sql import quoting

_TEXTS: Final = frozenset({
    "text", "varchar", "character varying", "varchar2", "nvarchar", "char", "character", "string",
})  # fmt: skip
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def table_read(
    names: TableNames,
    columns: Sequence[Column],
    conditions: Sequence[Condition],
    dialect: str,
) -> str:
    """SELECT of `columns`, or of all where there are none, with the conditions that are sure."""
    shown = ", ".join([quoting.identifier(each.name, dialect) for each in columns]) or "*"
    place = ".".join([_name(*each, dialect) for each in names])
    kept = [written for each in conditions if (written := _condition(each, columns, dialect))]
    where = f" WHERE {' AND '.join(kept)}" if kept else ""
    return f"SELECT {shown} FROM {place}{where}"


def _name(name: str, is_quoted: bool, dialect: str) -> str:
    """The name, in quotes unless the caller left them out: the database then folds its case."""
    if is_quoted or not _BARE.fullmatch(name) or quoting.is_reserved(name, dialect):
        return quoting.identifier(name, dialect)
    return name


def _condition(condition: Condition, columns: Sequence[Column], dialect: str) -> str:
    """The condition, if what the database finds equal or in order includes all that the join does;
    else nothing. Text has no order that two databases share."""
    column = next((each for each in columns if each.name.lower() == condition.column), None)
    if column is None:
        return ""
    whole = all(isinstance(each, int) for each in condition.values)
    text = all(isinstance(each, str) for each in condition.values)
    is_text = column.kind == "text" and column.type.lower().partition("(")[0].strip() in _TEXTS
    is_equality = condition.operator in ("=", "IN")
    if not (column.kind == "integer" and whole) and not (is_text and text and is_equality):
        return ""
    name = quoting.identifier(column.name, dialect)
    values = [quoting.literal(each, dialect) for each in condition.values]
    if condition.operator == "IN":
        return f"{name} IN ({', '.join(values)})"
    return f"{name} {condition.operator} {values[0]}"
