"""A limit on the temporary space of reads, which SQLite itself does not have.

SQLite writes what it sorts to temporary files. The system counts the bytes that a thread writes,
so the working threads are checked now and then.
"""

from __future__ import annotations

import asyncio

from tidegate.engines.common.running_statement import RunningStatement, RunningStatements
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.system.limits import written_bytes

MOST_BYTES = 2 * 1024**3
LOOK_S = 0.5


class TempSpaceLimit:
    """Checks the statements in `running` for as long as there are any."""

    def __init__(self, running: RunningStatements[WorkerThread]) -> None:
        self._running = running
        self._written: dict[RunningStatement[WorkerThread], int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """A statement has begun."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        before, self._written = self._written, {}
        for running in list(self._running):
            worker = running.held
            written = None if worker is None else _written_by(worker.thread_id)
            if written is None:
                continue
            first = before.get(running, written)
            if written - first > MOST_BYTES:
                running.stop("space")
            else:
                self._written[running] = first
        if self._running:
            self.wake()


def _written_by(thread_id: int | None) -> int | None:
    """Bytes that a thread of ours has written in its life."""
    return None if thread_id is None else written_bytes(thread_id)
