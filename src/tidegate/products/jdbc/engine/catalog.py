"""What a JDBC driver says of tables, as the gate's schema has it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import ColumnInfo, ForeignKey, Index, Table
from tidegate.products.jdbc.engine.known_databases import KnownDatabase
from tidegate.products.jdbc.engine.messages import IndexPart, KeyPart, TableColumn, TableFacts

_KINDS = {
    "TABLE": "table",
    "BASE TABLE": "table",
    "PARTITIONED TABLE": "table",
    "VIEW": "view",
    "MATERIALIZED VIEW": "materialized view",
    "FOREIGN TABLE": "foreign table",
    "SYSTEM TABLE": "system table",
    "SYSTEM VIEW": "system table",
}
_RULES = {0: "CASCADE", 1: "RESTRICT", 2: "SET NULL", 3: "NO ACTION", 4: "SET DEFAULT"}
"""`DatabaseMetaData.importedKeyCascade` and its like."""

_SIZED = frozenset({1, 12, -15, -9, 2, 3, -2, -3})
_MOST_DIGITS = 1_000_000


def tables_of(found: Sequence[TableFacts], product: KnownDatabase) -> tuple[Table, ...]:
    """The tables, without those of the system, sorted by schema and name."""
    tables = [
        _table(each, product)
        for each in found
        if _KINDS.get(each.kind.upper(), "table") != "system table"
    ]
    return tuple(sorted(tables, key=lambda table: (table.schema, table.name)))


def find_table(
    found: Sequence[TableFacts], name: str, schema: str | None, default: str | None
) -> TableFacts:
    """The one table that is meant: as it is written, or else whatever its case; of several schemas
    in the default one. Raises: TidegateError TABLE_UNKNOWN, with the names that are near."""
    here = [each for each in found if schema in (None, each.schema)]
    lowered = name.lower()
    fitting = [each for each in here if each.name == name] or [
        each for each in here if each.name.lower() == lowered
    ]
    if len(fitting) > 1:
        fitting = [each for each in fitting if each.schema == default] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        places = ", ".join(sorted({f"{each.schema}.{each.name}" for each in fitting})[:5])
        raise TidegateError(
            Code.TABLE_UNKNOWN, f"Several tables are called `{name}`.", hint=f"Use one of {places}."
        )
    near = difflib.get_close_matches(lowered, [each.name.lower() for each in here], 3)
    names = [each.name for each in here if each.name.lower() in near]
    raise TidegateError(
        Code.TABLE_UNKNOWN,
        f"Table not found: there is no table `{name}`.",
        hint=f"Did you mean {' or '.join(names)}?" if names else None,
    )


def _table(found: TableFacts, product: KnownDatabase) -> Table:
    keys = dict(found.primary)
    kind = _KINDS.get(found.kind.upper(), "table")
    return Table(
        found.schema or product.default_schema,
        found.name,
        kind,
        tuple([_column(column, keys, product) for column in found.columns]),
        _indexes(found.indexes, tuple(sorted(keys, key=keys.__getitem__))),
        _foreign_keys(found.foreign),
        comment=found.comment or None,
        # JDBC says nothing of triggers and rules.
        may_react=kind == "table",
    )


def _column(column: TableColumn, keys: dict[str, int], product: KnownDatabase) -> ColumnInfo:
    # A key has no NULL; in SQLite only one of integers.
    is_set = column.name in keys and (not product.loose or column.type_name.upper() == "INTEGER")
    return ColumnInfo(
        column.name,
        type_of(column),
        column.nullable and not is_set,
        None if column.default == "NULL" else column.default,  # MariaDB's word for no default
        keys.get(column.name, 0),
        column.comment or None,
        driver_type_code=column.code,
    )


def type_of(column: TableColumn) -> str:
    """A column's type with its length or digits, in lower case."""
    name = column.type_name.lower()
    if column.code not in _SIZED or "(" in name or not 0 < column.size < _MOST_DIGITS:
        return name
    if column.code in (2, 3):
        return f"{name}({column.size},{column.digits})" if column.size < 1_000 else name
    return f"{name}({column.size})"


def _indexes(parts: Sequence[IndexPart], primary: tuple[str, ...]) -> tuple[Index, ...]:
    indexes: list[Index] = []
    for name, group in groupby(sorted(parts, key=attrgetter("index", "place")), _index_name):
        members = list(group)
        columns = tuple([part.column for part in members])
        unique = members[0].unique
        indexes.append(Index(name, columns, unique, unique and columns == primary))
    return tuple(indexes)


def _index_name(part: IndexPart) -> str:
    return part.index


def _foreign_keys(parts: Sequence[KeyPart]) -> tuple[ForeignKey, ...]:
    keys: list[ForeignKey] = []
    open_parts: list[KeyPart] = []
    for part in parts:
        # They come by the table that they refer to, and then by their place in the key.
        if part.place <= 1 and open_parts:
            keys.append(_foreign_key(open_parts))
            open_parts = []
        open_parts.append(part)
    if open_parts:
        keys.append(_foreign_key(open_parts))
    return tuple(keys)


def _foreign_key(parts: list[KeyPart]) -> ForeignKey:
    first = parts[0]
    return ForeignKey(
        first.name,
        tuple([part.column for part in parts]),
        first.table,
        tuple([part.references for part in parts]),
        first.schema or None,
        _RULES.get(first.update, "NO ACTION"),
        _RULES.get(first.delete, "NO ACTION"),
    )
