"""Adds the rows of a file to a SQLite table, as one change. In a worker's thread.

The rows are read as they are written, so that they are never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.engines.common.row_edits import change_of, check_shape, not_written
from tidegate.engines.common.row_images import check_count
from tidegate.engines.sqlite.apsw_types import ApswConnection
from tidegate.engines.sqlite.changes import ChangeCapture
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.inspect import Mode
from tidegate.engines.sqlite.row_changes import find_table, undo_objection
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import ChangedRows, ChangeRows, RowFeed
from tidegate.sql.dialects import find

_quote = find("sqlite").quote
_TRIGGERS = (
    "SELECT count(*) FROM main.sqlite_schema"
    " WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE"
)


def add_rows(
    session: SqliteSession, progress_handler: ProgressHandler, permit: Permit
) -> ChangedRows:
    """Add the rows in one transaction. Raises: TidegateError."""
    change, connection = change_of(permit), session.connection
    feed, capture = change.feed, None
    if feed is None:
        return ChangedRows((), 0)
    check_count(permit, feed.count)
    with session.stepping(progress_handler):
        try:
            with session.guard_own():
                connection.execute("BEGIN IMMEDIATE", can_cache=False)
            with session.mode(Mode.OWN):
                table = find_table(connection, change.table, keyless=True)
                check_shape(change, table.shape)
                triggers = connection.execute(_TRIGGERS, (change.table,)).fetchall()[0][0]
            if permit.keeper is not None and not change.tries:
                capture = ChangeCapture(session, permit.keeper, undo_objection(session, change))
            before = connection.total_changes()
            with session.mode(Mode.WRITE):
                _insert(connection, change, feed, counts=bool(triggers))
            affected = connection.total_changes() - before
            check_count(permit, affected, followers=True)
            if capture is not None:
                capture.keep()
            with session.guard_own():
                connection.execute("ROLLBACK" if change.tries else "COMMIT", can_cache=False)
            return ChangedRows((), affected, fed=feed.count)
        finally:
            if capture is not None:
                capture.close()
            if not connection.get_autocommit():
                with session.guard_own():
                    connection.execute("ROLLBACK", can_cache=False)


def _insert(connection: ApswConnection, change: ChangeRows, feed: RowFeed, *, counts: bool) -> None:
    """With `counts` each row is asked for: a trigger may leave one out without an error. Raises:
    TidegateError, apsw.Error."""
    names = change.shape.names
    listed = ", ".join([_quote(names[place]) for place in feed.places])
    marks = ", ".join("?" * len(feed.places))
    # A conflict ends the change, whatever the table says of it.
    text = f"INSERT OR ABORT INTO main.{_quote(change.table)} ({listed}) VALUES ({marks})"
    done = 0
    for rows in feed.batches():
        reader = _Counted(rows)
        try:
            if counts:
                found = connection.executemany(f"{text} RETURNING 1", reader).fetchall()
                if len(found) != len(rows):
                    raise not_written(change.table)
            else:
                connection.executemany(text, reader)
        except BaseException:
            feed.note(done + reader.given, done + reader.given)
            raise
        done += len(rows)
        feed.note(done, done)


class _Counted:
    """Gives rows one at a time, and knows how many it gave: SQLite takes each when it is due."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows = rows
        self.given = 0

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for row in self._rows:
            self.given += 1
            yield row
