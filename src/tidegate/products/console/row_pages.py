"""Writes the statement for one page of a table's rows, by the last row of the page before. Pure.

A page begins after a row and not after a number of rows (keyset paging): the pages together are
the table, however many rows tie in what they are sorted by, and the last page is as quick as the
first. That needs a key, and values which a literal gives back exactly. Where either is missing, a
page leaves out as many rows as were shown.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple, cast
from uuid import UUID

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import ColumnInfo, Index, Table
from tidegate.results.column_kinds import read_type
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, qualified

_BLANK = re.compile(r"[\x00\ufffd\ud800-\udfff]")
_SHORT_TEXT = re.compile(r"n?(?:var)?char2?\b|nvarchar2?\b|character\b")
_SORTED_KINDS = frozenset({"integer", "decimal", "float", "boolean", "date", "time", "timestamp"})
"""Of a database about which no more is known; not every one sorts by large objects."""
MOST_VALUE = 1_024
"""Characters of the longest value by which a page begins."""


class Term(NamedTuple):
    """A column by which rows are sorted."""

    column: ColumnInfo
    descending: bool = False


class PageOrder(NamedTuple):
    """In which order a table's rows come. `by_key`: a page may begin after a row. `key` are the
    columns that tell rows apart, none where there is no key to be shown. `indexed`: an index has
    the order; `stable`: the order is the same for every page."""

    terms: tuple[Term, ...]
    by_key: bool
    key: tuple[str, ...]
    indexed: bool
    stable: bool


def order_of(table: Table, sort: Sequence[tuple[str, bool]], dialect: str) -> PageOrder:
    """The order of a table's rows for whom `sort` asks, as (column, descending).

    Raises: TidegateError ARGUMENT_INVALID for an unknown column, POLICY_MASKED for a masked one.
    """
    terms = [
        Term(found, down)
        for place, (name, down) in enumerate(sort)
        if (found := visible_column(table, name, "sorted by")).name
        not in [earlier for earlier, _ in sort[:place]]
    ]
    sorted_by = [term.column.name for term in terms]
    key = key_of(table, dialect)
    primary = _primary_key(table)
    shown = tuple(each.name for each in primary) if primary and not _masked(primary) else ()
    down = terms[-1].descending if terms else False
    terms += [Term(each, down) for each in key if each.name not in sorted_by]
    by_key = bool(key) and all(_is_ordered(term.column, dialect) for term in terms)
    if not key:
        # Rows that tie would come in another order on each page.
        tells_apart = primary and not any(_may_be_null(each, primary, dialect) for each in primary)
        if tells_apart and not _masked(primary):
            terms += [Term(each) for each in primary if each.name not in sorted_by]
        elif terms:
            terms += [
                Term(each)
                for each in table.columns
                if each.name not in sorted_by and not each.masked and _is_sortable(each, dialect)
            ]
    names = [term.column.name for term in terms]
    indexed = not sort or _has_index(table, names[: len(sorted_by)])
    return PageOrder(tuple(terms), by_key, shown, indexed, bool(terms))


def key_of(table: Table, dialect: str) -> tuple[ColumnInfo, ...]:
    """The columns by which each row differs from the others, none of them masked; nothing if
    there are none."""
    primary = _primary_key(table)
    candidates = [primary] if primary else []
    by_name = {column.name: column for column in table.columns}
    for index in table.indexes:
        if index.unique and index.usable and all(name in by_name for name in index.columns):
            candidates.append(tuple([by_name[name] for name in index.columns]))
    for columns in candidates:
        fits = all(_is_ordered(each, dialect) and not each.masked for each in columns)
        if fits and all(not _may_be_null(each, columns, dialect) for each in columns):
            return columns
    return ()


def visible_column(table: Table, name: str, use: str) -> ColumnInfo:
    """The column of that name. Raises: TidegateError ARGUMENT_INVALID if there is none,
    POLICY_MASKED if its values are hidden."""
    found = next((each for each in table.columns if each.name == name), None)
    if found is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{table.name} has no column {name[:80]!r}",
            hint=f"Columns: {', '.join([each.name for each in table.columns[:30]])}.",
        )
    if found.masked:
        raise TidegateError(
            Code.POLICY_MASKED,
            f"The values of {name} are masked: rows cannot be {use} it",
            hint="Use another column.",
        )
    return found


def page_statement(
    table: Table,
    order: PageOrder,
    conditions: Sequence[str],
    dialect: str,
    *,
    limit: int,
    after: Sequence[Any] | None = None,
    offset: int = 0,
) -> str:
    """The statement for a page of `limit` rows: after the row with the values `after` of the
    order's terms, or leaving `offset` rows out. `conditions` are joined by AND."""
    if after is not None:
        conditions = [*conditions, _behind(order.terms, after, dialect)]
    text = rows_statement(table, order, conditions, dialect)
    return find(dialect).limited(text, limit, offset)


def rows_statement(
    table: Table,
    order: PageOrder,
    conditions: Sequence[str],
    dialect: str,
    columns: Sequence[str] | None = None,
) -> str:
    """The statement for all rows: of these columns, or all. Raises: TidegateError ARGUMENT_INVALID
    for an unknown column."""
    known = [each.name for each in table.columns]
    for name in columns or ():
        if name not in known:
            raise TidegateError(Code.ARGUMENT_INVALID, f"{table.name} has no column {name[:80]!r}")
    names = known if columns is None else list(columns)
    shown = ", ".join([identifier(name, dialect) for name in names]) or "*"
    text = f"SELECT {shown} FROM {qualified(table.schema, table.name, dialect)}"
    if conditions:
        text += f" WHERE {' AND '.join([f'({each})' for each in conditions])}"
    if order.terms:
        text += f" ORDER BY {', '.join([_sorted(term, dialect) for term in order.terms])}"
    return text


