"""Writes what a caller may know of a table as DDL: from the catalog as it sees it, because the
database's own text names other tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.schema import ColumnInfo, Table
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.masking.names import qualified


def table_ddl(table: Table, dialect_name: str) -> str:
    """CREATE TABLE with columns, primary key and foreign keys, and its indexes; of a view the
    columns alone."""
    dialect = find(dialect_name)
    name = qualified(table, dialect)
    if "view" in table.kind:
        columns = ", ".join(dialect.quote(column.name) for column in table.columns)
        return f"-- Its query is hidden from this token.\nCREATE VIEW {name} ({columns}) AS ..."
    inner = ",\n".join(f"    {line}" for line in _lines(table, dialect))
    written = [f"CREATE TABLE {name} (\n{inner}\n);"]
    for index in table.indexes:
        if not index.primary:
            unique = "UNIQUE " if index.unique else ""
            title = dialect.quote(index.name)
            # An index can be on an expression: it is written as the database reports it.
            on = ", ".join(index.columns)
            written.append(f"CREATE {unique}INDEX {title} ON {name} ({on});")
    return "\n".join(written)


def _lines(table: Table, dialect: Dialect) -> Iterator[str]:
    for column in table.columns:
        yield _column(column, dialect)
    key = sorted((column for column in table.columns if column.key), key=lambda column: column.key)
    if key:
        yield f"PRIMARY KEY ({_names(tuple(column.name for column in key), dialect)})"
    for foreign in table.foreign_keys:
        schema = foreign.schema or table.schema
        target = f"{dialect.quote(schema)}.{dialect.quote(foreign.table)}"
        references = f" ({_names(foreign.references, dialect)})" if foreign.references else ""
        yield (f"FOREIGN KEY ({_names(foreign.columns, dialect)}) REFERENCES {target}{references}")


def _column(column: ColumnInfo, dialect: Dialect) -> str:
    default = "" if column.default is None else f" DEFAULT {column.default}"
    null = "" if column.nullable else " NOT NULL"
    made = ""
    if column.type_definition is not None:
        made = f" /* {column.type_definition.replace('*/', '* /').replace('/*', '/ *')} */"
    return f"{dialect.quote(column.name)} {column.type}{made}{null}{default}"


def _names(names: tuple[str, ...], dialect: Dialect) -> str:
    return ", ".join(dialect.quote(name) for name in names)
