"""Reads rows of a SQLite table exactly, and changes them over what was read. In a worker's thread.

Each value keeps its storage class: '5' is not 5. The change runs in BEGIN IMMEDIATE, so no other
connection writes between the comparison and the COMMIT.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import apsw

from tidegate.engines.common.row_edits import (
    EditTurns,
    change_of,
    check_rows,
    check_shape,
    keys_in_order,
    narrowed,
    new_keys,
    not_written,
    old_keys,
    without_columns,
)
from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.row_statements import forms_of
from tidegate.engines.sqlite.apsw_types import ApswConnection
from tidegate.engines.sqlite.changes import ChangeCapture, reversibility
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.errors import failure_of, translate
from tidegate.engines.sqlite.inspect import Mode
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ImageColumn, Row
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import (
    DEFAULT,
    ChangedRows,
    ChangeRows,
    FoundRow,
    FoundRows,
    ReadImages,
    RowEdit,
    TableShape,
)
from tidegate.sql.dialects import find

_quote = find("sqlite").quote
_SHAPE = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"


_TAKEN = frozenset(
    {
        apsw.SQLITE_CONSTRAINT_UNIQUE,
        apsw.SQLITE_CONSTRAINT_PRIMARYKEY,
        apsw.SQLITE_CONSTRAINT_ROWID,
    }
)


class Table(NamedTuple):
    """A table as it is now. `defaults` are expressions, by the places of their columns."""

    shape: TableShape
    defaults: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"main.{_quote(self.shape.table)}"


def read_images(
    session: SqliteSession, progress_handler: ProgressHandler, request: ReadImages
) -> FoundRows:
    """Read rows by their keys. Raises: TidegateError."""
    connection = session.connection
    with session.stepping(progress_handler), session.mode(Mode.OWN):
        connection.execute("BEGIN", can_cache=False)
        try:
            table = find_table(connection, request.table, keyless=request.adds)
            shape = without_columns(table.shape, request.hidden)
            keys = keys_in_order(request, shape)
            rows = tuple([_by_text(connection, shape, key) for key in keys])
            return FoundRows(shape, rows)
        finally:
            connection.execute("ROLLBACK", can_cache=False)


def change_rows(
    session: SqliteSession, progress_handler: ProgressHandler, permit: Permit
) -> ChangedRows:
    """Make the edits in one transaction. Raises: TidegateError."""
    change, connection = change_of(permit), session.connection
    capture: ChangeCapture | None = None
    with session.stepping(progress_handler):
        try:
            with session.guard_own():
                connection.execute("BEGIN IMMEDIATE", can_cache=False)
            with session.mode(Mode.OWN):
                table = find_table(connection, change.table)
                check_shape(change, table.shape)
                _check(connection, change)
            if permit.keeper is not None and not change.tries:
                capture = ChangeCapture(session, permit.keeper, undo_objection(session, change))
            before = connection.total_changes()
            with session.mode(Mode.WRITE):
                by_edit = _make(connection, table, change)
            affected = connection.total_changes() - before
            check_count(permit, affected, followers=True)
            with session.mode(Mode.OWN):
                rows = [
                    None if key is None else _read(connection, change.shape, key)
                    for key in map(by_edit.get, range(len(change.edits)))
                ]
            if capture is not None:
                capture.keep()
            with session.guard_own():
                connection.execute("ROLLBACK" if change.tries else "COMMIT", can_cache=False)
            return ChangedRows(tuple(rows), affected)
        finally:
            if capture is not None:
                capture.close()
            if not connection.get_autocommit():
                with session.guard_own():
                    connection.execute("ROLLBACK", can_cache=False)


def _make(connection: ApswConnection, table: Table, change: ChangeRows) -> dict[int, Row | None]:
    """Make all edits; the keys of their rows, by place. Raises: TidegateError, apsw.Error."""
    keys: dict[int, Row | None] = {}
    for edits in change.by_verb.values():
        turns = EditTurns(edits[::-1])
        while (due := turns.next()) is not None:
            place, edit = due
            try:
                keys[place] = _edit(connection, table, change, edit)
            except apsw.ConstraintError as error:
                if edit.verb != "update" or failure_of(error).extended not in _TAKEN:
                    raise
                turns.put_off(due, translate(error))
    return keys


def find_table(connection: ApswConnection, name: str, *, keyless: bool = False) -> Table:
    """A table whose rows can be changed; with `keyless` also one to which they can be added alone,
    and then its shape has no key. Raises: TidegateError TABLE_UNKNOWN, UNSUPPORTED."""
    listed = connection.execute(f"PRAGMA main.table_list({_quote(name)})").fetchall()
    kinds = {str(row[2]) for row in listed if row[0] == "main"}
    if not kinds:
        raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {name[:200]}")
    if "table" not in kinds or name.lower().startswith("sqlite_"):
        raise TidegateError(Code.UNSUPPORTED, f"{name} is not an ordinary table.")
    found = connection.execute(f"PRAGMA main.table_xinfo({_quote(name)})").fetchall()
    columns = [column for column in found if not column[6]]
    key = sorted([(column[5], place) for place, column in enumerate(columns) if column[5]])
    if keyless:
        key = []
    elif not key:
        raise TidegateError(
            Code.UNSUPPORTED, f"{name} has no primary key: its rows cannot be distinguished."
        )
    ((text,),) = connection.execute(_SHAPE, (name,)).fetchall()
    shape = TableShape(
        "main",
        name,
        tuple([ImageColumn(str(each[1]), str(each[2] or "")) for each in columns]),
        tuple([place for _, place in key]),
        str(text),
    )
    return Table(shape, tuple([str(each[4] or "NULL") for each in columns]))


def _by_text(connection: ApswConnection, shape: TableShape, key: Row) -> FoundRow | None:
    """The row whose key is shown so. Raises: TidegateError ARGUMENT_INVALID if there are several:
    where a column keeps any class, 5 and '5' look the same."""
    found: dict[str, FoundRow] = {}
    for values in itertools.product(*[_classes(value) for value in key]):
        row = _read(connection, shape, values)
        if row is not None:
            found[repr(shape.key_of(row.image))] = row
    if len(found) > 1:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Several rows of {shape.table} have a key that is written so",
            hint="Change them by a statement.",
        )
    return next(iter(found.values()), None)


def _classes(value: Any) -> Iterator[Any]:
    """The values that are shown as a text is."""
    yield value
    if isinstance(value, str):
        with suppress(ValueError):
            if -(2**63) <= int(value) < 2**63:
                yield int(value)
        with suppress(ValueError):
            yield float(value)
        with suppress(ValueError):
            yield bytes.fromhex(value)


def _read(connection: ApswConnection, shape: TableShape, key: Row) -> FoundRow | None:
    shown = ", ".join([_quote(column.name) for column in shape.columns])
    condition = _condition(shape)
    text = f"SELECT {shown} FROM main.{_quote(shape.table)} WHERE {condition}"
    rows = connection.execute(text, key).fetchall()
    return FoundRow(rows[0], rows[0]) if rows else None


def _condition(shape: TableShape) -> str:
    return " AND ".join([f"{_quote(shape.columns[place].name)} = ?" for place in shape.key])


def _check(connection: ApswConnection, change: ChangeRows) -> None:
    """Raises: RowsConflictError."""
    shape = change.shape
    there = {place: _read(connection, shape, key) for place, key in old_keys(change)}
    taken = {new.edit: _read(connection, shape, new.key) for new in new_keys(change, there)}
    check_rows(change, there, taken)


def undo_objection(session: SqliteSession, change: ChangeRows) -> str:
    """Why the rows of the change cannot be put back; empty if they can."""
    for statement in forms_of(change, "sqlite").values():
        found = reversibility(session, statement)
        if not found.possible:
            return found.reason
    return ""


def _edit(
    connection: ApswConnection, table: Table, change: ChangeRows, edit: RowEdit
) -> Row | None:
    """Make one edit; returns the key that the row has then. Raises: TidegateError, apsw.Error."""
    shape, names = change.shape, change.shape.names
    key = ", ".join([_quote(names[place]) for place in shape.key])
    if edit.values is None:
        text = f"DELETE FROM {table.place} WHERE {_condition(shape)} RETURNING 1"
        found = connection.execute(text, shape.key_of(edit.before or ())).fetchall()
        if not found:
            raise not_written(shape.table)
        return None
    # A conflict ends the change, whatever the table says of it.
    if edit.before is None:
        given = [(place, value) for place, value in edit.values if value != DEFAULT]
        listed = ", ".join([_quote(names[place]) for place, _ in given])
        marks = ", ".join("?" * len(given))
        values = f"({listed}) VALUES ({marks})" if given else "DEFAULT VALUES"
        text = f"INSERT OR ABORT INTO {table.place} {values} RETURNING {key}"
        found = connection.execute(text, [value for _, value in given]).fetchall()
    else:
        sets, params = _assignments(table, shape, edit)
        text = f"UPDATE OR ABORT {table.place} SET {sets} WHERE {_condition(shape)} RETURNING {key}"
        bound = (*params, *shape.key_of(edit.before))
        found = connection.execute(text, bound).fetchall()
    if not found:
        raise not_written(shape.table)
    return narrowed(found[0], range(len(shape.key)))


def _assignments(table: Table, shape: TableShape, edit: RowEdit) -> tuple[str, list[Any]]:
    sets: list[str] = []
    params: list[Any] = []
    whole = table.shape.names
    for place, value in edit.values or ():
        name = shape.names[place]
        if value == DEFAULT:  # SQLite takes the word in no UPDATE
            sets.append(f"{_quote(name)} = ({table.defaults[whole.index(name)]})")
        else:
            sets.append(f"{_quote(name)} = ?")
            params.append(value)
    return ", ".join(sets), params
