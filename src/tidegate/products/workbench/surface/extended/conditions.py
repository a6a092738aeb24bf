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
from tidegate.sql.conditions import Operator, condition
from tidegate.sql.quoting import identifier

Value = str | int | float | bool | None


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
    if value is None and operator not in ("is_null", "is_not_null"):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The filter on {filter.column} needs a value",
            hint="Compare with NULL by is_null and is_not_null.",
        )
    if operator == "between" and filter.second_value is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The filter on {filter.column} needs a second_value"
        )
    return condition(
        name,
        operator,
        value,
        dialect,
        second=filter.second_value,
        exactly=isinstance(value, str) and filter.case_sensitive,
        folded=isinstance(value, str) and not filter.case_sensitive,
    )
