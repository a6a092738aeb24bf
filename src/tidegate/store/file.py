"""A connection to the state file for one area of it, opened when it is first needed."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Literal

import apsw

from tidegate.store.database import connect, failures, transaction


class StateFile:
    """The state file at `path`, which a store has prepared. Safe to use from any thread."""

    def __init__(self, path: Path, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> None:
        self._path = path
        self._synchronous: Literal["FULL", "NORMAL"] = synchronous
        self._lock = Lock()
        self._connection: apsw.Connection | None = None

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for statements that only read: nobody waits for the write lock.

        Raises: GateError STATE_FAILED.
        """
        with self._lock, failures():
            if self._connection is None:
                self._connection = connect(self._path, self._synchronous)
                self._connection.execute("PRAGMA foreign_keys = ON")
            yield self._connection

    @contextmanager
    def changing(self) -> Generator[apsw.Connection, None, None]:
        """A transaction: all of it or nothing. Raises: GateError STATE_FAILED."""
        with self.reading() as connection, transaction(connection):
            yield connection

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
