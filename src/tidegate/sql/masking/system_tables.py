"""Queries that replace system tables while something is hidden: with the columns that are known
to tell no values and no counts.

A system table that no dialect lists is refused. Of one that has more than harmless columns, the
dialect lists the harmless ones; what it does not list is not there, and what tools ask for all the
same is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.schema import Table
from tidegate.sql.dialects.model import Dialect, SystemTable

KIND = "system table"

Place = tuple[str, str]
Column = tuple[str, str, str]


def system_table(place: Place, dialect: Dialect) -> Table | None:
    """The table that replaces a system table of which something is hidden; None for one that is
    harmless as it is."""
    return Table(*place, KIND) if place in dialect.partial_tables else None


def visible_query(
    place: Place, dialect: Dialect, masked: Iterable[Column], revealing: Iterable[Place]
) -> str | None:
    """The query for what may be read of a system table; None if it is not a system table.

    `masked` are (schema, table, column) whose defaults are hidden, `revealing` the tables whose
    definitions would tell them.
    """
    table = dialect.partial_tables.get(place)
    if table is None:
        return None
    condition = _condition(table, dialect, masked, revealing)
    terms = [_term(word, dialect, condition) for word in table.columns.split()]
    return f"SELECT {', '.join(terms)} FROM {table.origin}"


def _term(word: str, dialect: Dialect, condition: str | None) -> str:
    """A column, NULL of a type (`name=type`), or a text that is hidden for some rows (`name?`)."""
    name, equals, kind = word.partition("=")
    if equals:
        return f"{dialect.null_of(name, kind)} AS {name}"
    bare = name.removesuffix("?")
    if bare == name or condition is None:
        return bare
    return f"CASE WHEN {condition} THEN NULL ELSE {bare} END AS {bare}"


def _condition(
    table: SystemTable, dialect: Dialect, masked: Iterable[Column], revealing: Iterable[Place]
) -> str | None:
    """What is true of the rows that tell something hidden; None if no row does."""
    places = revealing if "{tables}" in table.hidden_where else masked
    rows = sorted({tuple(map(dialect.text_literal, place)) for place in places})
    if not rows or not table.hidden_where:
        return None
    listed = ", ".join(f"({', '.join(row)})" for row in rows)
    names = ", ".join(sorted({row[1].lower() for row in rows}))
    return table.hidden_where.format(columns=listed, tables=names)
