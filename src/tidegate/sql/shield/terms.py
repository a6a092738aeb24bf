"""Writes what stands in a value's place, and the derived table that stands in a table's place.

A `hash` is the SHA-256, in hexadecimal, of the key followed by the value as text: equal values of
any columns give equal hashes. A `partial` value keeps its first character and its last two around
`***`; of an e-mail address the first character and the domain; of fewer than six characters, or of
an address with fewer than three before the `@`, nothing of that part. NULL stays NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidegate.metadata import ColumnInfo, Table
from tidegate.sql.shield.model import Show
from tidegate.sql.shield.names import quoted

FENCES = {
    "postgres": " OFFSET 0",
    "mysql": " LIMIT 18446744073709551615",
    "sqlite": " LIMIT -1",
    "duckdb": " LIMIT 9223372036854775807",
}
"""Keeps the database from moving conditions of the caller's before the filter: there they would see
hidden rows, and could tell of them by failing."""

_STARS = "'***'"
_NAMESPACE = {"postgres": "pg_catalog."}
_FIND = {"postgres": "strpos", "mysql": "instr", "sqlite": "instr", "duckdb": "instr"}


def derived(
    table: Table,
    origin: str,
    masks: Mapping[str, Show],
    filters: Sequence[str],
    dialect: str,
    key: str,
) -> str:
    """The query that stands for `table`, whose rows come from `origin`, a FROM item that is called
    like the table."""
    name = quoted(table.name, dialect)
    columns: list[str] = []
    for column in table.columns:
        if "invisible" in (column.extra or "").lower():
            continue
        term = f"{name}.{quoted(column.name, dialect)}"
        show = masks.get(column.name)
        if show is not None:
            term = _TERMS[show](term, column, dialect, key)
        columns.append(f"{term} AS {quoted(column.name, dialect)}")
    where = "".join(f" AND ({condition})" for condition in filters)
    fenced = f" WHERE {where.removeprefix(' AND ')}{FENCES[dialect]}" if filters else ""
    return f"SELECT {', '.join(columns)} FROM {origin}{fenced}"


def _nothing(term: str, column: ColumnInfo, dialect: str, key: str) -> str:
    if dialect == "mysql":
        return f"IF(TRUE, NULL, {term})"  # of the column's type, which CAST could not name
    if dialect == "sqlite" or not column.type:
        return "NULL"
    return f"CAST(NULL AS {column.type})"


def _hash(term: str, column: ColumnInfo, dialect: str, key: str) -> str:
    text = _text(term, dialect)
    if dialect == "postgres":
        whole = f"CAST('{key}' AS pg_catalog.text) || {text}"
        return (
            f"pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({whole}, 'UTF8')), 'hex')"
        )
    if dialect == "mysql":
        return f"SHA2(CONCAT('{key}', {text}), 256)"
    if dialect == "sqlite":
        return f"tidegate_hash('{key}', {text})"
    return f"sha256('{key}' || {text})"


def _partial(term: str, column: ColumnInfo, dialect: str, key: str) -> str:
    prefix = _NAMESPACE.get(dialect, "")
    text = _text(term, dialect)
    size = f"{prefix}length({text})"
    if dialect == "mysql":
        size = f"CHAR_LENGTH({text})"
    at = f"{prefix}{_FIND[dialect]}({text}, '@')"
    first, last = f"{prefix}substr({text}, 1, 1)", f"{prefix}substr({text}, {size} - 1, 2)"
    domain = f"{prefix}substr({text}, {at})"
    address = f"{text} LIKE '%_@_%.%_' AND {text} NOT LIKE '%@%@%' AND {text} NOT LIKE '% %'"
    join = _join(dialect)
    known, domain_known, ends = (
        join(first, _STARS, domain), join(_STARS, domain), join(first, _STARS, last),
    )  # fmt: skip
    return (
        f"CASE WHEN {term} IS NULL THEN NULL"
        f" WHEN {address} AND {at} > 3 THEN {known}"
        f" WHEN {address} THEN {domain_known}"
        f" WHEN {size} < 6 THEN {_STARS}"
        f" ELSE {ends} END"
    )


def _text(term: str, dialect: str) -> str:
    if dialect == "postgres":
        return f"CAST({term} AS pg_catalog.text)"
    if dialect == "mysql":
        return f"CAST({term} AS CHAR CHARACTER SET utf8mb4)"
    return f"CAST({term} AS {'TEXT' if dialect == 'sqlite' else 'VARCHAR'})"


def _join(dialect: str) -> Callable[..., str]:
    def call(*parts: str) -> str:
        return f"CONCAT({', '.join(parts)})"

    def chain(*parts: str) -> str:
        return " || ".join(parts)

    return call if dialect == "mysql" else chain


_TERMS: dict[Show, Callable[[str, ColumnInfo, str, str], str]] = {
    "nothing": _nothing,
    "hash": _hash,
    "partial": _partial,
}
