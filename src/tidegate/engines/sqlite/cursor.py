"""Passes rows from a statement to the caller: all at once, or streamed from a worker."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time
from typing import NamedTuple

import msgspec

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.sqlite.apsw_types import Rows
from tidegate.engines.sqlite.connection import SqliteSession
from tidegate.engines.sqlite.transaction import Execution
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.model.results import Column

FIRST_ROWS = 512
"""Rows that come back with the start of a statement: most results need one hop."""

READ_AHEAD = 2_048
"""Rows that later hops of a read bring at least, unless they are large."""


class Effort(NamedTuple):
    """What a statement took: of the processor, and by the clock, which also counts what the thread
    waited for, such as the interpreter's lock."""

    cpu_s: float
    wall_s: float


class ReadyCursor(msgspec.Struct, eq=False):
    """A result that is all there."""

    columns: tuple[Column, ...]
    rows: Rows
    affected: int = 0
    _next: int = 0

    async def fetch(self, max_rows: int) -> list[Row]:
        first = self._next
        self._next = first + max_rows
        return list(self.rows[first : self._next])

    async def fetch_into(self, sink: RowCollector) -> None:
        rows = self.rows
        while wanted := sink.remaining:
            first, self._next = self._next, self._next + wanted
            sink.write(rows[first : self._next] if first or len(rows) > wanted else rows)

    async def close(self) -> None:
        self._next = len(self.rows)


class StreamCursor:
    """A statement in a worker's thread. The worker is free again as soon as the last row is read.

    `effort` is what the statement took, if it ended with its first rows.
    """

    def __init__(self, running: RunningStatement[WorkerThread]) -> None:
        self.columns: tuple[Column, ...] = ()
        self.affected = self.counted = 0
        self.effort: Effort | None = None
        self._execution: Execution | None = None
        self._ready: Rows = []
        self._next = 0
        self._running = running

    async def begin(self, start: Callable[[SqliteSession], Execution], max_rows: int) -> None:
        """Start the statement and read its first rows. It has ended if this raises."""

        def work(session: SqliteSession) -> Rows:
            began, used = perf_counter(), thread_time()
            self._execution = execution = start(session)
            # The rows of a change are read when they are asked for: only then may it be committed.
            waits = execution.writes and execution.columns
            rows = [] if waits else execution.read(min(max_rows, FIRST_ROWS))
            if execution.done:
                self.effort = Effort(thread_time() - used, perf_counter() - began)
            self.columns = execution.columns
            return rows

        async with self._running as worker:
            self._ready = await worker.do(work)
            self._note_end()

    async def fetch(self, max_rows: int) -> list[Row]:
        rows: list[Row] = list(self._taken(max_rows))
        execution = self._execution
        while len(rows) < max_rows and execution is not None and not execution.done:
            rest = max_rows - len(rows)
            wanted = rest if execution.writes else max(rest, READ_AHEAD)
            async with self._running as worker:
                self._ready = await worker.do(lambda _, n=wanted: execution.read(n))
                self._next = 0
                self._note_end()
            rows += self._taken(rest)
        return rows

    async def fetch_into(self, sink: RowCollector) -> None:
        while self._next < len(self._ready) and (wanted := sink.remaining):
            sink.write(self._taken(wanted))
        execution = self._execution
        if execution is not None and not execution.done and sink.remaining:
            async with self._running as worker:
                await worker.do(lambda _: execution.fetch_into(sink))
                self._note_end()
        if sink.remaining:
            sink.write(())

    async def close(self) -> None:
        self._ready = []
        await self._running.close()

    def _taken(self, max_rows: int) -> Rows:
        first, self._next = self._next, self._next + max_rows
        return self._ready[first : self._next]

    def _note_end(self) -> None:
        if self._execution is not None and self._execution.done:
            self.affected, self.counted = self._execution.affected, self._execution.counted
            self._running.release()
