"""Keeps the rows that a change of SQLite touches, and puts them back, by its session extension.

A session sees every row that a statement changes, also through triggers and foreign keys, in tables
with a declared primary key that holds no NULL. Triggers are off while rows are put back: what they
had changed is among the rows, and goes back with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from tidegate.engines.common.row_images import RowComparison, is_same_row
from tidegate.engines.sqlite.apsw_types import ApswConnection, Change, ChangeSession, changesets
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.inspect import Mode
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    ChangeKeeper,
    Comparison,
    ImageColumn,
    Reversibility,
    Row,
    RowImage,
    TableImage,
)
from tidegate.model.statements import Statement
from tidegate.sql.dialects import find

_quote = find("sqlite").quote

_SHAPE = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
_FOREIGN_KEY = "other rows refer to rows that would go, or rows that these refer to are gone"
_ROW_BYTES = 64
"""About what a row takes beside its values."""


def reversibility(session: SqliteSession, statement: Statement) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: apsw.Error."""
    reason = _objection(session, changed_tables(session, statement))
    return Reversibility(not reason, reason)


class ChangeCapture:
    """Watches what a transaction changes from here on. Used in the session's thread only."""

    def __init__(self, session: SqliteSession, keeper: ChangeKeeper, reason: str) -> None:
        """With a `reason` nothing can be kept."""
        self._session = session
        self._keeper = keeper
        self._reason = reason
        self._changes: ChangeSession | None = None
        if not reason:
            self._changes = changesets.session(session.connection)
            self._changes.attach()

    @classmethod
    def of_statement(
        cls, session: SqliteSession, keeper: ChangeKeeper, statement: Statement
    ) -> ChangeCapture:
        """For the statement that is about to run. Raises: apsw.Error."""
        found = reversibility(session, statement)
        return cls(session, keeper, found.reason)

    @classmethod
    def of_block(cls, session: SqliteSession, keeper: ChangeKeeper, statement: Statement) -> None:
        """Watch the transaction of the session from here on, until it ends, unless the statement
        that is about to run cannot be taken back. A session compares the rows with those at the
        end: what a savepoint undoes is no change to it. Raises: apsw.Error, TidegateError."""
        found = reversibility(session, statement)
        if not found.possible:
            keeper.give_up(found.reason)
        elif session.watcher is None:
            session.watcher = cls(session, keeper, "")

    def keep(self, keeper: ChangeKeeper | None = None) -> None:
        """Give the keeper, or another one, what was changed. Raises: TidegateError, apsw.Error."""
        self._keeper = keeper or self._keeper
        if self._changes is None:
            self._keeper.give_up(self._reason)
            return
        with self._session.guard_own():
            native = self._changes.changeset()
            self.close()
        if len(native) > self._keeper.max_bytes:
            self._keeper.give_up(
                f"the rows take more than the {self._keeper.max_bytes:,} bytes of `undo.max_bytes`"
            )
            return
        try:
            with self._session.guard_own():
                image = _image(self._session.connection, native, self._keeper.max_bytes)
        except UnicodeDecodeError:
            self._keeper.give_up("a text in its rows is not valid")
            return
        if image is None:
            self._keeper.give_up(
                f"the rows take more than the {self._keeper.max_bytes:,} bytes of `undo.max_bytes`"
            )
        else:
            self._keeper.prepare(image)

    def close(self) -> None:
        """Watch no longer. Safe to call twice."""
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()


def compare(
    session: SqliteSession, progress_handler: ProgressHandler, image: ChangeImage
) -> Comparison:
    """Compare the rows of an image with those there now. Raises: TidegateError."""
    connection = session.connection
    with session.stepping(progress_handler), session.mode(Mode.OWN):
        connection.execute("BEGIN", can_cache=False)
        try:
            return _compare(connection, image)
        finally:
            connection.execute("ROLLBACK", can_cache=False)


def put_back(
    session: SqliteSession,
    progress_handler: ProgressHandler,
    image: ChangeImage,
    keeper: ChangeKeeper | None,
) -> Comparison:
    """Put the rows back in one transaction, or return what prevents it.

    Raises: TidegateError.
    """
    connection = session.connection
    capture: ChangeCapture | None = None
    with session.stepping(progress_handler), session.mode(Mode.OWN):
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            connection.execute("BEGIN IMMEDIATE", can_cache=False)
            found = _compare(connection, image)
            if found.count or found.reason:
                return found
            if keeper is not None:
                tables = [table.table for table in image.tables]
                capture = ChangeCapture(session, keeper, _objection(session, tables))
            reason = _apply_inverse(connection, image.native)
            if reason:
                return Comparison(reason=reason)
            _check_restored(connection, image)
            if capture is not None:
                capture.keep()
            connection.execute("COMMIT", can_cache=False)
            return found
        finally:
            if capture is not None:
                capture.close()
            if not connection.get_autocommit():
                connection.execute("ROLLBACK", can_cache=False)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def changed_tables(session: SqliteSession, statement: Statement) -> set[str]:
    """The tables whose rows a statement may change, by what SQLite asks its authorizer."""
    authorizer = session.authorizer
    with session.mode(Mode.OBSERVE):
        authorizer.forget()
        session.compile_statement(statement.text, statement.params)
        return set(authorizer.changed)


def _objection(session: SqliteSession, tables: Iterable[str]) -> str:
    """Why rows of these tables cannot be put back; empty if they can."""
    connection = session.connection
    with session.mode(Mode.OWN):
        for name in sorted(tables):
            listed = connection.execute(f"PRAGMA main.table_list({_quote(name)})").fetchall()
            kinds = {str(row[2]): bool(row[4]) for row in listed if row[0] == "main"}
            if "view" in kinds:
                continue  # what its triggers change is among the tables
            if name.lower().startswith("sqlite_") or "table" not in kinds:
                return f"{name} is not an ordinary table"
            reason = "" if kinds["table"] else _key_objection(connection, name)
            if reason:
                return reason
    return ""


