"""One connection: it is opened, locked down, and can interrupt what it runs.

A session belongs to one thread at a time. It is opened read-only with `query_only`, in defensive
mode, without a trusted schema, extensions or ATTACH, with limits on sizes and an authorizer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import Any, Protocol
from urllib.parse import quote

import apsw

from tidegate.engines.common.errors import stopped
from tidegate.engines.common.url import FileUrl
from tidegate.engines.sqlite.apsw_types import ApswConnection, ApswCursor, Rows, connect
from tidegate.engines.sqlite.cost_estimate import MAX_PATTERN_BYTES, MAX_VALUE_BYTES
from tidegate.engines.sqlite.errors import translate
from tidegate.engines.sqlite.inspect import PACE, Authorizer, CachedStatement, Mode
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ChangeKeeper
from tidegate.model.results import Column
from tidegate.model.statements import Statement
from tidegate.results.column_kinds import column_of

NAME = "tidegate_hash"


def offer_hash(connection: ApswConnection) -> None:
    """Let `tidegate_hash(key, text)` be called, in statements only and in no view or trigger. The
    judge has it on no list: only what the gate itself writes into a statement can call it."""
    connection.create_scalar_function(
        NAME, _hash, 2, deterministic=True, flags=apsw.SQLITE_DIRECTONLY
    )


def _hash(key: str, value: str | None) -> str | None:
    return None if value is None else hashlib.sha256(f"{key}{value}".encode()).hexdigest()


VECTOR_FUNCTIONS = "vec_"
"""How the names of sqlite-vec's functions begin."""


def offer_vectors(connection: ApswConnection) -> None:
    """Let the functions of sqlite-vec be called, if the package is installed; else there are none.
    Statements cannot load extensions, before or after. Raises: apsw.Error."""
    spec = find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
    try:
        path = f"{spec.submodule_search_locations[0]}/vec0"
        connection.load_extension(path, "sqlite3_vec_init")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)


class ProgressHandler:
    """One statement's brake: the event loop pulls it, the worker's thread feels it.

    SQLite's interrupt acts on a connection, so it is sent only while the connection is ours.
    """

    __slots__ = ("_connection", "_lock", "cause", "deadline", "timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._lock = Lock()
        self._connection: ApswConnection | None = None
        self.cause: str | None = None
        self.timeout_s = timeout_s
        self.deadline = monotonic() + timeout_s

    def engage(self, connection: ApswConnection) -> None:
        """The thread is about to step on `connection`. Raises: TidegateError if already pulled."""
        with self._lock:
            if self.cause is None and monotonic() >= self.deadline:
                self.cause = "time"
            if self.cause is not None:
                raise stopped(self.cause, self.timeout_s)
            self._connection = connection

    def release(self) -> None:
        """The thread no longer steps."""
        with self._lock:
            self._connection = None

    def pull(self, cause: str) -> None:
        """End the statement; only the first cause counts."""
        with self._lock:
            if self.cause is None:
                self.cause = cause
            if self._connection is not None:
                self._connection.interrupt()

    def felt(self) -> bool:
        """Whether the thread should stop now; called by SQLite every so many opcodes."""
        if self.cause is None and monotonic() >= self.deadline:
            self.cause = "time"
        return self.cause is not None


INLINE_VALUE_BYTES = 16 * 1024
"""The largest value on the event loop, so that one opcode there costs microseconds."""

INLINE_SEARCH_BYTES = 2 * 1024
"""The same where steps search values: a pattern of 64 bytes takes ten milliseconds on 16 kB."""

INLINE_PATTERN_BYTES = 64
INLINE_PROGRAM_OPCODES = 4_000
INLINE_TICK_OPCODES = PACE
INLINE_OPCODES = 12_000
INLINE_SECONDS = 0.001
"""The clock is read every `INLINE_TICK_OPCODES`: a hundred opcodes on values of the largest
size take a few milliseconds, a thousand would take fifty. Where a step searches a value, every
tenth."""

WORKER_TICK_OPCODES = 50_000
"""How often a worker reads the clock; an interrupt is felt at once, without this."""

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
    apsw.SQLITE_DBCONFIG_DQS_DML: 1,
    apsw.SQLITE_DBCONFIG_DQS_DDL: 1,
}


_QUOTED_TEXTS = (apsw.SQLITE_DBCONFIG_DQS_DML, apsw.SQLITE_DBCONFIG_DQS_DDL)


class OpenStatement(Protocol):
    """A statement that has begun (`transaction.Execution`)."""

    def close(self) -> None:
        """End it; a change whose rows were not all read is rolled back."""
        ...


