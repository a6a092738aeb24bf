"""The database of the state: a few connections that threads take in turn, and its transactions.

A COMMIT without an answer is settled by looking for a row of the transaction on another connection.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Condition
from time import monotonic
from typing import Any, Literal

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from tidegate.errors import TidegateError
from tidegate.store.held_rows import Dialect
from tidegate.store.postgres.connection import (
    BOUND_S,
    Row,
    StateConnection,
    close_quietly,
    connect,
    failed,
    is_lost,
    outcome_unknown,
)
from tidegate.store.seal_memory import SealMemory
from tidegate.store.seals import Seals
from tidegate.store.versions import StateMoved, Topic

Area = Literal[
    "rights", "operators", "approvals", "changes", "windows", "pairings", "queries", "questions"
]
"""What one transaction at a time changes, where a single statement does not decide."""

LOCK = 0x54474442
"""The first number of our locks in the database, `TGDB`; the second is that of the area."""
_AREAS: dict[Area, int] = {
    "rights": 1, "operators": 2, "approvals": 3, "changes": 4, "windows": 5, "pairings": 6,
    "queries": 7, "questions": 8,
}  # fmt: skip
MIGRATION_LOCK = 100
_COUNT = "SET CONSTRAINTS ALL IMMEDIATE;SELECT area, value FROM tidegate.generations"
_MARK = "INSERT INTO tidegate.commits (id) VALUES ('{}')"
MOST_CONNECTIONS = 8
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    f"SET LOCAL statement_timeout = {int(BOUND_S * 1000)};"
    f"SET LOCAL lock_timeout = {int(BOUND_S * 1000)};"
    # So that a process that was stopped in the middle keeps no lock from others.
    f"SET LOCAL idle_in_transaction_session_timeout = {int(BOUND_S * 1000)}"
)


def _run(connection: Any, sql: str, values: Sequence[Any]) -> list[Row]:
    cursor = connection.ask(sql, values or None)
    return cursor.fetchall() if cursor.description else []


DIALECT = Dialect(_run, "tidegate.", "%s", " FOR UPDATE", is_foreign=True)
"""How the seals of rows (`store/seals.py`) are read and written here."""


class Database:
    """The state's database at a URL. Safe to use from any thread; closed once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.learn: Callable[[Mapping[Topic, int]], None] = lambda _: None
        """Is given the counters after each change that is counted."""
        self.inspect: Callable[[StateConnection], None] = lambda _: None
        """Is given each new connection, and refuses it by an error."""
        self.seals = Seals(DIALECT, None, SealMemory(None))
        """Of the rows that give rights."""
        self.admit: Callable[[], None] = lambda: None
        """Is called before anything is asked on a connection, and refuses that by an error."""
        self.epoch_at: float | None = None
        """Since when the state is on this server, as a gate has left it."""
        self.identity = ""
        """Of the state in the database, whatever the URL; empty as long as it was not read."""
        self._free: deque[StateConnection] = deque()
        self._taken = 0
        self._changed = Condition()
        self._closed = False

    @contextmanager
    def reading(self, bound_s: float = BOUND_S) -> Generator[StateConnection, None, None]:
        """A connection, for single statements that read, each of which sees the state of its
        beginning. Raises: TidegateError STATE_FAILED."""
        deadline = monotonic() + bound_s
        with self._failures():
            connection = self._begin("", deadline)
            with self._lent(connection):
                yield connection

    @contextmanager
    def changing(
        self, *areas: Area, settles: bool = True, bound_s: float = BOUND_S
    ) -> Generator[StateConnection, None, None]:
        """A transaction: all of it or nothing. One at a time in each of its areas. What `settles`
        leaves a mark by which it is found where no answer comes to the COMMIT, and may change
        counters of `store/versions.py`. What does not may lose its last moments in a crash.

        Raises: TidegateError STATE_FAILED, whose details say `outcome` `unknown` if it may have
        been kept.
        """
        deadline = monotonic() + bound_s
        # Whatever the server's default: what settles is on its disk, and on that of the standby
        # where there is a synchronous one.
        begin = f"{_BEGIN};SET LOCAL synchronous_commit = {'on' if settles else 'off'}"
        for number in sorted(_AREAS[area] for area in areas):
            begin += f";SELECT pg_advisory_xact_lock({LOCK}, {number})"
        with self._failures():
            connection = self._begin(begin, deadline)
            with self._lent(connection):
                try:
                    yield connection
                except BaseException:
                    self.seals.settle(connection, is_kept=False)
                    _roll_back(connection)
                    raise
                is_kept = False
                try:
                    self._commit(connection, settles)
                    is_kept = True
                finally:
                    self.seals.settle(connection, is_kept=is_kept)

    def try_writing(self) -> None:
        """See that a change could be written now; nothing is kept. Raises: TidegateError."""
        with self._failures():
            connection = self._begin(_BEGIN, monotonic() + BOUND_S)
            with self._lent(connection):
                try:
                    connection.ask("UPDATE tidegate.about SET version = version WHERE false")
                finally:
                    _roll_back(connection)

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        with self._changed:
            self._closed = True
            free, self._free = list(self._free), deque()
            self._changed.notify_all()
        for connection in free:
            close_quietly(connection)

    def _begin(self, text: str, deadline: float) -> StateConnection:
        """A connection that has run the text. Another one is tried where the server has ended one
        that was idle."""
        while True:
            connection, is_new = self._take(deadline)
            connection.deadline, connection.warned = deadline, False
            try:
                self.admit()
                if text:
                    connection.ask(text)
                return connection
            except BaseException as error:
                self._give_back(connection, keep=False)
                if (
                    is_new
                    or not isinstance(error, psycopg.OperationalError)
                    or (monotonic() >= deadline)
                ):
                    raise

    def _take(self, deadline: float) -> tuple[StateConnection, bool]:
        with self._changed:
            while not self._closed and not self._free and self._taken >= MOST_CONNECTIONS:
                if not self._changed.wait(deadline - monotonic()):
                    raise psycopg.OperationalError("all of our connections are busy")
            if self._closed:
                raise psycopg.OperationalError("the state is closed")
            self._taken += 1
            while self._free:
                connection = self._free.pop()
                if not _is_ended(connection):
                    return connection, False
                close_quietly(connection)
        connection = None
        try:
            connection = connect(self.url)
            self.inspect(connection)
            return connection, True
        except BaseException:
            if connection is not None:
                close_quietly(connection)
            with self._changed:
                self._taken -= 1
                self._changed.notify()
            raise

    def _give_back(self, connection: StateConnection, *, keep: bool = True) -> None:
        with self._changed:
            self._taken -= 1
            keep = keep and not self._closed and not connection.closed
            if keep:
                self._free.append(connection)
            self._changed.notify()
        if not keep:
            close_quietly(connection)

    @contextmanager
    def _lent(self, connection: StateConnection) -> Generator[None, None, None]:
        try:
            yield
        finally:
            status = connection.pgconn.transaction_status
            self._give_back(connection, keep=status == TransactionStatus.IDLE)

    def _commit(self, connection: StateConnection, settles: bool) -> None:
        mark = os.urandom(16).hex() if settles else ""
        counters: dict[Topic, int] = {}
        try:
            if settles:
                # The counters are changed last: all who change them wait for this transaction.
                answers = connection.ask(f"{_COUNT};{_MARK.format(mark)};COMMIT")
                answers.nextset()
                counters = dict[Topic, int](answers.fetchall())
            else:
                connection.ask("COMMIT")
        except psycopg.OperationalError as error:
            if not is_lost(error, connection) and not connection.warned:
                raise
            if not connection.warned:
                counters = self._settle(mark, error)
        if connection.warned:
            raise outcome_unknown(
                "PostgreSQL says that the change may not have reached the standby"
            )
        if counters:
            self.learn(counters)

    def _settle(self, mark: str, lost: psycopg.OperationalError) -> dict[Topic, int]:
        """See on a new connection whether a transaction was committed; the counters after it. What
        is not there may still come, so it is unknown. Raises: TidegateError."""
        row = None
        with suppress(psycopg.Error), connect_once(self.url) as connection:
            row = connection.row(
                "SELECT json_object_agg(area, value) FROM tidegate.generations"
                " WHERE EXISTS (SELECT 1 FROM tidegate.commits WHERE id = %s)",
                (mark,),
            )
        if row is None or row[0] is None:
            raise outcome_unknown("its database gave no answer") from lost
        return row[0]

    def is_same(self, other: Database) -> bool:
        """Whether both are the same database, by what their states say of themselves."""
        return self is other or (self.identity == other.identity and bool(self.identity))

    @contextmanager
    def _failures(self) -> Generator[None, None, None]:
        """Raise what PostgreSQL reports as STATE_FAILED."""
        try:
            yield
        except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
            place = self._find_move()
            raise (StateMoved(place) if place else failed(error)) from error
        except (psycopg.Error, UnicodeError) as error:
            raise failed(error) from error

    def _find_move(self) -> str:
        """Where the state has moved, if it is here no more."""
        try:
            with connect_once(self.url) as connection:
                row = connection.row("SELECT moved_to FROM tidegate.about")
        except (psycopg.Error, TidegateError):
            return ""
        return "" if row is None else str(row[0])


@contextmanager
def connect_once(url: str, bound_s: float = BOUND_S) -> Generator[StateConnection, None, None]:
    """A connection of its own, closed at the end. Raises: psycopg.Error."""
    connection = connect(url, bound_s)
    try:
        yield connection
    finally:
        close_quietly(connection)


def _is_ended(connection: StateConnection) -> bool:
    """Whether the server has ended a connection that was idle: then there is its end to read."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN | select.POLLERR | select.POLLHUP)
    return bool(poll.poll(0))


def _roll_back(connection: StateConnection) -> None:
    if connection.closed:
        return
    try:
        connection.ask("ROLLBACK")
    except psycopg.Error:
        close_quietly(connection)
