"""The connection for sources, tokens and budgets, and the snapshot of how often they changed.

Writes are synced before they return. A read of the snapshot takes no lock and asks SQLite at most
every `_LOOK_S`: every call asks twice, whose the token is and which sources there are.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Literal, cast
from weakref import WeakSet

import apsw

from tidegate.errors import TidegateError
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.sqlite.connection import (
    connect,
    failed,
    failures,
    make_room,
    reserve_room,
    transaction,
)

Area = Literal["sources", "tokens", "budgets"]

_LOOK_S = 0.01
"""For how long a look counts: far below `api.MAX_AGE_S`, because a look costs microseconds."""

_OPEN: WeakSet[RightsConnection] = WeakSet()
"""Those of this process. What it changes itself counts at once, through whichever it changes it."""


class RightsConnection:
    """The state file at `path`, opened for sources, tokens and budgets. Safe to use from any
    thread."""

    def __init__(self, path: Path, reserve: DiskReserve | None = None) -> None:
        """Raises: apsw.Error, OSError."""
        self.path = path.absolute()
        self._reserve = reserve
        self._lock = Lock()
        self._connection = connect(path)
        try:
            reserve_room(self._connection, path)
        except BaseException:
            self._connection.close()
            raise
        self._version = -1
        self._looked_at = float("-inf")
        self._generations: dict[str, int] = {}
        self._failure: TidegateError | None = None
        _OPEN.add(self)

    def generation(self, area: Area) -> int:
        """How often the area changed. Raises: TidegateError STATE_FAILED."""
        if monotonic() - self._looked_at >= _LOOK_S:
            self.look()
        return self._generations[area]

    def look(self) -> None:
        """See whether another process changed something. Raises: TidegateError STATE_FAILED."""
        # Before the look: what changes during it must be seen by the next one.
        now = monotonic()
        with self._lock:
            try:
                version: int = self._connection.execute("PRAGMA data_version").get
                if version != self._version:
                    rows = self._connection.execute("SELECT area, value FROM generations")
                    self._generations = dict(cast("list[tuple[str, int]]", rows.fetchall()))
                    self._version = version
            except apsw.Error as error:
                raise failed(error) from error
            self._looked_at = now

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for statements that only read. Raises: TidegateError STATE_FAILED."""
        with self._lock, failures():
            yield self._connection

    @contextmanager
    def changing(self, *, uses_reserve: bool = True) -> Generator[apsw.Connection, None, None]:
        """A transaction, after which everyone in this process looks again. Only what adds a source
        or a token leaves the reserve alone.

        Raises: TidegateError STATE_FAILED.
        """
        try:
            with self.reading() as connection:
                make_room(connection, self.path, self._reserve if uses_reserve else None)
                with transaction(connection):
                    yield connection
        finally:
            # Our own changes do not count in `data_version`.
            self._version = -1
            for one in list(_OPEN):
                if one.path == self.path:
                    one._looked_at = float("-inf")

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            self._connection.close()
            self._looked_at = float("-inf")
