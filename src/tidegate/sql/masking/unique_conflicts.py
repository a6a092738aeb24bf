"""Finds changes whose success would tell of masked values, because a unique index or an exclusion
constraint compares these with what is written: by a part, an expression, a condition, or a column
that is computed from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set

from tidegate.model.schema import Table, Uniqueness
from tidegate.sql.masking.rules import mentions


def compares_masked(
    table: Table, masks: Collection[str], assigned: Set[str], *, adds_rows: bool
) -> bool:
    """Whether a change of the table could conflict with masked values.

    `masks` are masked columns of the table, or of the one that it is a part of. `assigned` are the
    columns, in lower case, that the change sets in rows that exist.
    """
    if not masks:
        return False
    masked = {name.lower() for name in masks}
    computed = {column.name.lower() for column in table.columns if column.is_generated}
    for each in _uniqueness(table):
        if each.columns is None:
            if adds_rows or assigned:
                return True
            continue
        behind = _behind(table, each.columns)
        if masked.isdisjoint(behind):
            continue
        with_null = each.with_null or not computed.isdisjoint(behind)
        if adds_rows and (with_null or _is_filled(table, masked & behind)):
            return True
        if not assigned.isdisjoint(behind):
            return True
    return False


def _uniqueness(table: Table) -> Iterator[Uniqueness]:
    yield from table.uniqueness
    known = {each.index for each in table.uniqueness}
    names = {column.name.lower() for column in table.columns}
    for index in table.indexes:
        if index.unique and index.name not in known:
            if all(name.lower() in names for name in index.columns):
                yield Uniqueness(index.name, index.columns, with_null=False)
            else:  # of an expression, and the catalog does not tell what it depends on
                yield Uniqueness(index.name, None)


def _behind(table: Table, names: Iterable[str]) -> set[str]:
    """These columns and those from which they are computed, in lower case."""
    found = {name.lower() for name in names}
    rest = [column for column in table.columns if column.is_generated]
    while computed := [column for column in rest if column.name.lower() in found]:
        rest = [column for column in rest if column not in computed]
        for column in table.columns:
            if any(mentions(each.default, (column.name,)) for each in computed):
                found.add(column.name.lower())
    return found


def _is_filled(table: Table, masked: Set[str]) -> bool:
    """Whether a new row has a value in one of these columns although none was given: its default,
    or what MySQL puts in by INSERT IGNORE where NULL is not allowed."""
    return any(
        column.default or (not column.nullable and not column.extra)
        for column in table.columns
        if column.name.lower() in masked
    )
