"""Puts writes off: what is added costs a list append now and is written in groups soon after.

For records that may be lost with the process, such as history and the last use of a token; never
for the audit, and never for rights.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from tidegate.errors import TidegateError

Item = TypeVar("Item")

_RETRY_S = 5.0


class WriteBehind(Generic[Item]):
    """Calls `write` with groups of items, in order, from one thread that is started when needed.

    The thread is woken once per group, not per item. At most `bound` items wait: while writing
    fails, further ones are dropped and counted in `dropped`.
    """

    def __init__(
        self, write: Callable[[list[Item]], None], *, delay_s: float = 0.25, bound: int = 10_000
    ) -> None:
        self.dropped = 0
        self._write = write
        self._delay_s = delay_s
        self._bound = bound
        self._pending: list[Item] = []
        self._scheduled = False
        self._writing = Lock()
        self._due = Event()
        self._closing = Event()
        self._thread: Thread | None = None

    def add(self, item: Item) -> None:
        """Take an item; it is written within `delay_s` or so. From one thread only."""
        if len(self._pending) >= self._bound:
            self.dropped += 1
            return
        self._pending.append(item)
        if not self._scheduled:
            self._schedule()

    def flush(self) -> None:
        """Write all that was added before, now. Raises: what `write` raises; nothing is lost."""
        with self._writing:
            count = len(self._pending)
            if count:
                self._write(self._pending[:count])
                # Only now, and only these: `add` may have appended meanwhile.
                del self._pending[:count]

    def close(self) -> None:
        """Write the rest and end the thread. Safe to call twice."""
        self._closing.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.flush()

    def _schedule(self) -> None:
        self._scheduled = True
        if self._thread is None:
            self._thread = Thread(target=self._work, name="tidegate-deferred", daemon=True)
            self._thread.start()
        self._due.set()

    def _work(self) -> None:
        delay_s = self._delay_s
        while not self._closing.is_set():
            self._due.wait()
            self._due.clear()
            self._closing.wait(delay_s)
            # Before the flush: what is added during it must schedule the next one.
            self._scheduled = False
            try:
                self.flush()
                delay_s = self._delay_s
            except TidegateError:
                delay_s = _RETRY_S
                self._scheduled = True
                self._due.set()
