"""A connection to the state file for one area of it, opened when it is first needed."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import apsw

from tidegate.errors import Code, GateError
from tidegate.store.database import connect, transaction


class StateFile:
    """The state file at `path`, which a store has prepared. Safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: apsw.Connection | None = None

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for statements that only read: nobody waits for the write lock.

        Raises: GateError STATE_FAILED.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = connect(self._path)
                    self._connection.execute("PRAGMA foreign_keys = ON")
                yield self._connection
            except (apsw.Error, OSError) as error:
                raise GateError(Code.STATE_FAILED, f"The state store failed: {error}.") from error

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