def _key_objection(connection: ApswConnection, name: str) -> str:
    """Why rows of a table with rowids have no key that tells them apart; empty if they have one."""
    columns = connection.execute(f"PRAGMA main.table_info({_quote(name)})").fetchall()
    key = [column for column in columns if column[5]]
    if not key:
        return f"{name} has no primary key"
    indexes = connection.execute(f"PRAGMA main.index_list({_quote(name)})").fetchall()
    is_rowid = not any(index[3] == "pk" for index in indexes)
    if is_rowid or all(column[3] for column in key):
        return ""
    return f"the primary key of {name} can hold NULL"


def _columns(connection: ApswConnection, name: str) -> list[tuple[Any, ...]]:
    """The columns that hold values of their own: no generated ones, as in a changeset."""
    found = connection.execute(f"PRAGMA main.table_xinfo({_quote(name)})").fetchall()
    return [column for column in found if not column[6]]


def _image(connection: ApswConnection, native: bytes, max_bytes: int) -> ChangeImage | None:
    """The whole rows of a changeset; None if they take too many bytes. Raises: apsw.Error."""
    order: list[str] = []
    rows: dict[str, list[RowImage]] = {}
    heads: dict[str, tuple[list[tuple[Any, ...]], tuple[int, ...]]] = {}
    size = len(native)
    for change in changesets.iter(native):
        name = change.name
        if name not in heads:
            columns = _columns(connection, name)
            heads[name] = columns, tuple(sorted(change.pk_columns))
            rows[name] = []
            order.append(name)
        columns, key = heads[name]
        row = _row(connection, name, columns, key, change)
        size += sum([_size(each) for each in (row.before, row.after) if each is not None])
        if size > max_bytes:
            return None
        rows[name].append(row)
    tables = tuple(
        [
            TableImage(
                "",
                name,
                tuple([ImageColumn(str(each[1]), str(each[2] or "")) for each in heads[name][0]]),
                heads[name][1],
                tuple(rows[name]),
                _shape(connection, name),
            )
            for name in order
        ]
    )
    return ChangeImage(tables, native)


def _row(
    connection: ApswConnection,
    name: str,
    columns: list[tuple[Any, ...]],
    key: tuple[int, ...],
    change: Change,
) -> RowImage:
    if change.old is None or change.new is None:
        return RowImage(change.old, change.new)
    old = change.old
    now = _read(connection, name, [str(each[1]) for each in columns], key, [old[i] for i in key])
    if now is None:
        raise TidegateError(Code.INTERNAL, "A row that was changed is not there.")
    before = [
        now[place] if value is changesets.no_change else value for place, value in enumerate(old)
    ]
    return RowImage(tuple(before), now)


def _read(
    connection: ApswConnection,
    name: str,
    columns: Sequence[str],
    key: Sequence[int],
    values: Sequence[Any],
) -> Row | None:
    """The row with this key; None if there is none. Raises: apsw.Error."""
    shown = ", ".join(map(_quote, columns))
    condition = " AND ".join(f"{_quote(columns[place])} = ?" for place in key)
    text = f"SELECT {shown} FROM main.{_quote(name)} WHERE {condition}"
    found = connection.execute(text, tuple(values)).fetchall()
    return found[0] if found else None


def _size(row: Row) -> int:
    return _ROW_BYTES + sum([len(each) if isinstance(each, (str, bytes)) else 8 for each in row])


def _shape(connection: ApswConnection, name: str) -> str:
    found = connection.execute(_SHAPE, (name,)).fetchall()
    return str(found[0][0]) if found else ""


def _compare(connection: ApswConnection, image: ChangeImage) -> Comparison:
    comparison = RowComparison()
    for table in image.tables:
        if _shape(connection, table.table) != table.shape:
            return Comparison(reason=f"the table {table.table} has another definition now")
        names = [column.name for column in table.columns]
        for row in table.rows:
            now = _read(connection, table.table, names, table.key, table.key_of(row))
            comparison.add(table, row, now)
    return comparison.result


def _apply_inverse(connection: ApswConnection, native: bytes) -> str:
    """Apply the inverse of a changeset. Returns why that cannot be done, and then nothing was."""
    kinds: list[int] = []

    def conflict(kind: int, _: object) -> int:
        kinds.append(kind)
        return apsw.SQLITE_CHANGESET_ABORT

    try:
        changesets.apply(
            changesets.invert(native),
            connection,
            conflict=conflict,
            flags=apsw.SQLITE_CHANGESETAPPLY_FKNOACTION,
        )
    except (apsw.AbortError, apsw.ConstraintError):
        if kinds and kinds[-1] == apsw.SQLITE_CHANGESET_FOREIGN_KEY:
            return _FOREIGN_KEY
        return "a constraint of the table does not admit the rows as they were"
    return ""


def _check_restored(connection: ApswConnection, image: ChangeImage) -> None:
    """See that every row is as it was, before that is committed. Raises: TidegateError."""
    for table in image.tables:
        names = [column.name for column in table.columns]
        for row in table.rows:
            key = table.key_of(row)
            if row.before is not None:
                key = tuple([row.before[place] for place in table.key])
            now = _read(connection, table.table, names, table.key, key)
            if not is_same_row(now, row.before):
                raise TidegateError(
                    Code.UNDO_UNAVAILABLE,
                    f"A row of {table.table} would not be as it was. Nothing was changed.",
                    hint="Correct the rows by statements.",
                )