def pages_by_values(values: Sequence[Any]) -> bool:
    """Whether a page can begin after a row with these values: a literal gives back each."""
    return all(map(_is_exact, values))


def exact_literal(value: Any, dialect: str) -> str:
    """A value of a column as a literal that equals it, compared with that column."""
    rules = find(dialect)
    inexact = isinstance(value, float) or (isinstance(value, Decimal) and not value.is_finite())
    if inexact and rules.null_order in ("greatest", "last"):
        # As a number it would be compared as a double, which a `real` is not.
        return rules.text_literal(repr(value) if isinstance(value, float) else str(value))
    return rules.literal(value)


def _primary_key(table: Table) -> tuple[ColumnInfo, ...]:
    key = [column for column in table.columns if column.key]
    return tuple(sorted(key, key=lambda column: column.key))


def _masked(columns: Sequence[ColumnInfo]) -> bool:
    return any(each.masked for each in columns)


def _may_be_null(column: ColumnInfo, key: Sequence[ColumnInfo], dialect: str) -> bool:
    if not column.nullable:
        return False
    if not find(dialect).untyped_columns:
        return not column.key
    # SQLite lets keys be NULL, except the one that is the row's number.
    return not (column.key and len(key) == 1 and column.type.upper() == "INTEGER")


def _is_ordered(column: ColumnInfo, dialect: str) -> bool:
    rules = find(dialect)
    if rules.untyped_columns:
        return True
    kind = read_type(column.type)[0]
    if rules.ordered_kinds is None:
        # All databases sort and compare numbers alike; where NULL comes is not known of these.
        return kind in ("integer", "decimal") and (not column.nullable or bool(column.key))
    if kind not in rules.ordered_kinds:
        return False
    return re.match(rules.unordered_types or "(?!)", column.type.lower()) is None


def _is_sortable(column: ColumnInfo, dialect: str) -> bool:
    """Whether the database surely sorts by the column, in whatever order."""
    if find(dialect).ordered_kinds is not None or find(dialect).untyped_columns:
        return _is_ordered(column, dialect)
    kind, type = read_type(column.type)[0], column.type.lower()
    short = kind == "text" and _SHORT_TEXT.match(type) and "large" not in type
    return bool(short) or kind in _SORTED_KINDS


def _has_index(table: Table, names: Sequence[str]) -> bool:
    primary = tuple([column.name for column in _primary_key(table)])
    indexes = [Index("", primary, primary=True), *table.indexes]
    return any(each.usable and list(each.columns[: len(names)]) == list(names) for each in indexes)


def _is_exact(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_VALUE and _BLANK.search(value) is None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(cast("bytes", value)) <= MOST_VALUE
    plain = (int, float, Decimal, datetime.date, datetime.time, datetime.timedelta, UUID)
    return value is None or isinstance(value, plain)


def _sorted(term: Term, dialect: str) -> str:
    down = " DESC" if term.descending else ""
    # Said in full where a setting of the database changes what is usual.
    last = " NULLS LAST" if find(dialect).null_order == "last" and term.column.nullable else ""
    return f"{identifier(term.column.name, dialect)}{down}{last}"


def _behind(terms: Sequence[Term], after: Sequence[Any], dialect: str) -> str:
    """The condition that a row comes after the one with these values."""
    equal: list[str] = []
    choices: list[str] = []
    for term, value in zip(terms, after, strict=True):
        behind = _comes_behind(term, value, dialect)
        if behind:
            choices.append(" AND ".join([*equal, behind]))
        name = identifier(term.column.name, dialect)
        equal.append(
            f"{name} IS NULL" if value is None else f"{name} = {exact_literal(value, dialect)}"
        )
    condition = " OR ".join([f"({each})" for each in choices]) or "1 = 0"
    bound = _bound(terms[0], after[0], dialect) if len(terms) > 1 else ""
    return f"{bound}({condition})"


def _comes_behind(term: Term, value: Any, dialect: str) -> str:
    """The condition that a row's value comes after this one; empty if none does."""
    name, nulls_last = identifier(term.column.name, dialect), _nulls_last(term, dialect)
    if value is None:
        return "" if nulls_last else f"{name} IS NOT NULL"
    sign = "<" if term.descending else ">"
    behind = f"{name} {sign} {exact_literal(value, dialect)}"
    if nulls_last and term.column.nullable:
        return f"({behind} OR {name} IS NULL)"
    return behind


def _bound(term: Term, value: Any, dialect: str) -> str:
    """What lets an index begin where the page begins."""
    if value is None or (term.column.nullable and _nulls_last(term, dialect)):
        return ""
    sign = "<=" if term.descending else ">="
    return f"{identifier(term.column.name, dialect)} {sign} {exact_literal(value, dialect)} AND "


def _nulls_last(term: Term, dialect: str) -> bool:
    order = find(dialect).null_order
    return order == "last" or (order == "greatest") != term.descending
