"""Reads the description of a schema, in a fixed number of statements, however many tables."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import defaultdict
from typing import Any

import duckdb
import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Ddl,
    ForeignKey,
    Index,
    Status,
    Table,
    Uniqueness,
)
from tidegate.sql.dialects import find
from tidegate.sql.index_columns import index_columns

_quote = find("duckdb").quote
_literal = find("duckdb").text_literal

_QUOTED_NAME = re.compile(r'"((?:[^"]|"")+)"')

Rows = list[tuple[Any, ...]]
Name = tuple[str, str]

_TABLES = """
SELECT schema_name, table_name, 'table', comment, estimated_size, sql FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
UNION ALL
SELECT schema_name, view_name, 'view', comment, NULL, sql FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
ORDER BY schema_name, table_name"""

_SCHEMAS = """
SELECT schema_name FROM duckdb_schemas()
WHERE database_name = current_database()
AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY schema_name"""

_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, is_nullable, column_default, comment,
is_generated
FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal
AND ($1 IS NULL OR (schema_name = $1 AND table_name = $2))
ORDER BY schema_name, table_name, column_index"""

_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, constraint_name,
referenced_table, referenced_column_names
FROM duckdb_constraints()
WHERE database_name = current_database()
AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
AND ($1 IS NULL OR (schema_name = $1 AND table_name = $2))
ORDER BY schema_name, table_name, constraint_index"""

_MACROS = """
SELECT DISTINCT function_name FROM system.main.duckdb_functions()
WHERE NOT internal AND function_type IN ('macro', 'table_macro') ORDER BY 1"""

_INDEXES = """
SELECT schema_name, table_name, index_name, is_unique, is_primary, expressions::VARCHAR[],
 sql
FROM duckdb_indexes()
WHERE database_name = current_database()
AND ($1 IS NULL OR (schema_name = $1 AND table_name = $2))
ORDER BY schema_name, table_name, index_name"""


def status(cursor: duckdb.DuckDBPyConnection) -> Status:
    """What the open database is."""
    rows = cursor.execute("SELECT current_database(), current_schema(), version()").fetchall()
    database, schema, version = rows[0]
    return Status(database, schema, f"DuckDB {version.removeprefix('v')}")


class SchemaFacts:
    """What is costly to find out of a schema, kept while that stays as it is: DuckDB makes a row
    for each of its thousands of functions to list those that users made."""

    __slots__ = ("_macros", "_version")

    def __init__(self) -> None:
        self._macros: Rows | None = None
        self._version: str | None = None

    def macros(self, cursor: duckdb.DuckDBPyConnection) -> Rows:
        """The names of the macros that users made."""
        if self._macros is None:
            self._macros = cursor.execute(_MACROS).fetchall()
        return self._macros

    def version(self, cursor: duckdb.DuckDBPyConnection) -> str:
        """A digest of everything in the description of the schema."""
        if self._version is None:
            self._version = _digest(
                cursor.execute(_TABLES).fetchall(),
                cursor.execute(_SCHEMAS).fetchall(),
                cursor.execute(_COLUMNS, [None, None]).fetchall(),
                cursor.execute(_INDEXES, [None, None]).fetchall(),
                self.macros(cursor),
            )
        return self._version


def _digest(tables: Rows, *others: Rows) -> str:
    """Of everything but the tables' sizes; their texts hold the constraints."""
    digest = hashlib.blake2b(digest_size=12)
    for rows in ([(*row[:4], row[5]) for row in tables], *others):
        digest.update(msgspec.msgpack.encode(rows))
    return digest.hexdigest()


def catalog(cursor: duckdb.DuckDBPyConnection, browse: Browse, facts: SchemaFacts) -> Catalog:
    """Everything named, or the one schema or table. Raises: TidegateError TABLE_UNKNOWN."""
    everything = listed = cursor.execute(_TABLES).fetchall()
    named = cursor.execute(_SCHEMAS).fetchall()
    schemas = [row[0] for row in named]
    only: Name | None = None
    if browse.schema is not None:
        schema = _schema(schemas, browse.schema)
        listed = [row for row in listed if row[0] == schema]
    if browse.table is not None:
        only = _known(listed, browse.table)
        listed = [row for row in listed if (row[0], row[1]) == only]
    narrowed = list(only) if only else [None, None]
    constraints = cursor.execute(_CONSTRAINTS, narrowed).fetchall()
    keys = _primary_keys(constraints)
    found = cursor.execute(_COLUMNS, narrowed).fetchall()
    indexed = cursor.execute(_INDEXES, narrowed).fetchall()
    columns = _columns(found, keys)
    indexes = _indexes(indexed, constraints)
    foreign = _foreign_keys(constraints)
    macros = facts.macros(cursor)
    unique = _uniqueness(indexed, columns, bool(macros))
    state = status(cursor)
    tables = [
        Table(
            schema=schema,
            name=name,
            kind=kind,
            columns=tuple(columns.get((schema, name), ())),
            indexes=tuple(indexes.get((schema, name), ())),
            foreign_keys=tuple(foreign.get((schema, name), ())),
            comment=comment,
            approximate_rows=size,
            definition=text if kind == "view" else None,
            uniqueness=tuple(unique.get((schema, name), ())),
        )
        for schema, name, kind, comment, size, text in listed
    ]
    mark = facts.version(cursor) if only else _digest(everything, named, found, indexed, macros)
    return Catalog(
        state.database,
        state.schema or "main",
        tuple(schemas),
        tuple(tables),
        mark,
        tuple(sorted({str(name).lower() for (name,) in macros})),
    )


