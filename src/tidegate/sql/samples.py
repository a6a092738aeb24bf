"""Writes the statements that find out what a table's columns hold. Pure.

Each is an ordinary read of bounded cost: the first rows, rows from all over a table by its key or
by what the dialect offers, least and greatest values that an index knows, and the database's own
statistics. What the database takes for wrong (a table without `rowid`) is left out by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.profiles import Comparison
from tidegate.model.schema import ColumnInfo, Table
from tidegate.sql import quoting
from tidegate.sql.dialects import find

_SLICES = 10
_MOST_BOUNDED = 8
_COMPARED = 1_000
"""Rows of which the values are looked up among keys."""
LOOKED_THROUGH = 20_000
"""Keys that are tested for repetition, and among which values are looked up without an index."""


def first_rows(table: Table, columns: Sequence[str], most_rows: int, dialect: str) -> str:
    """What the database returns first: all rows of a small table."""
    query = f"SELECT {_names(columns, dialect)} FROM {_place(table, dialect)}"
    return find(dialect).limited(query, most_rows)


def rows_all_over(table: Table, columns: Sequence[str], most_rows: int, dialect: str) -> str | None:
    """Rows from all parts of a large table; None where that would mean to read all of it."""
    spoken = find(dialect)
    if spoken.samples_rows:
        return f"SELECT {_names(columns, dialect)} FROM {_place(table, dialect)}" + (
            f" USING SAMPLE {most_rows} ROWS"
        )
    key = _integer_key(table)
    if key is not None or spoken.row_number:
        name = quoting.identifier(key.name, dialect) if key is not None else spoken.row_number
        return _slices(table, columns, name, most_rows, dialect)
    if spoken.samples_pages and table.approximate_rows:
        share = min(100.0, 100.0 * most_rows / table.approximate_rows)
        return (
            f"SELECT {_names(columns, dialect)} FROM {_place(table, dialect)}"
            f" TABLESAMPLE SYSTEM ({share:.6f}) LIMIT {most_rows}"
        )
    return None


def _slices(table: Table, columns: Sequence[str], key: str, most_rows: int, dialect: str) -> str:
    """Rows after equally distant keys: those of a log, of every year that it covers."""
    place, names = _place(table, dialect), _names(columns, dialect)
    steps = (
        f"WITH tidegate_steps AS (SELECT min({key}) AS low, (max({key}) - min({key})) / {_SLICES}"
        f" AS step FROM {place})"
    )
    parts = [
        f"SELECT * FROM (SELECT {names} FROM {place}"
        f" WHERE {key} >= (SELECT low + {number} * step FROM tidegate_steps)"
        f" ORDER BY {key} LIMIT {most_rows // _SLICES}) AS part_{number}"
        for number in range(_SLICES)
    ]
    return f"{steps} {' UNION ALL '.join(parts)}"


def bounded(table: Table, columns: Sequence[str], dialect: str) -> list[str]:
    """Those of the columns of which the database knows the least and the greatest value."""
    if find(dialect).knows_bounds:
        return list(columns)[:_MOST_BOUNDED]
    first = {index.columns[0] for index in table.indexes if index.columns and _sorted(index.kind)}
    return [column for column in columns if column in first][:_MOST_BOUNDED]


def bounds(table: Table, columns: Sequence[str], dialect: str) -> str:
    """One row with the least and the greatest value of each of the columns."""
    place = _place(table, dialect)
    terms = [
        f"(SELECT {function}({quoting.identifier(column, dialect)}) FROM {place})"
        for column in columns
        for function in ("min", "max")
    ]
    return f"SELECT {', '.join(terms)}"


def statistics(table: Table, dialect: str) -> str | None:
    """For each column its name, the commonest values, and the least and greatest that the
    database noted, all as text; None where it keeps none that its privileges guard."""
    text = find(dialect).statistics
    if not text:
        return None
    return text.format(
        schema=quoting.literal(table.schema, dialect), table=quoting.literal(table.name, dialect)
    )


def overlaps(comparisons: Sequence[Comparison], dialect: str) -> str | None:
    """For each comparison how many of the column's values are keys: only counts leave the
    database."""
    return " UNION ALL ".join(
        [_overlap(number, each, dialect) for number, each in enumerate(comparisons)]
    )


def _overlap(number: int, compared: Comparison, dialect: str) -> str:
    join = compared.join
    column, key = (quoting.identifier(name, dialect) for name in (join.column, join.key))
    place = quoting.qualified(compared.schema, compared.table, dialect)
    target = quoting.qualified(join.schema, join.table, dialect)

    def first(name: str, table: str, most: int = LOOKED_THROUGH) -> str:
        return f"(SELECT {name} AS v FROM {table} WHERE {name} IS NOT NULL LIMIT {most}) AS f"

    if compared.indexed:
        found = f"EXISTS (SELECT 1 FROM {target} AS k WHERE k.{key} = d.v)"
    else:
        found = f"d.v IN (SELECT v FROM {first(key, target)})"
    values = first(column, place, _COMPARED)
    counts = "count(v) AS total, count(DISTINCT v) AS kinds"
    return (
        f"SELECT {number} AS place, a.total AS rows_seen, a.kinds AS values_seen, b.found,"
        " c.total AS keys_seen, c.kinds AS keys_unlike"
        f" FROM (SELECT {counts} FROM {values}) AS a,"
        f" (SELECT count(*) AS found FROM (SELECT DISTINCT v FROM {values}) AS d"
        f" WHERE {found}) AS b,"
        f" (SELECT {counts} FROM {first(key, target)}) AS c"
    )


def _sorted(kind: str) -> bool:
    return "tree" in kind.lower() or not kind


def _integer_key(table: Table) -> ColumnInfo | None:
    keys = [column for column in table.columns if column.key]
    whole = len(keys) == 1 and any(word in keys[0].type.lower() for word in ("int", "serial"))
    return keys[0] if whole else None


def _names(columns: Sequence[str], dialect: str) -> str:
    return ", ".join([quoting.identifier(name, dialect) for name in columns])


def _place(table: Table, dialect: str) -> str:
    return quoting.qualified(table.schema, table.name, dialect)
