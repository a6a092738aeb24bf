"""Runs cheap reads on the event loop itself, on a connection of their own.

A hop to a thread costs ten times what a point query costs. The executor tries a statement within
a budget of about a millisecond, and gives no answer to a statement that does not succeed in it.
`docs/explanation/decisions/0003-sqlite-inline-reads.md` has the figures.
"""

from __future__ import annotations

import apsw

from tidegate.engines.common.pool import Pool
from tidegate.engines.common.url import FileUrl
from tidegate.engines.sqlite import catalog
from tidegate.engines.sqlite.connection import SqliteSession
from tidegate.engines.sqlite.inspect import CachedStatement, StatementCache, prepare
from tidegate.engines.sqlite.worker_thread import WorkerThread

INLINE_TEXT = 2_048
INLINE_TERMS = 10_000
RENEW_S = 10.0
"""How long reopening the connection may wait for a worker, in seconds."""


class InlineExecutor:
    """The connection for inline reads, used on the event loop only. `session` is None while it is
    reopened (`renewing`), and if it could not be opened; a caller that finds it closed reopens
    it."""

    def __init__(self, file: FileUrl, session: SqliteSession, plans: StatementCache) -> None:
        self._file = file
        self.session: SqliteSession | None = session
        self._plans = plans
        self.renewing = False
        self._closed = False

    def prepare(self, text: str) -> CachedStatement | None:
        """What a short text is; None for others, and if that did not go well."""
        if self.session is None or not _is_short(text):
            return None
        self.session.allow_inline()
        try:
            return prepare(self.session, text)
        except (apsw.Error, ValueError, TypeError, OverflowError):
            return None

    def schema_version(self, identity: str) -> str | None:
        """The catalog's stamp; None where a worker can wait for it."""
        if self.session is None:
            return None
        self.session.allow_inline()
        try:
            return catalog.schema_version(self.session, identity)
        except apsw.Error:
            return None  # locked or busy

    async def renew(self, readers: Pool[WorkerThread]) -> None:
        """Reopen the connection, off the event loop, if its schema is out of date.

        To load a large schema takes longer than the inline budget: inline it would never succeed.
        """
        session = self.session
        if session is None or session.is_current():
            return
        self.session, self.renewing = None, True
        session.close()
        try:
            worker = await readers.take(RENEW_S)
            try:
                fresh = await worker.do(lambda _: SqliteSession(self._file, inline=True))
            finally:
                readers.give(worker)
        finally:
            self.renewing = False
        if self._closed or self.session is not None:
            fresh.close()
        else:
            self._plans.clear()
            self.session = fresh

    def reopen(self) -> None:
        """Reopen the connection, on another file at the same path. Raises: TidegateError
        SOURCE_UNREACHABLE."""
        if self.session is not None:
            self.session.close()
            self.session = None
        self.session = SqliteSession(self._file, inline=True, in_thread=False)

    def close(self) -> None:
        """Close it permanently."""
        self._closed = True
        if self.session is not None:
            self.session.close()
            self.session = None


def _is_short(text: str) -> bool:
    """Whether preparing a text takes little time, whatever it says. SQLite writes out what nested
    queries repeat of each other, so its work can grow with the power of their number."""
    if len(text) > INLINE_TEXT:
        return False
    queries = text.lower().count("select") or 1
    return (len(text) / (2 * queries)) ** queries <= INLINE_TERMS