def ddl(cursor: duckdb.DuckDBPyConnection, browse: Browse) -> Ddl:
    """How the table is made, with its indexes. Raises: TidegateError TABLE_UNKNOWN."""
    listed = _listed(cursor, browse)
    known = _known(listed, browse.table or "")
    texts = [row[5] for row in listed if (row[0], row[1]) == known]
    texts += [row[6] for row in cursor.execute(_INDEXES, list(known)).fetchall() if row[6]]
    return Ddl("\n".join(text.rstrip(";\n") + ";" for text in texts))


def counts(cursor: duckdb.DuckDBPyConnection, browse: Browse) -> list[tuple[str, str, int]]:
    """Count the one table, or every table that is not a view, in one statement."""
    listed = _listed(cursor, browse)
    if browse.table is not None:
        names = [_known(listed, browse.table)]
    else:
        names = [(row[0], row[1]) for row in listed if row[2] == "table"]
    if not names:
        return []
    counted = cursor.execute(
        "SELECT * FROM ("
        + " UNION ALL ".join(
            f"SELECT {_literal(schema)}, {_literal(name)}, count(*)"
            f" FROM {_quote(schema)}.{_quote(name)}"
            for schema, name in names
        )
        + ")"
    )
    return counted.fetchall()


def _listed(cursor: duckdb.DuckDBPyConnection, browse: Browse) -> Rows:
    listed = cursor.execute(_TABLES).fetchall()
    if browse.schema is None:
        return listed
    schema = _schema([row[0] for row in cursor.execute(_SCHEMAS).fetchall()], browse.schema)
    return [row for row in listed if row[0] == schema]


def _columns(rows: Rows, keys: dict[Name, list[str]]) -> dict[Name, list[ColumnInfo]]:
    columns: dict[Name, list[ColumnInfo]] = defaultdict(list)
    for schema, table, name, kind, nullable, default, comment, generated in rows:
        key = keys.get((schema, table), [])
        columns[schema, table].append(
            ColumnInfo(
                name=name,
                type=kind,
                nullable=nullable,
                default=default,
                key=key.index(name) + 1 if name in key else 0,
                comment=comment,
                extra="generated virtual" if generated else None,
            )
        )
    return columns


def _primary_keys(constraints: Rows) -> dict[Name, list[str]]:
    return {(row[0], row[1]): list(row[3]) for row in constraints if row[2] == "PRIMARY KEY"}


def _indexes(rows: Rows, constraints: Rows) -> dict[Name, list[Index]]:
    indexes: dict[Name, list[Index]] = defaultdict(list)
    for schema, table, kind, columns, name, *_ in constraints:
        if kind != "FOREIGN KEY":
            primary = kind == "PRIMARY KEY"
            indexes[schema, table].append(Index(name, tuple(columns), True, primary, "art"))
    for schema, table, name, unique, primary, expressions, _ in rows:
        indexes[schema, table].append(Index(name, _parts(expressions), unique, primary, "art"))
    return indexes


def _parts(expressions: list[str]) -> tuple[str, ...]:
    """The columns of an index, and the expressions that it is over."""
    return tuple([_unquoted(each) for each in expressions])


def _unquoted(text: str) -> str:
    quoted = _QUOTED_NAME.fullmatch(text)
    return text if quoted is None else quoted[1].replace('""', '"')


def _uniqueness(
    rows: Rows, columns: dict[Name, list[ColumnInfo]], has_macros: bool
) -> dict[Name, list[Uniqueness]]:
    """Of the unique indexes that CREATE INDEX made, from their text. A macro in it could name
    columns that the text does not."""
    dialect = find("duckdb")
    unique: dict[Name, list[Uniqueness]] = defaultdict(list)
    for schema, table, name, is_unique, _, expressions, text in rows:
        known = [column.name for column in columns.get((schema, table), ())]
        plain = {name.lower() for name in known}.issuperset(map(str.lower, _parts(expressions)))
        if is_unique and not plain:
            named = None if has_macros or not text else index_columns(text, table, known, dialect)
            unique[schema, table].append(Uniqueness(name, named))
    return unique


def _foreign_keys(constraints: Rows) -> dict[Name, list[ForeignKey]]:
    keys: dict[Name, list[ForeignKey]] = defaultdict(list)
    for schema, table, kind, columns, name, parent, references in constraints:
        if kind == "FOREIGN KEY":
            # DuckDB's keys stay within a schema.
            keys[schema, table].append(
                ForeignKey(name, tuple(columns), parent, tuple(references), schema)
            )
    return keys


def _schema(schemas: list[str], name: str) -> str:
    for schema in schemas:
        if schema.lower() == name.lower():
            return schema
    raise TidegateError(
        Code.TABLE_UNKNOWN,
        f"There is no schema `{name}`.",
        hint=f"There are: {', '.join(schemas)}.",
    )


def _known(listed: Rows, table: str) -> Name:
    """A table's schema and name as the catalog spells them; `main` comes first."""
    found = [(row[0], row[1]) for row in listed if row[1].lower() == table.lower()]
    if found:
        return min(found, key=lambda name: (name[1] != table, name[0] != "main"))
    names = {row[1].lower(): row[1] for row in listed}
    near = difflib.get_close_matches(table.lower(), names, 3)
    hint = f"Did you mean {', '.join(names[name] for name in near)}?" if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{table}`.", hint=hint)
