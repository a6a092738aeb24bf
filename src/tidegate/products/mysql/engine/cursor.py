"""Streams rows from the server to the caller as they arrive; never holds the whole result."""

from __future__ import annotations

from typing import Any

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.errors import lost
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.products.mysql.engine.command_protocol import Done, Fields
from tidegate.products.mysql.engine.connection import COMMIT, ROLLBACK, MysqlSession
from tidegate.products.mysql.engine.packets import Rows
from tidegate.products.mysql.engine.row_counts import RowCounter
from tidegate.products.mysql.engine.types import read_fields, single, single_places


class MysqlCursor:
    """A statement that has begun. Its session is free again as soon as the last row is read.

    `keeps`: whether a change is committed at its end; an explanation is not.
    """

    __slots__ = (
        "_binary",
        "_keeps",
        "_next",
        "_ready",
        "_running",
        "_seen",
        "_singles",
        "_specs",
        "affected",
        "columns",
        "counted",
        "counter",
    )

    def __init__(
        self,
        running: RunningStatement[MysqlSession],
        head: Done | Fields,
        *,
        binary: bool,
        keeps: bool = True,
    ) -> None:
        self.affected = 0
        self.counter: RowCounter | None = None
        """Holds a change to the number of rows that it may be about."""
        self.counted = 0
        self._running: RunningStatement[MysqlSession] | None = running
        self._keeps = keeps
        self._binary = binary
        self._ready: Rows = []
        self._next = 0
        self._seen = 0
        self._singles: tuple[int, ...] = ()
        self.columns: tuple[Column, ...] = ()
        if isinstance(head, Fields):
            self.columns, by_text, by_bytes = read_fields(head.definitions)
            self._specs = by_bytes if binary else by_text
            if binary:
                self._singles = single_places(head.definitions)

    async def begin(self, head: Done | Fields) -> None:
        """End what has no rows; check whether a short result has arrived as a whole."""
        if isinstance(head, Done):
            await self._finish()
        elif self._running is not None and not self._running.writes and await self._more():
            first = self._ready
            if self._running.connection().line.unread and await self._more():
                self._ready = first + self._ready

    async def fetch(self, max_rows: int) -> list[Row]:
        rows: list[Row] = list(self._taken(max_rows))
        while len(rows) < max_rows and await self._more():
            rows += self._taken(max_rows - len(rows))
        self._pause()
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            rows: Any = self._taken(wanted)
            while len(rows) < wanted and await self._more():
                rows += self._taken(wanted - len(rows))
            sink.write(rows)
        self._pause()

    async def close(self) -> None:
        self._ready, self._next = [], 0
        running, self._running = self._running, None
        if running is not None:
            await running.close()

    def _taken(self, max_rows: int) -> Rows:
        first, self._next = self._next, self._next + max_rows
        if first == 0 and len(self._ready) <= max_rows:
            rows, self._ready, self._next = self._ready, [], 0
            return rows
        return self._ready[first : self._next]

    def _pause(self) -> None:
        if self._running is not None and self._running.held is not None:
            self._running.held.line.pause()

    async def _more(self) -> bool:
        """Take in the rows that come next; False at the end. Raises: TidegateError."""
        running = self._running
        if running is None:
            return False
        async with running as session:
            try:
                rows = await session.line.rows(self._specs, binary=self._binary)
            except UnicodeDecodeError as error:
                raise not_utf8() from error
            except (IndexError, ValueError) as error:
                raise lost() from error
            if rows is None:
                await self._finish()
                return False
            self._ready, self._next = self._coerced(rows), 0
            self._seen += len(rows)
            return True

    def _coerced(self, rows: Rows) -> Rows:
        if not self._singles:
            return rows
        changed = [list(row) for row in rows]
        for row in changed:
            for place in self._singles:
                row[place] = single(row[place])
        return [tuple(row) for row in changed]

    async def _finish(self) -> None:
        """The statement has ended: commit a change, count it, give the session back."""
        running = self._running
        if running is None:
            return
        session = running.connection()
        if running.writes:
            # With RETURNING the server shows no count, and returns each row that it changed.
            affected = self._seen if self.columns else session.line.affected
            if self.counter is not None:
                await session.line.settle()
                self.counted = await self.counter.end(session, affected, returns=bool(self.columns))
            if not session.in_block:
                running.committing = self._keeps
                await session.end(COMMIT if self._keeps else ROLLBACK)
            self.affected = affected if self._keeps else 0
        self._running = None
        running.release()


def not_utf8() -> TidegateError:
    """The error of a text that is not what it should be."""
    return TidegateError(
        Code.SQL_FAILED,
        "A text value is not valid UTF-8.",
        hint="Select it with HEX(column) or CAST(column AS BINARY).",
    )
