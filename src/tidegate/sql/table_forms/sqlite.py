"""Forms of tables in SQLite: it adds, renames and drops columns, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tidegate.model.schema import Index, Table
from tidegate.sql.quoting import qualified
from tidegate.sql.table_forms.changes import Changes
from tidegate.sql.table_forms.model import Feature, IndexForm, Step, TableForm
from tidegate.sql.table_forms.writer import TableWriter

_REBUILD = (
    "SQLite changes {} only in a new table to which all rows are copied, which is not done here."
)


class SqliteWriter(TableWriter):
    """`TableWriter` of SQLite."""

    dialect = "sqlite"
    types = ("INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "DECIMAL(10,2)", "BOOLEAN", "DATE",
             "TIMESTAMP", "VARCHAR(255)")  # fmt: skip
    lacks: ClassVar[Mapping[Feature, str]] = {
        "identity": "SQLite numbers an INTEGER that is the whole primary key by itself.",
        "column.comment": "SQLite keeps no comments.",
        "table.comment": "SQLite keeps no comments.",
        "foreign_key.name": "SQLite does not tell the names of foreign keys.",
        "foreign_key.schema": "In SQLite a foreign key stays in its own file.",
        "column.type": _REBUILD.format("the type of a column"),
        "column.nullable": _REBUILD.format("whether a column may be NULL"),
        "column.default": _REBUILD.format("a default"),
        "primary_key": _REBUILD.format("a primary key"),
        "foreign_key.add": _REBUILD.format("foreign keys"),
        "foreign_key.drop": _REBUILD.format("foreign keys"),
    }

    def is_of_constraint(self, index: Index) -> bool:
        return index.name.startswith("sqlite_autoindex_")

    def new_index(self, index: IndexForm, form: TableForm) -> str:
        unique = "UNIQUE " if index.unique else ""
        return (
            f"CREATE {unique}INDEX {self.index_name(index, form)} ON {self.name(form.name)}"
            f" ({self.names(index.columns)})"
        )

    def index_name(self, index: IndexForm, form: TableForm) -> str:
        """The name of an index: the schema is in it, and not in that of its table."""
        return qualified(form.schema or None, index.name, self.dialect)

    def refusals(self, changes: Changes, table: Table) -> Iterator[str]:
        for column in changes.added:
            if column.default is None and not column.nullable:
                yield f"SQLite adds {column.name} as NOT NULL only with a default."
            if column.default is not None and column.default.kind == "expression":
                yield f"SQLite adds {column.name} only with a value as its default."
        used = {
            *changes.old.primary_key,
            *(name for key in changes.old.foreign_keys for name in key.columns),
            *(
                name
                for index in changes.old.indexes
                if index not in changes.indexes_dropped
                for name in index.columns
            ),
        }
        for name in changes.dropped:
            if name in used:
                yield f"SQLite drops {name} only when no key and no index is over it."

    def steps(self, changes: Changes, table: Table) -> Iterator[Step]:
        old = self.table(changes.old)
        for index in changes.indexes_dropped:
            yield Step(f"DROP INDEX {self.index_name(index, changes.old)}")
        for was, name in changes.renamed:
            yield Step(f"ALTER TABLE {old} RENAME COLUMN {self.name(was)} TO {self.name(name)}")
        for name in changes.dropped:
            yield Step(
                f"ALTER TABLE {old} DROP COLUMN {self.name(name)}",
                (f"The values of {name} are lost, and all rows are written again.",),
            )
        for column in changes.added:
            yield Step(f"ALTER TABLE {old} ADD COLUMN {self.column(column, changes.new)}")
        if changes.old.name != changes.new.name:
            yield Step(f"ALTER TABLE {old} RENAME TO {self.name(changes.new.name)}")
        for index in changes.indexes_added:
            yield Step(self.new_index(index, changes.new))


WRITER = SqliteWriter()
