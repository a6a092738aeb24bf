"""Decides how a running statement is told to end: by time, by its caller, or because we close."""

from __future__ import annotations

from threading import Lock
from time import monotonic

from tidegate.engines.faults import stopped
from tidegate.engines.sqlite.driver import Connection


class Brake:
    """One statement's brake: the event loop pulls it, the worker's thread feels it.

    SQLite's interrupt acts on a connection, so it is sent only while the connection is ours.
    """

    __slots__ = ("_connection", "_lock", "cause", "deadline", "timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._lock = Lock()
        self._connection: Connection | None = None
        self.cause: str | None = None
        self.timeout_s = timeout_s
        self.deadline = monotonic() + timeout_s

    def engage(self, connection: Connection) -> None:
        """The thread is about to step on `connection`. Raises: GateError if already pulled."""
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
