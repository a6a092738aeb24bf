"""COPY ... TO STDOUT: its lines as the rows of a result with one column.

libpq copies outside of pipeline mode only, so the connection is given up afterwards. The server
waits while no one reads, and one line has the bound that a row has.
"""

from __future__ import annotations

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.postgres.command_protocol import FAILED
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.model.results import Column

COLUMNS = (Column("copy", "text", "text"),)


class CopyCursor:
    """A COPY that has begun (`engines.api.Cursor`). A row is a line, without its end."""

    __slots__ = ("_running", "affected", "columns")

    def __init__(self, running: RunningStatement[PostgresSession]) -> None:
        self.columns = COLUMNS
        self.affected = 0
        self._running: RunningStatement[PostgresSession] | None = running

    async def fetch(self, max_rows: int) -> list[Row]:
        rows: list[Row] = []
        running = self._running
        while running is not None and len(rows) < max_rows:
            async with running as session:
                line = await session.line.copied_line()
                if line is None:
                    last = await session.line.result()
                    if last is not None and last.status in FAILED:
                        raise translate(last)
                    await self.close()
                    break
            rows.append((line.removesuffix(b"\n").decode("utf-8", "replace"),))
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(await self.fetch(wanted))

    async def close(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            if running.held is not None:
                running.held.close()
            await running.close()
