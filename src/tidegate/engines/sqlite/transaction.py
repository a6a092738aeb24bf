"""A statement on a worker's session: its transaction, and how its rows are read.

SQLite keeps whatever bytes it is given as text, and the driver refuses to read a row with text that
is not in the database's encoding. Then the statement is run again inside one that gives its text as
bytes.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice, zip_longest
from time import perf_counter
from typing import TYPE_CHECKING, Any

import apsw

from tidegate.engines.api import RowCollector
from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.whole_changes import WholeChange, whole_change_of
from tidegate.engines.sqlite.apsw_types import ApswCursor, Rows
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.errors import is_quoted_text
from tidegate.engines.sqlite.inspect import CachedStatement, Mode, prepare
from tidegate.model.decisions import Permit
from tidegate.model.results import Column
from tidegate.model.statements import Statement
from tidegate.results.column_kinds import column_of

if TYPE_CHECKING:
    from tidegate.engines.sqlite.changes import ChangeCapture

_AROUND = """WITH "tidegate rows"({names}) AS (
{inside}
)
SELECT {values} FROM "tidegate rows" LIMIT -1 OFFSET {skip}"""

_VALUE = "typeof({0}) = 'text', CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END"


class InvalidTextCursor:
    """The rows of a read after the first `skip`. Used like the driver's cursor."""

    __slots__ = ("_cursor", "_encoding", "_rows")

    def __init__(
        self, session: SqliteSession, statement: Statement, columns: int, skip: int
    ) -> None:
        """Raises: apsw.Error, also if the statement cannot run inside another (PRAGMA)."""
        with session.mode(Mode.OBSERVE):
            inside = session.compile_statement(statement.text, statement.params).sql.rstrip(
                "; \t\r\n"
            )
        with session.guard_own():
            found = session.connection.execute("PRAGMA encoding").fetchall()
        self._encoding = str(found[0][0])
        names = [f"c{place}" for place in range(columns)]
        text = _AROUND.format(
            names=", ".join(names),
            inside=inside,
            values=", ".join([_VALUE.format(name) for name in names]),
            skip=skip,
        )
        self._cursor = session.connection.execute(text, statement.params, can_cache=False)
        self._rows = iter(self._cursor)

    def __iter__(self) -> InvalidTextCursor:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = next(self._rows)
        return tuple(
            [
                value.decode(self._encoding, "replace") if is_text else value
                for is_text, value in zip(row[::2], row[1::2], strict=True)
            ]
        )

    def close(self, force: bool) -> None:
        """End it."""
        self._cursor.close(force)


BATCH_BYTES = 1_000_000
"""About how much is read of large rows before they are passed on."""

LARGE_ROW_S = 0.000_02
"""What comes sooner holds less than some 100 kB, whatever it is made of."""

GROUP_ROWS = 4
"""How many rows are read between two readings of the clock, after a batch that came soon. Each may
hold `cost_estimate.ROW_BYTES`, and so this is few."""

PLAN_COLUMNS = (
    Column("id", "INTEGER", "integer"),
    Column("parent", "INTEGER", "integer"),
    Column("detail", "TEXT", "text"),
)
"""What EXPLAIN QUERY PLAN shows, without the column that SQLite names `notused`."""


