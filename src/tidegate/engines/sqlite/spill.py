"""Decides when a statement has written too much temporary space, and ends it.

SQLite sorts and groups in files when memory does not suffice, and nothing bounds their size but
the disk, on which the records lie as well. Linux counts what each thread writes; where no such
count is to be had, nothing is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from tidegate.engines.sqlite.errand import Errand

MOST_BYTES = 2 * 1024**3
LOOK_S = 0.5


class SpillWatch:
    """Looks at the errands in `running` for as long as there are any."""

    def __init__(self, running: Collection[Errand]) -> None:
        self._running = running
        self._written: dict[Errand, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """An errand has begun."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        before, self._written = self._written, {}
        for errand in list(self._running):
            written = _written_by(errand.thread_id)
            if written is None:
                continue
            first = before.get(errand, written)
            if written - first > MOST_BYTES:
                errand.stop("space")
            else:
                self._written[errand] = first
        if self._running:
            self.wake()


def _written_by(thread_id: int | None) -> int | None:
    """Bytes that a thread of ours has written in its life."""
    if thread_id is None:
        return None
    try:
        counts = Path(f"/proc/self/task/{thread_id}/io").read_bytes()
    except OSError:
        return None
    return int(counts.partition(b"wchar:")[2].split(None, 1)[0])
