"""What the columns of tables hold: the words for it that a surface shows. Frozen."""

from __future__ import annotations

import msgspec


class Join(msgspec.Struct, frozen=True):
    """`column` probably refers to `schema.table.key`. `confirmed`: the values that were compared
    are there; else the guess rests on names and types."""

    column: str
    schema: str
    table: str
    key: str
    confirmed: bool = False


class Comparison(msgspec.Struct, frozen=True):
    """A join of a column of `schema.table`, to be confirmed by values. `indexed`: a key can be
    looked up without reading the table that it belongs to."""

    schema: str
    table: str
    join: Join
    indexed: bool


class ColumnProfile(msgspec.Struct, frozen=True):
    """What was seen in a column.

    `values` are the commonest values, the most frequent first; `more` says that there are others.
    `low` and `high` bound all values, or with `about` most of them. `example` is one of values that
    are all of one form.
    `remarks` say what is odd: `blanks at the end`, `mixed case`, `numbers` (also `with commas`,
    `with decimal comma`), `dates`, and `only null` where there is nothing else; `mostly null` where
    a sample of the rows had nothing else.
    `joins` is the join that the values confirm; it is empty if they contradict what names suggest,
    and None if they were not compared or did not settle it.
    """

    values: tuple[str | int, ...] = ()
    more: bool = False
    low: str | None = None
    high: str | None = None
    about: bool = False
    example: str | None = None
    remarks: tuple[str, ...] = ()
    joins: tuple[Join, ...] | None = None


Place = tuple[str, str]
"""A table, by its schema and its name."""

TableProfile = dict[str, ColumnProfile]
"""By the name of the column; columns of which there is nothing to say are not in it."""


class Profiles(msgspec.Struct, frozen=True):
    """What is known of tables now; a table that was not sampled yet is not in it. `pending`: one of
    those that were awaited is not, and will be in a moment."""

    tables: dict[Place, TableProfile] = {}
    pending: bool = False
