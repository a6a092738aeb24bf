"""Decides how one connection is opened, locked down, and how a statement runs on it.

A session belongs to one thread at a time. What SQLite itself is told here: open read-only,
`query_only`, defensive, no trusted schema, no extensions, no ATTACH, size limits, an authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any
from urllib.parse import quote

import apsw

from tidegate.engines.faults import stopped
from tidegate.engines.sqlite.authorizer import Authorizer, Mode
from tidegate.engines.sqlite.brake import Brake
from tidegate.engines.sqlite.driver import Connection, Cursor, Rows, connect
from tidegate.engines.sqlite.faults import translate
from tidegate.engines.sqlite.masking import offer_hash
from tidegate.engines.sqlite.plan import Plan
from tidegate.engines.sqlite.program import MAX_PATTERN_BYTES, MAX_VALUE_BYTES
from tidegate.engines.url import FileUrl
from tidegate.errors import GateError
from tidegate.pages import Column
from tidegate.statements import Statement

LANE_VALUE_BYTES = 16 * 1024
"""The largest value on the event loop, so that one opcode there costs microseconds."""

LANE_PATTERN_BYTES = 64
LANE_PROGRAM_OPCODES = 4_000
LANE_TICK_OPCODES = 100
LANE_TICKS = 120
LANE_SECONDS = 0.001
"""The clock is looked at every `LANE_TICK_OPCODES`: a hundred opcodes on values of the largest size
take a few milliseconds, a thousand would take fifty."""

WORKER_TICK_OPCODES = 50_000
"""How often a worker looks at the clock; an interrupt is felt at once, without this."""

_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    apsw.SQLITE_LIMIT_COLUMN: 2_000,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 1_000,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 500,
    apsw.SQLITE_LIMIT_VDBE_OP: 250_000,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 127,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 5_000,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 32,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_SETTINGS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
    apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA: 0,
}


class Session:
    """One connection. `writes` opens it for changes; `lane` makes it the event loop's own."""

    def __init__(self, file: FileUrl, *, writes: bool = False, lane: bool = False) -> None:
        """Open it. Raises: GateError SOURCE_UNREACHABLE."""
        self.authorizer = Authorizer()
        self.max_value_bytes = LANE_VALUE_BYTES if lane else MAX_VALUE_BYTES
        self._brake: Brake | None = None
        self._busy_s = 0.0 if lane else float(file.options.get("timeout", "5"))
        self._ticks = 0
        self._until = 0.0
        try:
            self.connection = _connect(file, writes)
            self._lock_down(writes, lane)
            # Reads the schema, however large it is, before a budget is set on what runs here.
            self.connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            self._schema_version = self._read_schema_version()
            self._set_brakes(lane)
        except apsw.Error as error:
            raise translate(error) from error

    def _lock_down(self, writes: bool, lane: bool) -> None:
        connection = self.connection
        for setting, value in _SETTINGS.items():
            connection.config(setting, value)
        for limit, value in _LIMITS.items():
            connection.limit(limit, value)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, self.max_value_bytes)
        pattern = LANE_PATTERN_BYTES if lane else MAX_PATTERN_BYTES
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)
        if lane:
            connection.limit(apsw.SQLITE_LIMIT_VDBE_OP, LANE_PROGRAM_OPCODES)
        if writes:
            connection.execute("PRAGMA foreign_keys = 1")
        else:
            connection.execute("PRAGMA query_only = 1")
        offer_hash(connection)
        connection.authorizer = self.authorizer

    def _set_brakes(self, lane: bool) -> None:
        connection = self.connection
        if lane:
            connection.set_progress_handler(self._lane_tick, LANE_TICK_OPCODES)
        else:
            connection.set_progress_handler(self._worker_tick, WORKER_TICK_OPCODES)
            connection.set_busy_handler(self._wait_for_lock)

    def is_current(self) -> bool:
        """Whether the schema that was loaded at opening is still the file's. Loads nothing."""
        self.allow_lane()
        try:
            return self._read_schema_version() == self._schema_version
        except apsw.Error:
            return True  # locked: nothing is known, and nothing to be gained

    def _read_schema_version(self) -> object:
        return self.connection.execute("PRAGMA schema_version").fetchall()[0][0]

    def _lane_tick(self) -> bool:
        self._ticks += 1
        return self._ticks > LANE_TICKS or perf_counter() > self._until

    def _worker_tick(self) -> bool:
        return self._brake is not None and self._brake.felt()

    def _wait_for_lock(self, tries: int) -> bool:
        if tries == 0:
            self._until = perf_counter() + self._busy_s
        if perf_counter() >= self._until or self._worker_tick():
            return False
        sleep(min(0.001 * (tries + 1), 0.02))
        return True

    def attempt(
        self, plan: Plan, statement: Statement
    ) -> tuple[tuple[Column, ...], Rows, float] | None:
        """Run a read to its end within the lane's budget: (columns, rows, seconds).

        None if it did not end well in that: then nothing is known but that a worker must run it.
        """
        authorizer = self.authorizer
        authorizer.prepared = False
        started = self.allow_lane()
        try:
            cursor = self.connection.execute(statement.text, statement.params)
            columns = plan.columns
            if columns is None or authorizer.prepared:
                columns = plan.columns = self.describe(cursor, statement)
            return columns, cursor.fetchall(), perf_counter() - started
        except (apsw.Error, ValueError, TypeError, OverflowError):
            return None

    def allow_lane(self) -> float:
        """Give the next statement on the lane a new budget. Returns the time."""
        self._ticks = 0
        now = perf_counter()
        self._until = now + LANE_SECONDS
        return now

    def describe(self, cursor: Cursor, statement: Statement) -> tuple[Column, ...]:
        """The columns of a statement that has begun, as they are now."""
        try:
            found = cursor.get_description()
        except apsw.ExecutionCompleteError:
            with self.mode(Mode.OBSERVE):
                found = self.glance(statement.text, statement.params).description
        return tuple([Column(name, declared or "") for name, declared in found])

    @contextmanager
    def mode(self, mode: Mode) -> Generator[None]:
        """Let the authorizer judge by `mode` meanwhile."""
        before = self.authorizer.mode
        self.authorizer.mode = mode
        try:
            yield
        finally:
            self.authorizer.mode = before

    def glance(self, text: str, params: tuple[Any, ...] | None = None) -> Glance:
        """Prepare the first statement of a text without running it. Raises: apsw.Error."""
        glances: list[Glance] = []

        def look(cursor: Cursor, sql: str, _: object) -> bool:
            glances.append(Glance(cursor, sql))
            return False

        cursor = self.connection.cursor()
        cursor.exec_trace = look
        try:
            cursor.execute(text, params, can_cache=False)
        except apsw.ExecTraceAbort:
            pass
        except apsw.BindingsError as error:
            count = re.search(r"\d+", str(error))
            if params is not None or count is None:
                raise
            return self.glance(text, (None,) * int(count.group()))
        return glances[0]

    @contextmanager
    def own(self) -> Generator[None]:
        """For our own BEGIN, COMMIT and ROLLBACK; the time limit does not hold for these."""
        brake, self._brake = self._brake, None
        try:
            with self.mode(Mode.OWN):
                yield
        finally:
            self._brake = brake

    @contextmanager
    def stepping(self, brake: Brake, max_value_bytes: int = MAX_VALUE_BYTES) -> Generator[None]:
        """Guard a stretch of work of one statement; turns exceptions into coded errors."""
        brake.engage(self.connection)
        self._brake = brake
        self.authorizer.refused = None
        if max_value_bytes != self.max_value_bytes:
            self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, max_value_bytes)
            self.max_value_bytes = max_value_bytes
        try:
            yield
        except GateError:
            raise
        except (apsw.Error, ValueError, TypeError, OverflowError, MemoryError) as error:
            if brake.cause is not None:
                raise stopped(brake.cause, brake.timeout_s) from error
            refused = self.authorizer.refused
            raise translate(error, refused=refused, max_value_bytes=max_value_bytes) from error
        finally:
            self._brake = None
            brake.release()

    def close(self) -> None:
        """Close the connection; a change that was not committed is rolled back."""
        self.connection.close(True)


class Glance:
    """What SQLite tells about a prepared statement. `real` is False for an empty one."""

    __slots__ = ("description", "explains", "parameters", "readonly", "real", "sql")

    def __init__(self, cursor: Cursor, sql: str) -> None:
        self.sql = sql
        self.real = cursor.has_vdbe
        self.readonly = cursor.is_readonly
        self.explains = cursor.is_explain
        self.parameters = cursor.bindings_count
        self.description = cursor.get_description()


def _connect(file: FileUrl, writes: bool) -> Connection:
    if file.path is None:
        name = f"file:/{file.options['memory']}?vfs=memdb"
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        return connect(name, flags)
    flags = apsw.SQLITE_OPEN_READWRITE if writes else apsw.SQLITE_OPEN_READONLY
    if file.options.get("immutable") == "1":
        name = f"file:{quote(file.path)}?immutable=1"
        return connect(name, flags | apsw.SQLITE_OPEN_URI)
    return connect(file.path, flags)
