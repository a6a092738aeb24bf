"""Forms of tables in DuckDB: one action in each statement, and few on a table with indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tidegate.model.schema import Index, Table
from tidegate.sql.table_forms.changes import Changes, ColumnChange
from tidegate.sql.table_forms.comments import CommentingWriter
from tidegate.sql.table_forms.model import Feature, Step, TableForm

_NO_KEYS = "DuckDB adds and drops no foreign key of a table that is there."


class DuckdbWriter(CommentingWriter):
    """`TableWriter` of DuckDB."""

    dialect = "duckdb"
    types = ("INTEGER", "BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(10,2)", "BOOLEAN", "DATE",
             "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "UUID", "BLOB", "JSON", "INTEGER[]",
             "VARCHAR[]")  # fmt: skip
    index_kind = "art"
    lacks: ClassVar[Mapping[Feature, str]] = {
        "identity": "DuckDB numbers by a sequence, which is an object of its own.",
        "foreign_key.name": "DuckDB names foreign keys by itself.",
        "foreign_key.actions": "DuckDB only refuses what a foreign key is violated by.",
        "foreign_key.schema": "A foreign key of DuckDB stays in its schema.",
        "foreign_key.add": _NO_KEYS,
        "foreign_key.drop": _NO_KEYS,
    }

    def is_of_constraint(self, index: Index) -> bool:
        return index.name.endswith("_key") and index.unique

    def refusals(self, changes: Changes, table: Table) -> Iterator[str]:
        old = changes.old
        if changes.rekeyed and old.primary_key:
            yield "DuckDB drops no primary key."
        stays = [each.name for each in old.indexes if each not in changes.indexes_dropped]
        touches = changes.renamed or changes.dropped or old.name != changes.new.name
        if stays and (touches or any(_is_bound(each) for each in changes.changed)):
            yield (
                f"DuckDB changes no column while the table has the index {stays[0]}: drop its"
                " indexes first."
            )
        keys = {*old.primary_key, *(name for key in old.foreign_keys for name in key.columns)}
        referring = {name for key in old.foreign_keys for name in key.columns}
        for was, _ in changes.renamed:
            if was in referring:
                yield f"DuckDB does not rename {was}, which refers to another table."
        for change in changes.changed:
            if change.retyped and change.old.name in keys:
                yield f"DuckDB does not change the type of {change.old.name}, which is in a key."
        for name in changes.dropped:
            if name in keys:
                yield f"DuckDB does not drop {name}, which is in a key."

    def steps(self, changes: Changes, table: Table) -> Iterator[Step]:
        begin = f"ALTER TABLE {self.table(changes.old)}"
        for index in changes.indexes_dropped:
            yield Step(f"DROP INDEX {self._index(index.name, changes.old)}")
        for was, name in changes.renamed:
            yield Step(f"{begin} RENAME COLUMN {self.name(was)} TO {self.name(name)}")
        for name in changes.dropped:
            yield Step(
                f"{begin} DROP COLUMN {self.name(name)}", (f"The values of {name} are lost.",)
            )
        for column in changes.added:
            yield Step(f"{begin} ADD COLUMN {self.column(column, changes.new)}")
        for change in changes.changed:
            for words, warning in self._column_actions(change):
                text = f"{begin} ALTER COLUMN {self.name(change.new.name)} {words}"
                yield Step(text, (warning,) if warning else ())
        if changes.rekeyed and changes.new.primary_key:
            keys = self.names(changes.new.primary_key)
            yield Step(f"{begin} ADD PRIMARY KEY ({keys})", ("All rows are checked.",))
        if changes.old.name != changes.new.name:
            yield Step(f"{begin} RENAME TO {self.name(changes.new.name)}")
        for index in changes.indexes_added:
            yield Step(self.new_index(index, changes.new))
        yield from self.comments(changes)

    def _index(self, name: str, form: TableForm) -> str:
        return f"{self.name(form.schema)}.{self.name(name)}" if form.schema else self.name(name)

    def _column_actions(self, change: ColumnChange) -> Iterator[tuple[str, str]]:
        column = change.new
        if change.retyped:
            yield f"TYPE {column.type.strip()}", "All values of the column are written again."
        if change.redefaulted:
            yield (
                "DROP DEFAULT"
                if column.default is None
                else (f"SET DEFAULT {self.default(column)}"),
                "",
            )
        if change.renullified:
            yield ("DROP" if column.nullable else "SET") + " NOT NULL", ""


def _is_bound(change: ColumnChange) -> bool:
    """Whether an index of the table is in the way of the change."""
    return change.retyped or change.renullified


WRITER = DuckdbWriter()