class Execution:
    """A statement that has begun on a session. Used in the session's thread only."""

    __slots__ = (
        "_capture",
        "_changes_before",
        "_cursor",
        "_explain",
        "_given",
        "_held",
        "_permit",
        "_plan",
        "_progress_handler",
        "_quick",
        "_session",
        "_statement",
        "_whole",
        "columns",
        "done",
        "writes",
    )

    def __init__(
        self,
        session: SqliteSession,
        plan: CachedStatement,
        statement: Statement,
        progress_handler: ProgressHandler,
        *,
        writes: bool = False,
        explain: bool = False,
        permit: Permit | None = None,
    ) -> None:
        """Run it to its first row. A change begins a transaction. The `permit` of a change says how
        many rows it may be about and what keeps them. Raises: TidegateError."""
        self._session = session
        self._progress_handler = progress_handler
        self._plan = plan
        self._statement = statement
        self._given = 0
        self._quick = False
        self._held: Rows = []
        self._cursor: ApswCursor | InvalidTextCursor
        self.writes = writes
        self._explain = explain
        self._permit = permit if writes else None
        self._capture: ChangeCapture | None = None
        self._whole: WholeChange | None = None
        self._changes_before = session.connection.total_changes()
        self.done = False
        with session.stepping(
            *(progress_handler, plan.max_value_bytes, statement.text),
            takes_quoted_texts=plan.takes_quoted_texts,
        ):
            try:
                if session.in_block:
                    session.check_block()
                session.load_extensions(statement.text)
                begin = self._begin_change if writes else self._begin_read
                try:
                    self._cursor, self.columns = begin(statement)
                except apsw.SQLError as error:
                    if plan.takes_quoted_texts or not is_quoted_text(error):
                        raise
                    # It is in a view or a trigger, if the statement itself still has none.
                    prepare(session, statement.text)
                    plan.takes_quoted_texts = True
                    session.take_quoted_texts(taken=True)
                    self._end_change("ROLLBACK")
                    self._cursor, self.columns = begin(statement)
            except BaseException:
                self._end_change("ROLLBACK")
                raise
        session.open_statement = self

    def _begin_change(self, statement: Statement) -> tuple[ApswCursor, tuple[Column, ...]]:
        session = self._session
        with session.mode(Mode.OBSERVE):
            found = session.compile_statement(statement.text, statement.params).description
        if self._plan.vacuums:
            # It attaches a database and fills it, which the authorizer refuses to callers' texts.
            connection = session.connection
            connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 1)
            try:
                with session.mode(Mode.OWN):
                    return connection.execute("VACUUM main", can_cache=False), ()
            finally:
                connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        if session.in_block:
            session.allow_changes(allowed=True)
        else:
            with session.guard_own():
                session.connection.execute("BEGIN IMMEDIATE", can_cache=False)
        keeper = None if self._permit is None else self._permit.keeper
        if keeper is not None:
            from tidegate.engines.sqlite.changes import ChangeCapture  # only where changes are kept

            if session.in_block:
                ChangeCapture.of_block(session, keeper, statement)
            else:
                self._capture = ChangeCapture.of_statement(session, keeper, statement)
        self._whole = whole_change_of(self._permit)
        if self._whole is not None:
            self._whole.begin([self._number(query) for query in self._whole.counts_before])
        with session.mode(Mode.WRITE):
            cursor = session.connection.execute(statement.text, statement.params)
        return cursor, tuple([column_of(name, declared or "") for name, declared in found])

    def _begin_read(self, statement: Statement) -> tuple[ApswCursor, tuple[Column, ...]]:
        cursor = self._read_cursor(statement)
        columns = PLAN_COLUMNS if self._explain else self._session.describe(cursor, statement)
        return cursor, columns

    def _read_cursor(self, statement: Statement) -> ApswCursor:
        session = self._session
        execute = session.connection.execute
        if self._explain or self._plan.explains:
            how = 2 if self._explain else -1
            with session.mode(Mode.OBSERVE):
                return execute(statement.text, statement.params, can_cache=False, explain=how)
        try:
            return execute(statement.text, statement.params, can_cache=self._plan.small)
        except apsw.AuthError:
            # A virtual table may prepare its own changes when it is first connected (rtree does).
            # Connecting it changes nothing; the statement itself was found to be a read.
            with session.mode(Mode.OBSERVE):
                session.compile_statement(statement.text, statement.params)
            session.authorizer.refused = None
            return execute(statement.text, statement.params)

    @property
    def affected(self) -> int:
        """Rows that the statement itself changed, without those that triggers did."""
        if not self.writes:
            return 0
        connection = self._session.connection
        return connection.changes() if connection.total_changes() != self._changes_before else 0

    @property
    def counted(self) -> int:
        """Rows that were changed, those of triggers and foreign keys included."""
        return self._session.connection.total_changes() - self._changes_before if self.writes else 0

    def read(self, max_rows: int) -> Rows:
        """Up to `max_rows` further rows; fewer if they are large, or at the end (`done`)."""
        rows: Rows = []
        with self._session.stepping(
            *(self._progress_handler, self._plan.max_value_bytes),
            takes_quoted_texts=self._plan.takes_quoted_texts,
        ):
            try:
                self._gather(rows, max_rows)
            except UnicodeDecodeError as error:
                self._turn_lenient(error, self._given + len(rows))
                self._gather(rows, max_rows)
        self._given += len(rows)
        if self.done and not self.writes:
            self._cursor.close(True)
            self._session.release_lock()
        return [(row[0], row[1], row[3]) for row in rows] if self._explain else rows

    def _gather(self, rows: Rows, max_rows: int) -> None:
        if self._held:
            rows.append(self._held.pop(0))
            return
        source = islice(self._cursor, max_rows - len(rows))
        group = GROUP_ROWS if self._quick else 1
        self._quick = True
        size = 0
        before = perf_counter()
        for few in zip_longest(*[source] * group, fillvalue=()):
            # Weighing costs more than reading, and a large row is one that takes its time.
            now = perf_counter()
            if now - before > LARGE_ROW_S:
                self._quick = False
                size += sum([_weight(row) for row in few if row])
                if size > BATCH_BYTES:
                    rows.append(few[0])
                    self._held = [row for row in few[1:] if row]  # each is passed on alone
                    return
            rows += few
            before = now
        while rows and not rows[-1]:
            rows.pop()
        if len(rows) < max_rows:
            self._check_change()
            self._end_change("COMMIT")
            self.done = True
            self._session.open_statement = None

    def _turn_lenient(self, error: UnicodeDecodeError, skip: int) -> None:
        """Read on, after the rows that were read, with replacements in texts that need them.

        Raises: `error` where that cannot be done.
        """
        if self.writes or self._explain or isinstance(self._cursor, InvalidTextCursor):
            raise error
        self._cursor.close(True)
        try:
            self._cursor = InvalidTextCursor(
                self._session, self._statement, len(self.columns), skip
            )
        except apsw.SQLError:
            raise error from None

    def fetch_into(self, sink: RowCollector) -> None:
        """Read for a sink until it wants no more, or to the end."""
        while not self.done and (wanted := sink.remaining):
            rows = self.read(wanted)
            if rows:
                sink.write(rows)

    def close(self) -> None:
        """End it; a change whose rows were not all read is rolled back."""
        if self._session.closed:
            return
        self._cursor.close(True)
        if not self.done:
            self._end_change("ROLLBACK")
        self._session.release_lock()

    def _check_change(self) -> None:
        """Before a change is committed: count its rows, and keep them. Raises: TidegateError."""
        permit = self._permit
        if self._whole is not None:
            self._check_whole(self._whole)
        if permit is None or (permit.max_rows_changed is None and permit.keeper is None):
            return
        check_count(permit, self.counted, followers=True)
        if self._capture is not None:
            self._capture.keep()

    def _check_whole(self, whole: WholeChange) -> None:
        own = self.affected or self.counted  # rows of a view are those that its trigger changed
        whole.end(own, [self._number(query) for query in whole.counts_after(own)])

    def _number(self, query: str) -> int:
        """What a query of ours counts."""
        with self._session.mode(Mode.OWN):
            ((count,),) = self._session.connection.execute(query, can_cache=False).fetchall()
        return int(str(count))

    def _end_change(self, how: str) -> None:
        if not self.writes:
            return
        if self._capture is not None:
            self._capture.close()
        if self._session.in_block:
            self._session.allow_changes(allowed=False)
            return
        connection = self._session.connection
        with self._session.guard_own():
            if not connection.get_autocommit():
                connection.execute(how, can_cache=False)
            if how == "ROLLBACK":
                # After a full disk the journal is still to be played back, which only a connection
                # that may write can do: any read makes it.
                with suppress(apsw.Error):
                    connection.execute("SELECT count(*) FROM sqlite_schema", can_cache=False)


def _weight(row: tuple[Any, ...]) -> int:
    """About how many bytes a row takes."""
    return sum([len(value) if isinstance(value, (str, bytes)) else 8 for value in row]) + 8
