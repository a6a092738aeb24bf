"""Keeps the order in which a table's rows come from telling what is hidden in it.

A database that reads an index of a masked column returns rows in the order of its values, and
which ones LIMIT takes, how ties are numbered or texts are joined follows from that. So such
indexes are not read; where a masked column is what the rows themselves are stored by, they are
sorted by what the caller sees of them. Decision 79 says what is promised for each database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tidegate.model.data_rules import Show
from tidegate.model.schema import Index, Table
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.masking.rules import mentions

_REARRANGES = re.compile(r"\b(order|group|distinct|union|intersect|except|limit|over)\b", re.I)

_ARRANGED_ELSEWHERE = frozenset({"foreign table", "virtual table"})
"""Kinds of tables whose rows another server, or a module such as SQLite's R-tree, puts in order."""


def telling_indexes(table: Table, masks: Collection[str], parts: Sequence[Table]) -> list[Index]:
    """The indexes of a table, and of those that are `parts` of it, in which values of masked
    columns are, or could be: of expressions that are not known, and of some of the rows."""
    known = {column.name for column in table.columns}
    return [
        index
        for each in (table, *parts)
        for index in each.indexes
        if not index.usable
        or any(
            column in masks if column in known else _could_be_of(column, masks)
            for column in (*index.columns, *index.included)
        )
    ]


def _could_be_of(expression: str, masks: Collection[str]) -> bool:
    return expression in ("", "<expression>") or mentions(expression, masks)


def unordered(
    table: Table,
    origin: str,
    masks: Mapping[str, Show],
    indexes: Sequence[Index],
    dialect: Dialect,
) -> tuple[str, list[str]]:
    """The FROM item `origin` of a masked table so that none of these indexes is read, and
    conditions that are true of every row."""
    if not indexes:
        return origin, []
    outside = _column_outside(table, masks, indexes) if dialect.reads_row else None
    if outside is not None:
        term = f"{dialect.quote(table.name)}.{dialect.quote(outside)}"
        return origin, [dialect.reads_row.format(term)]
    return f"{origin}{dialect.without_indexes([index.name for index in indexes])}", []


def _column_outside(
    table: Table, masks: Mapping[str, Show], indexes: Sequence[Index]
) -> str | None:
    """A column that is in no index, if they have masked columns alone: no condition of
    a caller can search one then, and no index replaces the table where this column is read."""
    held = {column for index in indexes for column in (*index.columns, *index.included)}
    if not held <= masks.keys() or not all(index.usable for index in indexes):
        return None
    others = (
        column.name
        for column in table.columns
        if column.name not in held
        and column.name not in table.stored_by
        and not (column.extra or "").startswith("generated")
    )
    return next(others, None)


def must_sort(table: Table, masks: Mapping[str, Show], dialect: Dialect) -> bool:
    """Whether the order of the rows follows from masked columns whatever index is read: they are
    stored by these, come one partition after the other, or out of a view, another server or a
    module that could arrange them so."""
    if not masks.keys().isdisjoint((*table.stored_by, *table.parted_by)):
        return True
    if table.kind in _ARRANGED_ELSEWHERE:
        return bool(masks)
    if "view" in table.kind and masks and table.kind != "materialized view":
        plain = _REARRANGES.search(table.definition or "order") is None
        return not (plain and dialect.scans_as_stored)
    return False


def storage_order(table: Table, dialect: Dialect) -> Iterator[str]:
    """Terms by which rows are sorted as they are stored; none where no statement can say that."""
    if "view" in table.kind or table.kind == "virtual table":
        return
    name = dialect.quote(table.name)
    taken = {column.name.lower() for column in table.columns}
    free = [each for each in dialect.row_names if each not in taken]
    for column in table.stored_by or free[:1]:
        yield f"{name}.{dialect.quote(column) if table.stored_by else column}"
