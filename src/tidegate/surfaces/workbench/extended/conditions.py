"""Filters and sorting of rows as SQL, from arguments that are data: names and values are quoted
here and read by the judge like any other text. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import Table
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, literal

Value = str | int | float | bool | None
Operator = Literal[
    "equals",
    "not_equals",
    "less_than",
    "less_or_equal",
    "greater_than",
    "greater_or_equal",
    "between",
    "contains",
    "starts_with",
    "ends_with",
    "is_null",
    "is_not_null",
]
_COMPARISONS = {
    "equals": "=",
    "not_equals": "<>",
    "less_than": "<",
    "less_or_equal": "<=",
    "greater_than": ">",
    "greater_or_equal": ">=",
}
_PATTERNS = {"contains": "%{}%", "starts_with": "{}%", "ends_with": "%{}"}
_ESCAPE = "!"  # a backslash would depend on the server's settings


class Filter(msgspec.Struct, frozen=True):
    """A condition on one column; `second_value` is the upper end of `between`."""

    column: Annotated[str, Meta(description="Name of a column")]
    operator: Operator
    value: Value = None
    second_value: Value = None
    case_sensitive: bool = True


class Sort(msgspec.Struct, frozen=True):
    column: Annotated[str, Meta(description="Name of a column")]
    direction: Literal["asc", "desc"] = "asc"


def where(
    filters: Sequence[Filter], logic: Literal["and", "or"], table: Table, dialect: str
) -> str:
    """` WHERE ...`, or nothing without filters. Raises: TidegateError ARGUMENT_INVALID."""
    if not filters:
        return ""
    joint = f" {logic.upper()} "
    return " WHERE " + joint.join(_condition(filter, table, dialect) for filter in filters)


def order_by(sort: Sequence[Sort], table: Table, dialect: str) -> str:
    """` ORDER BY ...`, or nothing. Raises: TidegateError ARGUMENT_INVALID for an unknown column."""
    if not sort:
        return ""
    terms = [f"{column(one.column, table, dialect)} {one.direction.upper()}" for one in sort]
    return " ORDER BY " + ", ".join(terms)


def column(name: str, table: Table, dialect: str) -> str:
    """The column's name, quoted as it is really called.

    Raises: TidegateError ARGUMENT_INVALID if the table has no such column.
    """
    names = [known.name for known in table.columns]
    found = name if name in names else None
    if found is None:
        alike = [known for known in names if known.casefold() == name.casefold()]
        found = alike[0] if len(alike) == 1 else None
    if found is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Column not found: {name}",
            hint=f"Columns: {', '.join(names[:30])}.",
        )
    return identifier(found, dialect)


def _condition(filter: Filter, table: Table, dialect: str) -> str:
    name, operator, value = column(filter.column, table, dialect), filter.operator, filter.value
    if operator in ("is_null", "is_not_null"):
        return f"{name} IS {'NOT ' if operator == 'is_not_null' else ''}NULL"
    if value is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The filter on {filter.column} needs a value",
            hint="Compare with NULL by is_null and is_not_null.",
        )
    if operator == "between":
        if filter.second_value is None:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The filter on {filter.column} needs a second_value"
            )
        return (
            f"{name} BETWEEN {literal(value, dialect)} AND {literal(filter.second_value, dialect)}"
        )
    if operator in _COMPARISONS:
        shown = literal(value, dialect)
        left, right = _folded(name, shown, filter, dialect, textual=isinstance(value, str))
        return f"{left} {_COMPARISONS[operator]} {right}"
    rules = find(dialect)
    if rules.globs and filter.case_sensitive:
        return f"{name} GLOB {literal(_glob(operator, str(value)), dialect)}"
    escaped = str(value)
    for special in (_ESCAPE, "%", "_"):
        escaped = escaped.replace(special, _ESCAPE + special)
    pattern = literal(_PATTERNS[operator].format(escaped), dialect)
    text = f"CAST({name} AS {rules.text_type})"
    left, right = _folded(text, pattern, filter, dialect, textual=True)
    return f"{left} LIKE {right} ESCAPE '{_ESCAPE}'"


def _glob(operator: Operator, value: str) -> str:
    """SQLite's LIKE takes no notice of case; its GLOB does."""
    escaped = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in value)
    return _PATTERNS[operator].replace("%", "*").format(escaped)


def _folded(
    left: str, right: str, filter: Filter, dialect: str, *, textual: bool
) -> tuple[str, str]:
    """Both sides of a comparison, with or without regard to case whatever the database's habit."""
    if not textual:
        return left, right
    if not filter.case_sensitive:
        return f"LOWER({left})", f"LOWER({right})"
    return left, f"{right}{find(dialect).exact_collation}"
