"""Streams rows from the server to the caller in chunks; never holds the whole result."""

from __future__ import annotations

import re
from typing import Any, Protocol

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.errors import lost, stopped
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.postgres.command_protocol import FAILED
from tidegate.engines.postgres.connection import COMMIT, PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.row_counts import RowCounter
from tidegate.engines.postgres.types import Rows
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column

CHUNKS = (ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE)
"""States of a result after which more of the statement's follow."""


class ChunkReader(Protocol):
    """Makes rows of libpq's results."""

    def read(self, result: PGresult) -> Rows: ...

    def coerced(self, rows: Rows) -> list[tuple[Any, ...]]: ...


class PostgresCursor:
    """A statement that has begun. Its session is free again as soon as the last row is read."""

    __slots__ = (
        "_commits",
        "_next",
        "_reader",
        "_ready",
        "_running",
        "_seen",
        "_text",
        "affected",
        "columns",
        "counted",
        "counter",
        "tag",
    )

    def __init__(
        self,
        running: RunningStatement[PostgresSession],
        first: PGresult,
        columns: tuple[Column, ...],
        reader: ChunkReader,
        text: str = "",
        *,
        commits: bool = True,
    ) -> None:
        """`commits`: a change is kept when it has ended."""
        self._commits = commits
        self._text = text
        self.tag = ""
        """The server's own tag of a statement that gave no rows."""
        self.columns = columns
        self.affected = 0
        self.counter: RowCounter | None = None
        """Holds a change to the number of rows that it may be about."""
        self.counted = 0
        self._running: RunningStatement[PostgresSession] | None = running
        self._reader = reader
        self._ready: Rows = reader.read(first) if first.status in CHUNKS else []
        self._next = 0
        self._seen = len(self._ready)

    async def fetch(self, max_rows: int) -> list[Row]:
        return list(await self._gathered(max_rows))

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            if self._running is None:
                sink.write(self._reader.coerced(self._taken(wanted)))
            else:
                sink.write(await self._gathered(wanted))

    async def close(self) -> None:
        self._ready, self._next = [], 0
        running, self._running = self._running, None
        if running is not None:
            await running.close()

    async def _gathered(self, max_rows: int) -> Rows:
        running = self._running
        if running is not None and running.cause is not None and not running.writes:
            # The server may have sent all rows before the cancellation reached it.
            raise stopped(running.cause, running.limit_s)
        rows = self._taken(max_rows)
        while len(rows) < max_rows and await self._more():
            rows += self._taken(max_rows - len(rows))
        return self._reader.coerced(rows)

    def _taken(self, max_rows: int) -> Rows:
        first, self._next = self._next, self._next + max_rows
        if first == 0 and len(self._ready) <= max_rows:
            rows, self._ready, self._next = self._ready, [], 0
            return rows
        return self._ready[first : self._next]

    async def _more(self) -> bool:
        """Read the next chunk; False at the end. Raises: TidegateError."""
        running = self._running
        if running is None:
            return False
        async with running as session:
            result = await session.line.result()
            if result is None:
                raise lost()
            if result.status in CHUNKS:
                self._ready, self._next = self._reader.read(result), 0
                self._seen += len(self._ready)
                return True
            await self.finish(result)
        return False

    def look_for_end(self) -> None:
        """Give the session of a short read back before the caller asks for more."""
        running = self._running
        if running is None or running.writes:
            return
        result = running.connection().line.ready_result()
        if result is None:
            return
        if result.status in CHUNKS:
            rows = self._reader.read(result)
            self._ready += rows
            self._seen += len(rows)
        else:
            _check(result)
            self._running = None
            running.release()

    async def finish(self, last: PGresult) -> None:
        """The statement has ended: commit a change, count it, give the session back."""
        running = self._running
        if running is None:
            return
        _check(last)
        if running.writes:
            if last.status == ExecStatus.COMMAND_OK:
                self.tag = (last.command_status or b"").decode()
            if not last.command_status:
                # After chunks of rows the server sends no count: RETURNING gives each row once.
                self.affected = 0 if _SELECTS.match(self._text) else self._seen
            elif not _is_read(last):
                self.affected = last.command_tuples or 0
            if self.counter is not None:
                self.counted = await self.counter.end(
                    running.connection(), self.affected, deferred=self._commits
                )
            if self._commits:
                await self._commit(running)
        self._running = None
        running.release()

    async def _commit(self, running: RunningStatement[PostgresSession]) -> None:
        running.committing = True
        committed = await running.connection().end(COMMIT)
        if committed.status in FAILED or committed.command_status != COMMIT:
            raise translate(committed)


_SELECTS = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|values|table|show|fetch|call|explain)\b",
    re.IGNORECASE | re.DOTALL,
)
"""What returns rows that it has not changed."""


def _check(last: PGresult) -> None:
    """Raises: TidegateError if a statement has not come to a good end."""
    if last.status in FAILED:
        raise translate(last)
    if last.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        raise _unfit(last)


def _is_read(last: PGresult) -> bool:
    return (last.command_status or b"").startswith((b"SELECT", b"SHOW", b"FETCH"))


def _unfit(result: PGresult) -> TidegateError:
    if result.status == ExecStatus.EMPTY_QUERY:
        return TidegateError(Code.SQL_EMPTY, "The text holds no statement.")
    return TidegateError(
        Code.UNSUPPORTED,
        "COPY to or from the client is not supported.",
        hint="Use SELECT to read and INSERT to write.",
    )
