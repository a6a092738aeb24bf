"""Forms of tables in MariaDB and MySQL: one statement for all changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.model.schema import ColumnInfo, Index, Table
from tidegate.sql.table_forms.changes import Changes, ColumnChange
from tidegate.sql.table_forms.model import Action, ColumnForm, Step, TableForm
from tidegate.sql.table_forms.writer import TableWriter

_QUOTED = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a", "b": "\b"}
_WHOLE = (
    "What the form does not show of {} is lost, such as its own character set and collation, or a"
    " CHECK."
)


class MysqlWriter(TableWriter):
    """`TableWriter` of MariaDB and MySQL."""

    dialect = "mysql"
    types = ("int(11)", "bigint(20)", "varchar(255)", "text", "decimal(10,2)", "double",
             "date", "datetime", "timestamp", "time", "tinyint(1)", "char(36)", "longtext",
             "blob")  # fmt: skip
    identity_words = "AUTO_INCREMENT"
    inline_indexes = True

    def numbers_itself(self, column: ColumnInfo) -> bool:
        return column.extra == "auto_increment"

    def read_literal(self, text: str) -> str | None:
        quoted = _QUOTED.fullmatch(text)
        return _ESCAPED.sub(_unescaped, quoted[1]) if quoted else super().read_literal(text)

    def read_action(self, action: str) -> Action:
        # The server tells NO ACTION as RESTRICT, which is the same here.
        return "NO ACTION" if action == "RESTRICT" else super().read_action(action)

    def is_shown(self, index: Index, table: Table) -> bool:
        return not index.primary and not is_of_key(index, table)

    def column(self, column: ColumnForm, form: TableForm) -> str:
        parts = [self.name(column.name), column.type.strip()]
        # A TIMESTAMP that may be NULL has to say so.
        parts.append("NULL" if column.nullable else "NOT NULL")
        if column.identity:
            parts.append(self.identity_words)
        if column.default is not None:
            parts.append(f"DEFAULT {self.default(column)}")
        if column.comment:
            parts.append(f"COMMENT {self.text(column.comment)}")
        return " ".join(parts)

    def text(self, text: str) -> str:
        # A comment has to be a plain literal. In this form it ends where it should under any
        # sql_mode; NO_BACKSLASH_ESCAPES keeps a backslash twice.
        escaped = text.replace("\\", "\\\\").replace("'", "''")
        return f"'{escaped}'"

    def table_options(self, form: TableForm) -> str:
        return f" COMMENT {self.text(form.comment)}" if form.comment else ""

    def after_create(self, form: TableForm) -> Iterator[Step]:
        return iter(())

    def steps(self, changes: Changes, table: Table) -> Iterator[Step]:
        actions = list(self._actions(changes, table))
        if not actions:
            return
        texts = ",\n  ".join([text for text, _ in actions])
        warnings = [warning for _, warning in actions if warning]
        general = "The server may copy the whole table, and changes of rows wait meanwhile."
        yield Step(
            f"ALTER TABLE {self.table(changes.old)}\n  {texts}",
            tuple(dict.fromkeys([*warnings, general])),
        )

    def _actions(self, changes: Changes, table: Table) -> Iterator[tuple[str, str]]:
        """The actions of one ALTER TABLE, each with its warning."""
        for key in changes.keys_dropped:
            yield f"DROP FOREIGN KEY {self.name(key.name)}", ""
            yield from (
                (f"DROP INDEX {self.name(each.name)}", "")
                for each in table.indexes
                if each.name == key.name and is_of_key(each, table)
            )
        for index in changes.indexes_dropped:
            yield f"DROP INDEX {self.name(index.name)}", ""
        if changes.rekeyed and changes.old.primary_key:
            yield "DROP PRIMARY KEY", ""
        for name in changes.dropped:
            yield f"DROP COLUMN {self.name(name)}", f"The values of {name} are lost."
        for column in changes.added:
            yield f"ADD COLUMN {self.column(column, changes.new)}", ""
        yield from self._column_actions(changes)
        if changes.rekeyed and changes.new.primary_key:
            yield f"ADD PRIMARY KEY ({self.names(changes.new.primary_key)})", ""
        for index in changes.indexes_added:
            yield f"ADD {self.inline_index(index)}", ""
        for key in changes.keys_added:
            yield f"ADD {self.key(key)}", ""
        if changes.recommented:
            yield f"COMMENT {self.text(changes.new.comment)}", ""
        if changes.old.name != changes.new.name:
            yield f"RENAME TO {self.table(changes.new)}", ""

    def _column_actions(self, changes: Changes) -> Iterator[tuple[str, str]]:
        was = {name: old for old, name in changes.renamed}
        whole = {each.new.name for each in changes.changed if _is_whole(each)}
        for old, name in changes.renamed:
            if name not in whole:
                yield f"RENAME COLUMN {self.name(old)} TO {self.name(name)}", ""
        for change in changes.changed:
            column = change.new
            if _is_whole(change):
                old = was.get(column.name, column.name)
                yield (
                    f"CHANGE COLUMN {self.name(old)} {self.column(column, changes.new)}",
                    _WHOLE.format(column.name),
                )
            elif column.default is None:
                yield f"ALTER COLUMN {self.name(column.name)} DROP DEFAULT", ""
            else:
                words = f"SET DEFAULT {self.default(column)}"
                yield f"ALTER COLUMN {self.name(column.name)} {words}", ""


def is_of_key(index: Index, table: Table) -> bool:
    """Whether the server made the index for a foreign key, and calls it like that."""
    return not index.unique and any(
        key.name == index.name and key.columns == index.columns for key in table.foreign_keys
    )


def _is_whole(change: ColumnChange) -> bool:
    """Whether the column needs a whole new definition."""
    return change.retyped or change.renullified or change.recommented


def _unescaped(found: re.Match[str]) -> str:
    return "'" if found[1] is None else _ESCAPES.get(found[1], found[1])


WRITER = MysqlWriter()
