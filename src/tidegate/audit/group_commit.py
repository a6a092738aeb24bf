"""Group syncs: one thread writes an append-only file through to the disk, for many at once.

Whoever must know that its line is on the disk waits; all that wait share the next sync. Lines
that nobody waits for are synced within `delay_s`, and cost the writer no wake-up of their own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread

from tidegate.errors import Code, TidegateError

DELAY_S = 0.5


class GroupCommit:
    """Syncs the file behind `descriptor`. A failed sync is final: what the kernel could not write
    it may have dropped, and a later success would prove nothing.

    `tend` is called on the thread after each sync, to do what else is due; it returns in how many
    seconds it wants to be called though nothing is written, or None. It must not raise.
    """

    def __init__(
        self,
        descriptor: int,
        delay_s: float = DELAY_S,
        tend: Callable[[], float | None] | None = None,
    ) -> None:
        self.failure: str | None = None
        self._descriptor = descriptor
        self._delay_s = delay_s
        self._tend = tend
        self._written = 0
        self._synced = 0
        self._scheduled = False
        self._lock = Lock()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._due = Event()
        self._urgent = Event()
        self._closing = False
        self._thread: Thread | None = None

    def note(self, seq: int) -> None:
        """The line `seq` was written. Called by one thread at a time."""
        self._written = seq
        if not self._scheduled:
            self._scheduled = True
            if self._thread is None:
                self._thread = Thread(target=self._work, name="tidegate-audit", daemon=True)
                self._thread.start()
            self._due.set()

    async def wait(self, seq: int) -> None:
        """Return when the line `seq`, noted before, is on the disk.

        Raises: TidegateError AUDIT_UNAVAILABLE if it may not be.
        """
        with self._lock:
            if self.failure is not None:
                raise unavailable(self.failure)
            if seq <= self._synced:
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append((seq, waiter))
        self._urgent.set()
        await waiter

    def close(self) -> None:
        """Sync what was written and end the thread; the descriptor stays open."""
        self.end()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.flush()

    def end(self) -> None:
        """End the thread, without waiting for it."""
        self._closing = True
        self._urgent.set()
        self._due.set()

    def move(self, descriptor: int) -> None:
        """Sync another file from now on. Call it on the thread, or before there is one, when all
        that was written to the file before is on the disk."""
        self._descriptor = descriptor

    def _work(self) -> None:
        pause: float | None = None
        while not self._closing:
            if self._due.wait(pause):
                self._due.clear()
                self._urgent.wait(self._delay_s)
                self._urgent.clear()
            # Before the sync reads how far it has come: a line after that schedules the next one.
            self._scheduled = False
            self.flush()
            if self._tend is not None and not self._closing and self.failure is None:
                pause = self._tend()

    def flush(self) -> None:
        """Sync now, on the thread or when it has ended, and tell who waits."""
        target = self._written
        if target > self._synced and self.failure is None:
            try:
                os.fdatasync(self._descriptor)
                if os.fstat(self._descriptor).st_nlink == 0:
                    self.failure = "the file was removed"
            except OSError as error:
                self.failure = error.strerror
        with self._lock:
            if self.failure is None:
                self._synced = target
            done = [waiter for seq, waiter in self._waiters if self.failure or seq <= target]
            self._waiters = [] if self.failure else [w for w in self._waiters if w[0] > target]
        self._tell(done)

    def _tell(self, waiters: Sequence[asyncio.Future[None]]) -> None:
        for loop in {waiter.get_loop() for waiter in waiters}:
            theirs = [waiter for waiter in waiters if waiter.get_loop() is loop]
            # A loop that was closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._resolve, theirs)

    def _resolve(self, waiters: Sequence[asyncio.Future[None]]) -> None:
        for waiter in waiters:
            if waiter.done():
                continue
            if self.failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(unavailable(self.failure))


def unavailable(reason: str) -> TidegateError:
    """The error of a record that could not be made; the hint says that nothing ran."""
    return TidegateError(Code.AUDIT_UNAVAILABLE, f"The audit log cannot be written: {reason}.")
