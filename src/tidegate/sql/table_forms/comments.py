"""Comments of dialects that write them with COMMENT ON."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.sql.table_forms.changes import Changes
from tidegate.sql.table_forms.model import ColumnForm, Step, TableForm
from tidegate.sql.table_forms.writer import TableWriter


class CommentingWriter(TableWriter):
    """A writer for such a dialect."""

    def after_create(self, form: TableForm) -> Iterator[Step]:
        yield from super().after_create(form)
        if form.comment:
            yield self._of_table(form)
        for column in form.columns:
            if column.comment:
                yield self._of_column(form, column)

    def comments(self, changes: Changes) -> Iterator[Step]:
        """The statements for comments that are other ones, and for those of new columns."""
        if changes.recommented:
            yield self._of_table(changes.new)
        for column in changes.added:
            if column.comment:
                yield self._of_column(changes.new, column)
        for change in changes.changed:
            if change.recommented:
                yield self._of_column(changes.new, change.new)

    def _of_table(self, form: TableForm) -> Step:
        return self._comment("TABLE", self.table(form), form.comment)

    def _of_column(self, form: TableForm, column: ColumnForm) -> Step:
        name = f"{self.table(form)}.{self.name(column.name)}"
        return self._comment("COLUMN", name, column.comment)

    def _comment(self, kind: str, name: str, comment: str) -> Step:
        text = self.text(comment) if comment else "NULL"
        return Step(f"COMMENT ON {kind} {name} IS {text}")
