"""The worker's database handle: locked to the one file, read-only unless a statement may write.

Decides what DuckDB may reach at all: no other file, no network, no extension, no setting, a bounded
memory. Every statement has a cursor of its own, so that it leaves no temporary table or variable.
"""

from __future__ import annotations

import time
from threading import Lock

import duckdb

from tidegate.errors import Code, TidegateError
from tidegate.products.duckdb.engine.catalog import SchemaFacts
from tidegate.products.duckdb.engine.messages import Setup
from tidegate.products.duckdb.engine.types import ExactQuery
from tidegate.system import limits

LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}

SPARE_BYTES = 268_435_456
"""What the process may take in addition to the memory that DuckDB counts, and as much again as
it."""

RETRY_S = 0.05

ParameterKind = tuple[type[object], int]
"""The type of a parameter, and an integer's sign and size."""
QueryKey = tuple[str, str | None, tuple[ParameterKind, ...]]


class DuckdbSession:
    """One database, opened when it is needed and in the way that is needed."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._handle: duckdb.DuckDBPyConnection | None = None
        self._version: str = ""
        self._writes = False
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._guard = Lock()
        self._interrupted = False
        self.exact_queries: dict[QueryKey, ExactQuery] = {}
        """What is known of texts, while the file stays as it is."""
        self.plain_queries: set[QueryKey] = set()
        """Fingerprints of texts of which the driver read one as it is, by the same rule."""
        self._facts = SchemaFacts()

    @property
    def facts(self) -> SchemaFacts:
        """What is known of the schema, while the file stays as it is; of a database in memory,
        which statements change, nothing."""
        return SchemaFacts() if self.in_memory else self._facts

    def forget(self) -> None:
        """Forget what is known of the file."""
        self.exact_queries.clear()
        self.plain_queries.clear()
        self._facts = SchemaFacts()

    @property
    def in_memory(self) -> bool:
        return self._setup.path is None

    def cursor(self, version: str, *, writes: bool = False) -> duckdb.DuckDBPyConnection:
        """A new cursor on the file as of `version`, in a transaction.

        Raises: duckdb.Error; TidegateError SOURCE_BUSY if the file is locked for too long.
        """
        with self._guard:
            self._interrupted = False
        handle = self._opened(version, writes)
        cursor = handle.cursor()
        if writes:
            cursor.execute("BEGIN TRANSACTION")
        elif self._setup.path is None:  # a file is opened read-only
            cursor.execute("BEGIN TRANSACTION READ ONLY")
        with self._guard:
            self._cursor = cursor
        return cursor

    def drop(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Close a cursor; what it has not committed is undone. A file is not kept for writing."""
        with self._guard:
            self._cursor = None
        cursor.close()
        if self._writes:
            self.release()

    def release(self) -> None:
        """Let go of the file, so that another process may write it. A database in memory stays."""
        if self._handle is not None and not self.in_memory:
            self.forget()
            self._handle.close()
            self._handle = None

    def interrupt(self) -> None:
        """End what runs. Called in another thread."""
        with self._guard:
            self._interrupted = True
            if self._cursor is not None:
                self._cursor.interrupt()

    def _opened(self, version: str, writes: bool) -> duckdb.DuckDBPyConnection:
        if self._handle is not None:
            if self.in_memory or (version == self._version and writes == self._writes):
                return self._handle
            self.release()
        give_up = time.monotonic() + self._setup.lock_wait_s
        while True:
            try:
                handle = self._connect(writes)
            except duckdb.IOException as error:
                if "lock" not in str(error) or time.monotonic() > give_up:
                    raise
                if self._interrupted:
                    raise TidegateError(
                        Code.CALL_CANCELLED,
                        "The statement was stopped while it waited for a lock of the file.",
                    ) from error
                time.sleep(RETRY_S)
                continue
            break
        self._handle, self._version, self._writes = handle, version, writes
        return handle

    def _connect(self, writes: bool) -> duckdb.DuckDBPyConnection:
        setup = self._setup
        config = config_of(setup)
        if setup.path is None:
            handle = duckdb.connect(":memory:", config=config)
        else:
            handle = duckdb.connect(setup.path, read_only=not writes, config=config)
        handle.execute("SET GLOBAL TimeZone = 'UTC'")
        handle.execute("SET GLOBAL lock_configuration = true")
        return handle


_AS_WRITTEN = {
    "disabled_optimizers": "join_order,build_side_probe_side,statistics_propagation"
    ",compressed_materialization",
    "perfect_ht_threshold": "0",
}
"""Joins run in the order that they are written in, and nothing follows from the lowest and highest
values of columns or from how many there are: where something is hidden, these count it."""


def config_of(setup: Setup) -> dict[str, str | bool | int | float | list[str]]:
    """The settings that a database is opened with."""
    limits = {"memory_limit": f"{setup.memory_bytes}B", "threads": str(setup.threads)}
    return {**LOCKED, **limits, **(_AS_WRITTEN if setup.plans_as_written else {})}


def bound_memory(setup: Setup) -> None:
    """Bound this process: DuckDB does not count long strings, the operating system does."""
    limits.bound_memory(2 * setup.memory_bytes + SPARE_BYTES)
