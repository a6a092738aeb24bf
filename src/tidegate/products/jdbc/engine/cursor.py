"""Streams rows from a JDBC driver to the caller."""

from __future__ import annotations

from typing import Any

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.model.results import Column
from tidegate.products.jdbc.engine.connection import JdbcConnection
from tidegate.products.jdbc.engine.messages import JdbcColumn, Portion, Started
from tidegate.products.jdbc.engine.types import column_of, rows_of

READ_AHEAD = 2_048
"""Rows that a request for more brings at least, unless they are large, or belong to a change."""


class JdbcCursor:
    """A statement in the JVM, whose connection is free as soon as the last row is read."""

    def __init__(self, running: RunningStatement[JdbcConnection]) -> None:
        self.columns: tuple[Column, ...] = ()
        self.jdbc_columns: list[JdbcColumn] = []
        self.affected = 0
        self._running = running
        self._ready: list[Row] = []
        self._ended = False

    async def begin(self, body: dict[str, Any]) -> None:
        """Start the statement. It has ended if this raises."""
        async with self._running as connection:
            started = await connection.ask("run", body, Started)
            self.jdbc_columns = started.columns
            self.columns = tuple([column_of(column) for column in started.columns])
            self._take(started.portion)

    async def fetch(self, max_rows: int) -> list[Row]:
        while len(self._ready) < max_rows and not self._ended:
            rest = max_rows - len(self._ready)
            wanted = rest if self._running.writes else max(rest, READ_AHEAD)
            async with self._running as connection:
                self._take(await connection.ask("fetch", {"rows": wanted}, Portion))
        rows, self._ready = self._ready[:max_rows], self._ready[max_rows:]
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(await self.fetch(wanted))

    async def close(self) -> None:
        self._ready = []
        await self._running.close()

    def _take(self, portion: Portion) -> None:
        self._ready += rows_of(portion, self.jdbc_columns)
        if portion.ended:
            self._ended = True
            self.affected = portion.affected
            held = self._running.held
            if held is not None:
                held.ended()
            self._running.release()