class Watcher(Protocol):
    """What watches the rows that a transaction changes (`changes.ChangeCapture`)."""

    def keep(self, keeper: ChangeKeeper | None = None) -> None:
        """Give the keeper what was changed."""
        ...

    def close(self) -> None:
        """Watch no longer."""
        ...


class SqliteSession:
    """One connection. `writes` opens it for changes; `inline` makes it the event loop's own."""

    def __init__(
        self, file: FileUrl, *, writes: bool = False, inline: bool = False, in_thread: bool = True
    ) -> None:
        """Open it; only in a thread does it wait for a lock that another process holds.

        Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_BUSY.
        """
        self.authorizer = Authorizer()
        self.max_value_bytes = MAX_VALUE_BYTES
        self._progress_handler: ProgressHandler | None = None
        self._busy_s = float(file.options.get("timeout", "5")) if in_thread else 0.0
        self._opcodes = 0
        self._pace = INLINE_TICK_OPCODES
        self._until = 0.0
        self.open_statement: OpenStatement | None = None
        """What runs on this connection and has not come to its end."""
        self.closed = False
        self._writes = writes
        self.in_block = False
        """Whether a transaction over several statements is open: a statement neither begins nor
        ends one."""
        self.watcher: Watcher | None = None
        """What watches the rows that the open transaction changes."""
        self._has_vectors = False
        self._takes_quoted_texts = True
        try:
            self.connection = _connect(file, writes)
            self.connection.set_busy_handler(self._wait_for_lock)
            self._lock_down(writes)
            # Neither a budget nor a limit holds yet: the schema may be large, and its texts long.
            self.load_schema()
            self._schema_version = self._read_schema_version()
            self._set_limits(inline)
            self._set_progress_handler(inline)
        except apsw.Error as error:
            raise translate(error) from error

    def _lock_down(self, writes: bool) -> None:
        connection = self.connection
        for setting, value in _SETTINGS.items():
            connection.config(setting, value)
        for limit, value in _LIMITS.items():
            connection.limit(limit, value)
        if writes:
            connection.execute("PRAGMA foreign_keys = 1")
        else:
            connection.execute("PRAGMA query_only = 1")
        offer_hash(connection)
        connection.authorizer = self.authorizer

    def take_quoted_texts(self, *, taken: bool) -> None:
        """Whether a name in double quotes that nothing has counts as a text in what is prepared
        next. A caller's statement has none; a view or a trigger may have been made with one."""
        if taken is not self._takes_quoted_texts:
            self._takes_quoted_texts = taken
            for setting in _QUOTED_TEXTS:
                self.connection.config(setting, int(taken))

    def load_extensions(self, text: str) -> None:
        """Load the extension whose functions a text may call. Raises: apsw.Error."""
        if not self._has_vectors and VECTOR_FUNCTIONS in text.lower():
            self._has_vectors = True
            with self.mode(Mode.OWN):
                offer_vectors(self.connection)

    def load_schema(self) -> None:
        """Have SQLite read the schema if it has not, or if it has changed."""
        self.connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def _set_limits(self, inline: bool) -> None:
        connection = self.connection
        if inline:
            self.max_value_bytes = INLINE_VALUE_BYTES
            connection.limit(apsw.SQLITE_LIMIT_VDBE_OP, INLINE_PROGRAM_OPCODES)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, self.max_value_bytes)
        pattern = INLINE_PATTERN_BYTES if inline else MAX_PATTERN_BYTES
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)

    def _limit_values(self, max_value_bytes: int) -> None:
        """Limit the values of the next statement. The schema is read before, by the limit of all:
        a definition may be longer than what this statement may hold."""
        if max_value_bytes < MAX_VALUE_BYTES:
            if self.max_value_bytes != MAX_VALUE_BYTES:
                self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            with self.mode(Mode.OWN):
                self.load_schema()
        if max_value_bytes < MAX_VALUE_BYTES or self.max_value_bytes != max_value_bytes:
            self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, max_value_bytes)
        self.max_value_bytes = max_value_bytes

    def _set_progress_handler(self, inline: bool) -> None:
        connection = self.connection
        if inline:
            self._set_pace(INLINE_TICK_OPCODES)
            connection.set_busy_timeout(0)  # in place of the handler
        else:
            connection.set_progress_handler(self._worker_tick, WORKER_TICK_OPCODES)

    def _set_pace(self, pace: int) -> None:
        """Bound what can run on the event loop between two readings of the clock."""
        self._pace = pace
        self.connection.set_progress_handler(self._inline_tick, pace)
        largest = INLINE_VALUE_BYTES if pace == INLINE_TICK_OPCODES else INLINE_SEARCH_BYTES
        self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, largest)

    def is_current(self) -> bool:
        """Whether the schema that was loaded at opening is still the file's. Loads nothing."""
        self.allow_inline()
        try:
            return self._read_schema_version() == self._schema_version
        except apsw.Error:
            return True  # locked: nothing is known, and nothing to be gained

    def _read_schema_version(self) -> object:
        return self.connection.execute("PRAGMA schema_version").fetchall()[0][0]

    def _inline_tick(self) -> bool:
        self._opcodes += self._pace
        return self._opcodes > INLINE_OPCODES or perf_counter() > self._until

    def _worker_tick(self) -> bool:
        return self._progress_handler is not None and self._progress_handler.felt()

    def _wait_for_lock(self, tries: int) -> bool:
        if tries == 0:
            self._until = perf_counter() + self._busy_s
        if perf_counter() >= self._until or self._worker_tick():
            return False
        sleep(min(0.001 * (tries + 1), 0.02))
        return True

    def attempt(
        self, plan: CachedStatement, statement: Statement
    ) -> tuple[tuple[Column, ...], Rows, float] | None:
        """Run a read to its end within the inline budget: (columns, rows, seconds).

        None if it did not end well in that: then nothing is known but that a worker must run it.
        """
        authorizer = self.authorizer
        authorizer.prepared = False
        if plan.takes_quoted_texts is not self._takes_quoted_texts:
            self.take_quoted_texts(taken=plan.takes_quoted_texts)
        if plan.pace != self._pace:
            self._set_pace(plan.pace)
        started = self.allow_inline()
        try:
            self.load_extensions(statement.text)
            cursor = self.connection.execute(statement.text, statement.params)
            columns = plan.columns
            if columns is None or authorizer.prepared:
                columns = plan.columns = self.describe(cursor, statement)
            rows = cursor.fetchall()
            seconds = perf_counter() - started
            self.release_lock()
            if self.closed:
                plan.was_slow()
            return columns, rows, seconds
        except (apsw.Error, ValueError, TypeError, OverflowError):
            return None

    def allow_inline(self) -> float:
        """Give the next inline statement a new budget. Returns the time."""
        self._opcodes = 0
        now = perf_counter()
        self._until = now + INLINE_SECONDS
        return now

    def describe(self, cursor: ApswCursor, statement: Statement) -> tuple[Column, ...]:
        """The columns of a statement that has begun, as they are now."""
        try:
            found = cursor.get_description()
        except apsw.ExecutionCompleteError:
            with self.mode(Mode.OBSERVE):
                found = self.compile_statement(statement.text, statement.params).description
        return tuple([column_of(name, declared or "") for name, declared in found])

    @contextmanager
    def mode(self, mode: Mode) -> Generator[None]:
        """Let the authorizer judge by `mode` meanwhile."""
        before = self.authorizer.mode
        self.authorizer.mode = mode
        try:
            yield
        finally:
            self.authorizer.mode = before

    def compile_statement(self, text: str, params: tuple[Any, ...] | None = None) -> CompiledInfo:
        """Prepare the first statement of a text without running it. Raises: apsw.Error."""
        glances: list[CompiledInfo] = []

        def look(cursor: ApswCursor, sql: str, _: object) -> bool:
            glances.append(CompiledInfo(cursor, sql))
            return False

        self.load_extensions(text)
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
            return self.compile_statement(text, (None,) * int(count.group()))
        return glances[0]

    @contextmanager
    def foreign_keys(self) -> Generator[None]:
        """Let foreign keys count meanwhile, as they do on a connection that writes: what follows
        them is seen when a change is prepared. Raises: apsw.Error."""
        with self.mode(Mode.OWN):
            self.connection.execute("PRAGMA foreign_keys = 1", can_cache=False)
        try:
            yield
        finally:
            with self.mode(Mode.OWN):
                self.connection.execute("PRAGMA foreign_keys = 0", can_cache=False)

    @contextmanager
    def guard_own(self) -> Generator[None]:
        """For our own BEGIN, COMMIT and ROLLBACK; the time limit does not hold for these."""
        progress_handler, self._progress_handler = self._progress_handler, None
        try:
            with self.mode(Mode.OWN):
                yield
        finally:
            self._progress_handler = progress_handler

    @contextmanager
    def stepping(
        self,
        progress_handler: ProgressHandler,
        max_value_bytes: int = MAX_VALUE_BYTES,
        text: str | None = None,
        *,
        takes_quoted_texts: bool = True,
    ) -> Generator[None]:
        """Guard a stretch of work of one statement; turns exceptions into coded errors, with the
        place in `text` that SQLite points at. `takes_quoted_texts`: see `take_quoted_texts`."""
        progress_handler.engage(self.connection)
        self._progress_handler = progress_handler
        self.authorizer.refused = None
        try:
            self.take_quoted_texts(taken=takes_quoted_texts)
            self._limit_values(max_value_bytes)
            yield
        except TidegateError:
            raise
        except (apsw.Error, ValueError, TypeError, OverflowError, MemoryError) as error:
            if progress_handler.cause is not None:
                raise stopped(progress_handler.cause, progress_handler.timeout_s) from error
            refused = self.authorizer.refused
            raise translate(
                error, refused=refused, max_value_bytes=max_value_bytes, text=text
            ) from error
        finally:
            self._progress_handler = None
            progress_handler.release()

    def enter_block(self, *, writes: bool) -> None:
        """Begin a transaction over several statements, in which only a change may write.

        Raises: apsw.Error.
        """
        with self.guard_own():
            self.connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN", can_cache=False)
            self.in_block = True
            if writes:
                self.connection.execute("PRAGMA query_only = 1", can_cache=False)
            self.load_schema()  # the first read takes the snapshot

    def execute_in_block(self, text: str) -> None:
        """Run a statement of ours about savepoints. Raises: apsw.Error, TidegateError."""
        self.check_block()
        with self.guard_own():
            self.connection.execute(text, can_cache=False)

    def check_block(self) -> None:
        """Raises: TidegateError if SQLite has rolled the transaction back by itself, as when a
        change in it was interrupted."""
        if self.connection.get_autocommit():
            raise TidegateError(
                Code.SQL_FAILED,
                "The database has rolled the transaction back.",
                hint="Begin it again.",
                details={"sqlstate": "40000"},
            )

    def allow_changes(self, *, allowed: bool) -> None:
        """Let the next statement of a block write, or no statement."""
        with self.guard_own():
            value = 0 if allowed else 1
            self.connection.execute(f"PRAGMA query_only = {value}", can_cache=False)

    def keep_block(self, keeper: ChangeKeeper) -> None:
        """Give the keeper what the transaction has changed. Raises: apsw.Error, TidegateError."""
        self.check_block()
        if self.watcher is not None:
            self.watcher.keep(keeper)

    def commit_block(self) -> None:
        """Keep the changes of the transaction. Raises: apsw.Error, TidegateError."""
        self.check_block()
        with self.guard_own():
            self.connection.execute("COMMIT", can_cache=False)

    def leave_block(self) -> None:
        """End the transaction, if it is open, by undoing it. Raises: apsw.Error."""
        self.close_statement()
        watcher, self.watcher = self.watcher, None
        if watcher is not None:
            watcher.close()
        with self.guard_own():
            if not self.connection.get_autocommit():
                self.connection.execute("ROLLBACK", can_cache=False)
            if self._writes:
                self.connection.execute("PRAGMA query_only = 0", can_cache=False)
        self.in_block = False

    def release_lock(self) -> None:
        """Close the connection if a read that has ended left its lock, as FTS5 may in a file with
        a rollback journal: it keeps a blob open, and no other process could write."""
        connection = self.connection
        if connection.get_autocommit() and connection.txn_state("main") != apsw.SQLITE_TXN_NONE:
            self.close()

    def close_statement(self) -> None:
        """End the statement that is open, if one is."""
        statement, self.open_statement = self.open_statement, None
        if statement is not None:
            statement.close()

    def close(self) -> None:
        """Close the connection; a change that was not committed is rolled back."""
        self.closed = True
        self.connection.close(True)


class CompiledInfo:
    """What SQLite shows about a prepared statement. `real` is False for an empty one."""

    __slots__ = ("description", "explains", "parameters", "readonly", "real", "sql")

    def __init__(self, cursor: ApswCursor, sql: str) -> None:
        self.sql = sql
        self.real = cursor.has_vdbe
        self.readonly = cursor.is_readonly
        self.explains = cursor.is_explain
        self.parameters = cursor.bindings_count
        self.description = cursor.get_description()


def _connect(file: FileUrl, writes: bool) -> ApswConnection:
    if file.path is None:
        name = f"file:/{file.options['memory']}?vfs=memdb"
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        return connect(name, flags)
    flags = apsw.SQLITE_OPEN_READWRITE if writes else apsw.SQLITE_OPEN_READONLY
    if file.options.get("immutable") == "1":
        name = f"file:{quote(file.path)}?immutable=1"
        return connect(name, flags | apsw.SQLITE_OPEN_URI)
    return connect(file.path, flags)
