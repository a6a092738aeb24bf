"""Decides how rows travel from the server to their caller: chunk by chunk, never held whole."""

from __future__ import annotations

import re

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidegate.engines.api import Row, Sink
from tidegate.engines.errand import Errand
from tidegate.engines.faults import lost, stopped
from tidegate.engines.postgres.faults import translate
from tidegate.engines.postgres.line import FAILED
from tidegate.engines.postgres.session import COMMIT, Session
from tidegate.engines.postgres.values import Reader, Rows
from tidegate.errors import Code, GateError
from tidegate.pages import Column

_CHUNKS = (ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE)


class PostgresCursor:
    """A statement that has begun. Its session is free again as soon as the last row is read."""

    __slots__ = (
        "_changes",
        "_errand",
        "_next",
        "_reader",
        "_ready",
        "_seen",
        "affected",
        "columns",
    )

    def __init__(
        self,
        errand: Errand[Session],
        first: PGresult,
        columns: tuple[Column, ...],
        reader: Reader,
        text: str = "",
    ) -> None:
        self._changes = _SELECTS.match(text) is None
        self.columns = columns
        self.affected = 0
        self._errand: Errand[Session] | None = errand
        self._reader = reader
        self._ready: Rows = reader.read(first) if first.status in _CHUNKS else []
        self._next = 0
        self._seen = len(self._ready)

    async def begin(self, first: PGresult) -> None:
        """End what has ended with its first result already, so that the session is free again."""
        if first.status not in _CHUNKS:
            await self._finish(first)
        elif not self._writes:
            await self._look_for_end()

    async def fetch(self, max_rows: int) -> list[Row]:
        return list(await self._gathered(max_rows))

    async def pour(self, sink: Sink) -> None:
        while wanted := sink.wanted:
            sink.add(await self._gathered(wanted))

    async def close(self) -> None:
        self._ready, self._next = [], 0
        errand, self._errand = self._errand, None
        if errand is not None:
            await errand.close()

    async def _gathered(self, max_rows: int) -> Rows:
        errand = self._errand
        if errand is not None and errand.cause is not None and not errand.writes:
            # The server may have sent everything before it heard that nobody wants it.
            raise stopped(errand.cause, errand.timeout_s)
        rows = self._taken(max_rows)
        while len(rows) < max_rows and await self._more():
            rows += self._taken(max_rows - len(rows))
        return self._reader.mended(rows)

    @property
    def _writes(self) -> bool:
        return self._errand is not None and self._errand.writes

    def _taken(self, max_rows: int) -> Rows:
        first, self._next = self._next, self._next + max_rows
        if first == 0 and len(self._ready) <= max_rows:
            rows, self._ready, self._next = self._ready, [], 0
            return rows
        return self._ready[first : self._next]

    async def _more(self) -> bool:
        """Read the next chunk; False at the end. Raises: GateError."""
        errand = self._errand
        if errand is None:
            return False
        async with errand:
            result = await errand.held().line.result()
            if result is None:
                raise lost()
            if result.status in _CHUNKS:
                self._ready, self._next = self._reader.read(result), 0
                self._seen += len(self._ready)
                return True
            await self._finish(result)
        return False

    async def _look_for_end(self) -> None:
        """A short result has ended before anybody asks for more."""
        errand = self._errand
        if errand is None:
            return
        result = errand.held().line.ready_result()
        if result is None:
            return
        if result.status in _CHUNKS:
            rows = self._reader.read(result)
            self._ready += rows
            self._seen += len(rows)
        else:
            await self._finish(result)

    async def _finish(self, last: PGresult) -> None:
        """The statement has ended: commit a change, count it, give the session back."""
        errand = self._errand
        if errand is None:
            return
        if last.status in FAILED:
            raise translate(last)
        if last.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise _unfit(last)
        if errand.writes:
            session = errand.held()
            committed = await session.end(COMMIT)
            if committed.status in FAILED or committed.command_status != COMMIT:
                raise translate(committed)
            if not last.command_status:
                # Behind chunks of rows the count is not told: RETURNING gives each row once.
                self.affected = self._seen if self._changes else 0
            elif not _is_read(last):
                self.affected = last.command_tuples or 0
        self._errand = None
        errand.done()


_SELECTS = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|values|table|show|fetch|call)\b",
    re.IGNORECASE | re.DOTALL,
)
"""What returns rows that it has not changed."""


def _is_read(last: PGresult) -> bool:
    return (last.command_status or b"").startswith((b"SELECT", b"SHOW", b"FETCH"))


def _unfit(result: PGresult) -> GateError:
    if result.status == ExecStatus.EMPTY_QUERY:
        return GateError(Code.SQL_EMPTY, "The text holds no statement.")
    return GateError(
        Code.UNSUPPORTED,
        "COPY to or from the client is not offered here.",
        hint="Use SELECT to read and INSERT to write.",
    )
