"""Tables of other sources that a statement names next to those of its own. Frozen.

An engine that joins (`engines.api.JoiningEngine`) finds them in a statement. The gate reads each
one under the caller's rights on its source, and the permit carries their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tidegate.model.results import Column

TableNames = tuple[tuple[str, bool], ...]
"""The names that lead to a table, from the widest to its own; whether each is in quotes, so
that letters keep their case."""


class Condition(msgspec.Struct, frozen=True):
    """What the statement asks of each row of a table: a column compared with literals, of which IN
    has several. Rows for which it is not true have no part in the result."""

    column: str
    operator: Literal["=", "<", "<=", ">", ">=", "IN"]
    values: tuple[int | str, ...]


class OtherTable(msgspec.Struct, frozen=True):
    """A table of the source `source`, as a statement names it: `source.schema.table`, or
    `source.table` for one of the schema where the caller's statements run on it.

    `names` are those after the source's. `columns` are names that the statement has, in lower
    case, of which some are columns of this table; None where all of its columns count.
    """

    source: str
    names: TableNames
    columns: frozenset[str] | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def shown(self) -> str:
        """The name as a person writes it."""
        return shown_name(self.source, self.names)


class OtherTables(msgspec.Struct, frozen=True):
    """The tables of other sources in one statement, each once. Together they may have `most_rows`
    and about `most_bytes`, which the options `join_rows` and `join_bytes` of the source set.
    `is_run`: the statement reads their rows, and is not EXPLAIN."""

    tables: tuple[OtherTable, ...]
    most_rows: int
    most_bytes: int
    is_run: bool = True


class JoinedTable(msgspec.Struct, frozen=True):
    """A table that a statement may use as its own, under the names of an `OtherTable`. `text` is
    what reads it from its source.

    Values of `rows` are None, bool, int, float, str and bytes; of every other type there is the
    text that `results.json_values` gives. There are no rows where the statement is not run.
    """

    source: str
    names: TableNames
    columns: tuple[Column, ...]
    text: str
    rows: Sequence[tuple[Any, ...]] = ()

    @property
    def shown(self) -> str:
        """The name as a person writes it."""
        return shown_name(self.source, self.names)


def shown_name(source: str, names: TableNames) -> str:
    """The name of another source's table as a person writes it."""
    return ".".join((source, *(name for name, _ in names)))
