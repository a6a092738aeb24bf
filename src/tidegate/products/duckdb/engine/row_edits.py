"""A change of rows on its way to the worker process and there: what of its values a message has no
form for."""

from __future__ import annotations

from tidegate.model.decisions import Permit
from tidegate.model.row_changes import DEFAULT, ChangeRows, RowEdit
from tidegate.products.duckdb.engine.messages import Edit, EditRows


def edits_of(change: ChangeRows, version: str, permit: Permit) -> EditRows:
    """The message for a change."""
    keeper = None if change.tries else permit.keeper
    return EditRows(
        version,
        change.shape,
        [_edit(edit) for edit in change.edits],
        change.tries,
        permit.max_rows_changed,
        keeper is not None,
        0 if keeper is None else keeper.max_bytes,
    )


def change_in(edits: EditRows) -> ChangeRows:
    """The change of a message."""
    shape = edits.shape
    return ChangeRows(
        table=shape.table,
        schema=shape.schema,
        shape=shape,
        edits=tuple([_row_edit(edit) for edit in edits.edits]),
        tries=edits.tries,
    )


def _edit(edit: RowEdit) -> Edit:
    before = None if edit.before is None else list(edit.before)
    if edit.values is None:
        return Edit(before, None, [])
    given = [(place, value) for place, value in edit.values if value != DEFAULT]
    return Edit(before, given, [place for place, value in edit.values if value == DEFAULT])


def _row_edit(edit: Edit) -> RowEdit:
    before = None if edit.before is None else tuple(edit.before)
    if edit.values is None:
        return RowEdit(before, None)
    defaults = [(place, DEFAULT) for place in edit.defaults]
    return RowEdit(before, (*[(place, value) for place, value in edit.values], *defaults))
