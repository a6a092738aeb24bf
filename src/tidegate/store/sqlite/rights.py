"""The connections for rights, with which everyone in this process learns what was changed.

Sources, tokens and budgets have a connection that must not wait for others, and whose writes are
synced before they return. The counters of what has changed (`store/versions.py`) are read by a
connection of their own, which waits for no writer.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import sleep
from typing import cast
from weakref import WeakSet

import apsw

from tidegate.errors import Code, TidegateError
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.sqlite.connection import (
    Settle,
    StateConnection,
    check_here,
    connect,
    failures,
    make_room,
    reserve_room,
    settled,
)
from tidegate.store.versions import Topic, Versions

_LOOK_S = 0.05
"""Between two reads of a server, which take microseconds while nothing has changed."""
_SETTLE_S = 0.08
"""So long a command waits after a change of rights: servers have seen it when it says so."""

_OPEN: WeakSet[SqliteVersions] = WeakSet()
"""Those of this process. What it changes itself counts at once, through whichever it changes it."""


class SqliteVersions:
    """The counters in the state file at `path`, and what this process knows of them."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.known = Versions(self.read, _LOOK_S)
        self._file = StateConnection(path)
        self._data_version = -1
        self._read: dict[Topic, int] = {}
        found = self.path.stat()
        self._identity = found.st_dev, found.st_ino
        _OPEN.add(self)

    def read(self) -> Mapping[Topic, int]:
        """The counters as they are now. Raises: TidegateError STATE_FAILED."""
        with self._file.reading() as connection:
            self._check_identity()
            data_version: int = connection.execute("PRAGMA data_version").get
            if data_version != self._data_version:
                check_here(connection)
                self._read = read_versions(connection)
                self._data_version = data_version
            return self._read

    def learn(self, found: Mapping[Topic, int]) -> None:
        """Tell all of this process who have the same file open what it has changed."""
        for each in list(_OPEN):
            if each.path == self.path:
                each.known.learn(found)

    def wait_for_servers(self) -> None:
        """After a change by a command, wait until the servers on this file have seen it."""
        if not self.known.followed and any((self.path.parent / "servers").glob("*.json")):
            sleep(_SETTLE_S)

    def close(self) -> None:
        """Read no more. Safe to call twice."""
        self.known.close()
        self._file.close()

    def _check_identity(self) -> None:
        """Raises: TidegateError STATE_FAILED if the file at the path is not the open one: what
        other processes change then is not seen here. OSError if there is none."""
        found = self.path.stat()
        if (found.st_dev, found.st_ino) != self._identity:
            raise TidegateError(
                Code.STATE_FAILED,
                "The state database was replaced by another file.",
                hint="Restart the server.",
            )


def read_versions(connection: apsw.Connection) -> dict[Topic, int]:
    """The counters, also within a transaction that changes them."""
    rows = connection.execute("SELECT area, value FROM generations")
    return dict(cast("list[tuple[Topic, int]]", rows.fetchall()))


class RightsConnection:
    """The state file at `path`, opened for sources, tokens and budgets. Safe to use from any
    thread."""

    def __init__(
        self, path: Path, versions: SqliteVersions, reserve: DiskReserve | None = None
    ) -> None:
        """Raises: apsw.Error, OSError."""
        self._path = path
        self._reserve = reserve
        self._lock = Lock()
        self.versions = versions
        self.settle: Settle = lambda _connection, _is_kept: None
        self._connection = connect(path)
        try:
            reserve_room(self._connection, path)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for statements that only read. Raises: TidegateError STATE_FAILED."""
        with self._lock, failures():
            yield self._connection

    @contextmanager
    def changing(self, *, uses_reserve: bool = True) -> Generator[apsw.Connection, None, None]:
        """A transaction, which everyone in this process knows of afterwards. Only what adds a
        source or a token leaves the reserve alone.

        Raises: TidegateError STATE_FAILED.
        """
        with self.reading() as connection:
            make_room(connection, self._path, self._reserve if uses_reserve else None)
            with settled(connection, self.settle):
                yield connection
                found = read_versions(connection)
        self.versions.learn(found)
        self.versions.wait_for_servers()

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            self._connection.close()


class RequestsConnection(StateConnection):
    """A connection for what people ask and answer, which everyone in this process knows of after
    each change."""

    def __init__(self, path: Path, versions: SqliteVersions, reserve: DiskReserve) -> None:
        super().__init__(path, reserve=reserve)
        self._versions = versions

    @contextmanager
    def changing(self, *, uses_reserve: bool = False) -> Generator[apsw.Connection, None, None]:
        with super().changing(uses_reserve=uses_reserve) as connection:
            yield connection
            found = read_versions(connection)
        self._versions.learn(found)
