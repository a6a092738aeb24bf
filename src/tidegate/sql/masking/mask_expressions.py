"""Writes the expression that takes a masked value's place, and the derived table that takes a
table's place.

A `hash` is the SHA-256, in hexadecimal, of the key followed by the value as text: equal values of
any columns give equal hashes. A `partial` value keeps its first character and its last two around
`***`; of an e-mail address the first character and the domain; of fewer than six characters, or of
an address with fewer than three before the `@`, nothing of that part. NULL stays NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.model.data_rules import Show
from tidegate.model.schema import ColumnInfo, Table
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.masking.scan_order import must_sort, storage_order, telling_indexes, unordered

_STARS = "'***'"


def derived_table(
    table: Table,
    origin: str,
    masks: Mapping[str, Show],
    filters: Sequence[str],
    dialect: Dialect,
    key: str,
    parts: Sequence[Table] = (),
) -> str:
    """The query that replaces `table`, whose rows come from `origin`, a FROM item that is called
    like the table. `key` is the term for the key of hashes. `parts` are tables that hold some of
    its rows."""
    name = dialect.quote(table.name)
    columns: list[str] = []
    terms: list[str] = []
    nulls: list[str] = []
    for column in table.columns:
        if "invisible" in (column.extra or "").lower():
            continue
        term = f"{name}.{dialect.quote(column.name)}"
        show = masks.get(column.name)
        if show is not None:
            term = _masked(show, term, column, dialect, key)
        terms.append(term)
        is_text = show in ("hash", "partial")  # whatever the column's own type
        nulls.append(dialect.as_text("NULL") if is_text else dialect.null_of("NULL", column.type))
        columns.append(f"{term} AS {dialect.quote(column.name)}")
    conditions = [f"({condition})" for condition in filters]
    order: list[str] = []
    ending = dialect.fence if filters else ""
    if must_sort(table, masks, dialect):
        order, ending = [dialect.sortable(term) for term in terms], dialect.fence
    elif filters and not dialect.scans_as_stored:
        order = list(storage_order(table, dialect))
    telling = telling_indexes(table, masks, parts)
    if not order:
        origin, always = unordered(table, origin, masks, telling, dialect)
        conditions += always
    if dialect.as_stored and (telling or filters or "view" in table.kind):
        ending += dialect.as_stored
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    by = f" ORDER BY {', '.join(order)}" if order else ""
    query = f"SELECT {', '.join(columns)} FROM {origin}{where}{by}{ending}"
    if filters:
        return dialect.estimated_alike(query, nulls)
    return dialect.without_distinct(query, nulls) if "partial" in masks.values() else query


def _masked(show: Show, term: str, column: ColumnInfo, dialect: Dialect, key: str) -> str:
    if show == "nothing":
        return dialect.null_of(term, column.type)
    if show == "hash":
        return dialect.hash_of(key, dialect.as_text(term))
    return _partial(term, dialect)


def _partial(term: str, dialect: Dialect) -> str:
    text = dialect.as_text(term)
    size = dialect.length(text)
    at = dialect.position(text, "'@'")
    first = dialect.substr(text, "1", "1")
    last = dialect.substr(text, f"{size} - 1", "2")
    domain = dialect.substr(text, at)
    address = f"{text} LIKE '%_@_%.%_' AND {text} NOT LIKE '%@%@%' AND {text} NOT LIKE '% %'"
    return (
        f"CASE WHEN {term} IS NULL THEN NULL"
        f" WHEN {address} AND {at} > 3 THEN {dialect.concat(first, _STARS, domain)}"
        f" WHEN {address} THEN {dialect.concat(_STARS, domain)}"
        f" WHEN {size} < 6 THEN {_STARS}"
        f" ELSE {dialect.concat(first, _STARS, last)} END"
    )
