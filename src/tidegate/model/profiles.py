"""What the columns of tables hold: the words for it that a surface shows. Frozen."""

from __future__ import annotations

import msgspec


class ColumnProfile(msgspec.Struct, frozen=True):
    """What was seen in a column.

    `values` are the commonest values, the most frequent first; `more` says that there are others.
    `low` and `high` bound all values, or with `about` most of them. `example` is one of values that
    are all of one form.
    `remarks` say what is odd: `blanks at the end`, `mixed case`, `numbers`, `dates`,
    and `only null` where there is nothing else.
    """

    values: tuple[str | int, ...] = ()
    more: bool = False
    low: str | None = None
    high: str | None = None
    about: bool = False
    example: str | None = None
    remarks: tuple[str, ...] = ()


Place = tuple[str, str]
"""A table, by its schema and its name."""

TableProfile = dict[str, ColumnProfile]
"""By the name of the column; columns of which there is nothing to say are not in it."""


class Profiles(msgspec.Struct, frozen=True):
    """What is known of tables now; a table that was not sampled yet is not in it."""

    tables: dict[Place, TableProfile] = {}
