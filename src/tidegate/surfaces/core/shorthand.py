"""Writes tables the short way: `orders(id int pk, customer_id int>customers.id, note text?)`.

Pure. `pk` is the primary key, `>` a foreign key, `?` a column that may be null. Names are written
as SQL takes them, so that they can be copied into a statement.
"""

from __future__ import annotations

import re

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table

_PLAIN = re.compile(r"[^\W\d]\w*")
_SHORT_TYPES = (
    ("integer", "int"),
    ("character varying", "varchar"),
    ("character", "char"),
    ("double precision", "double"),
    ("boolean", "bool"),
)
_ZONED, _UNZONED = " with time zone", " without time zone"


def quoted(name: str) -> str:
    """The name as an SQL identifier: quoted only if it has to be."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def table_name(table: Table, catalog: Catalog) -> str:
    """The table's name, with its schema unless that is the default one."""
    if table.schema == catalog.default_schema:
        return quoted(table.name)
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def with_column_names(table: Table, catalog: Catalog) -> str:
    """`orders(id,customer_id,total)`."""
    columns = ",".join(quoted(column.name) for column in table.columns)
    return f"{_kind(table)}{table_name(table, catalog)}({columns})"


def with_keys(table: Table, catalog: Catalog) -> str:
    """Types, keys and what may be null; comments and a row count where they are known."""
    targets = {key.columns[0]: key for key in table.foreign_keys if len(key.columns) == 1}
    unique = {index.columns for index in table.indexes if index.unique and not index.primary}
    key = [column.name for column in sorted(table.columns, key=_key_place) if column.key]
    parts = [
        _column(column, len(key) == 1, (column.name,) in unique, targets.get(column.name), table)
        for column in table.columns
    ]
    if len(key) > 1:
        parts.append(f"pk({_names(tuple(key))})")
    parts += [f"unique({_names(columns)})" for columns in sorted(unique) if len(columns) > 1]
    parts += [
        f"({_names(key.columns)})>{_target(key, table)}"
        for key in table.foreign_keys
        if len(key.columns) > 1
    ]
    rows = f" ~{table.approximate_rows} rows" if table.approximate_rows is not None else ""
    comment = f" -- {_one_line(table.comment)}" if table.comment else ""
    return f"{_kind(table)}{table_name(table, catalog)}({', '.join(parts)}){rows}{comment}"


def _column(
    column: ColumnInfo, sole_key: bool, unique: bool, target: ForeignKey | None, table: Table
) -> str:
    words = [quoted(column.name)]
    if column.type:
        words.append(short_type(column.type))
    if column.key and sole_key:
        words.append("pk")
    elif unique:
        words.append("unique")
    text = " ".join(words)
    if column.nullable and not column.key:
        text += "?"
    if target is not None:
        text += f">{_target(target, table)}"
    return text + (f" /*{_one_line(column.comment)}*/" if column.comment else "")


def _target(key: ForeignKey, table: Table) -> str:
    schema = f"{quoted(key.schema)}." if key.schema and key.schema != table.schema else ""
    where = f"{schema}{quoted(key.table)}"
    if len(key.references) == 1:
        return f"{where}.{quoted(key.references[0])}"
    return f"{where}({_names(key.references)})" if key.references else where


def short_type(name: str) -> str:
    """A database's type name in lower case, long standard names made short."""
    short = name.lower()
    if short.startswith("timestamp") and short.endswith(_ZONED):
        return "timestamptz" + short[len("timestamp") : -len(_ZONED)]
    if short.endswith(_UNZONED):
        return short[: -len(_UNZONED)]
    for long, brief in _SHORT_TYPES:
        if short.startswith(long) and not short[len(long) : len(long) + 1].isalnum():
            return brief + short[len(long) :]
    return short


def _names(names: tuple[str, ...]) -> str:
    return ",".join(quoted(name) for name in names)


def _kind(table: Table) -> str:
    return "" if table.kind == "table" else f"{table.kind} "


def _key_place(column: ColumnInfo) -> int:
    return column.key


def _one_line(comment: str) -> str:
    return " ".join(comment.replace("*/", "* /").split())
