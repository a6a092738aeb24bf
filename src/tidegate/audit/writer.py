"""Writing lines to the end of a chain, and syncing them in groups.

A line is written as a whole or, on a full disk, not at all. One thread syncs the file for all
callers: callers that wait for a line share the next sync, other lines are synced within `DELAY_S`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from tidegate.audit import chain
from tidegate.audit.control_records import PeerPosition
from tidegate.audit.segment import SegmentLock
from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import sync_content


class Writer:
    """The end of the chain in a locked segment. Not safe to use from two threads at once.

    `started_at` is the time of the segment's first line, in Unix seconds.
    """

    __slots__ = (
        "_partial_line",
        "descriptor",
        "failing",
        "hash",
        "path",
        "seq",
        "size",
        "started_at",
    )

    def __init__(self, lock: SegmentLock, now: float) -> None:
        self.path: Path = lock.path
        self.descriptor = lock.descriptor
        self.size = lock.tail.size
        self.seq = lock.tail.seq
        self.hash = lock.tail.hash
        self.started_at = now if lock.started_at is None else lock.started_at
        self.failing = False
        """Whether the last line could not be written."""
        self._partial_line = False

    @property
    def end(self) -> PeerPosition:
        """The position of the last line, for segment headers and checkpoints."""
        return PeerPosition(self.path.name, self.seq, self.hash.hex())

    def write(self, body: bytes) -> int:
        """Write a body as the next line and return its number.

        Raises: TidegateError AUDIT_UNAVAILABLE; then the line is not in the chain.
        """
        line, new_hash = chain.seal(body, self.hash)
        line += b"\n"
        self._append(line)
        self.size += len(line)
        self.hash = new_hash
        self.seq += 1
        return self.seq

    def move(self, path: Path, descriptor: int, now: float) -> int:
        """Continue the chain in an empty segment; the descriptor of the one before."""
        before = self.descriptor
        self.path, self.descriptor, self.size, self.started_at = path, descriptor, 0, now
        return before

    def close(self) -> None:
        """Release the segment for another process."""
        os.close(self.descriptor)

    def _append(self, line: bytes) -> None:
        try:
            if self._partial_line:
                self._truncate()
            if os.write(self.descriptor, line) == len(line):
                self.failing = False
                return
            reason = "no space left for a whole line"
        except OSError as error:
            reason = error.strerror or str(error)
        self._partial_line = self.failing = True
        # If this fails, the next write tries again, or the process that next opens the segment.
        with suppress(OSError):
            self._truncate()
        raise unavailable(reason)

    def _truncate(self) -> None:
        os.ftruncate(self.descriptor, self.size)
        self._partial_line = False


DELAY_S = 0.5


class GroupCommit:
    """Syncs the file of `descriptor` on its own thread.

    A failed sync is final: the kernel may have dropped the data, and a later success would prove
    nothing. `maintain` is called with this object, on the thread, after each sync. It returns the
    seconds after which it must be called again even if nothing is written, or None, and must not
    raise.
    """

    def __init__(
        self,
        descriptor: int,
        delay_s: float = DELAY_S,
        maintain: Callable[[GroupCommit], float | None] | None = None,
    ) -> None:
        self.failure: str | None = None
        self._descriptor = descriptor
        self._full: list[int] = []
        """Descriptors of files that are written no more: synced first, and then closed."""
        self._delay_s = delay_s
        self._maintain = maintain
        self._written = 0
        self._synced = 0
        self._syncing = 0
        """The line that the sync under way, or else the last one, goes up to."""
        self._scheduled = False
        self._hurried = False
        self._lock = Lock()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._wake: SimpleQueue[bool] = SimpleQueue()
        """Wakes the thread: True for a sync at once, False for one within the delay."""
        self._closing = False
        self._thread: Thread | None = None

    def note(self, seq: int, *, awaited: bool = False) -> None:
        """Take note that the line `seq` was written. Called by one thread at a time.

        `awaited` says that `wait` follows, so that the thread is woken once and not twice.
        """
        self._written = seq
        if awaited:
            self._scheduled = True
            self._hurry()
        elif not self._scheduled:
            self._scheduled = True
            self._send(False)

    async def wait(self, seq: int) -> None:
        """Return when the line `seq`, noted before, is on the disk.

        Raises: TidegateError AUDIT_UNAVAILABLE if a sync failed.
        """
        with self._lock:
            if self.failure is not None:
                raise unavailable(self.failure)
            if seq <= self._synced:
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append((seq, waiter))
        if seq > self._syncing:
            self._hurry()
        await waiter

    def _hurry(self) -> None:
        if not self._hurried:
            self._hurried = True
            self._send(True)

    def _send(self, urgent: bool) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="tidegate-audit", daemon=True)
            self._thread.start()
        self._wake.put(urgent)

    def close(self) -> None:
        """Sync all lines and end the thread; the descriptor stays open."""
        self.end()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.flush()

    def end(self) -> None:
        """End the thread, without waiting for it."""
        self._closing = True
        self._wake.put(True)

    def move(self, descriptor: int, after: int) -> None:
        """Sync another file from now on, once `after`, the former one, is synced and closed.

        Call it on the thread, or before the thread exists.
        """
        self._full.append(after)
        self._descriptor = descriptor

    def _work(self) -> None:
        pause: float | None = None
        while not self._closing:
            with suppress(Empty):  # then the periodic work is due
                if not self._wake.get(timeout=pause):
                    self._wake.get(timeout=self._delay_s)
            # Reset before `flush` reads the last line: a later line must cause the next sync.
            self._scheduled = self._hurried = False
            self.flush()
            if self._maintain is not None and not self._closing and self.failure is None:
                pause = self._maintain(self)

    def flush(self) -> None:
        """Sync now and wake the waiting callers. Called on the thread, or after it ended."""
        target = self._syncing = self._written
        full, self._full = self._full, []
        if target > self._synced and self.failure is None:
            try:
                for descriptor in (*full, self._descriptor):
                    sync_content(descriptor)
                    if os.fstat(descriptor).st_nlink == 0:
                        self.failure = "the file was removed"
            except OSError as error:
                self.failure = error.strerror
        for descriptor in full:
            os.close(descriptor)
        with self._lock:
            if self.failure is None:
                self._synced = target
            done = [waiter for seq, waiter in self._waiters if self.failure or seq <= target]
            self._waiters = [] if self.failure else [w for w in self._waiters if w[0] > target]
        self._notify(done)

    def _notify(self, waiters: Sequence[asyncio.Future[None]]) -> None:
        for loop in {waiter.get_loop() for waiter in waiters}:
            waiting = [waiter for waiter in waiters if waiter.get_loop() is loop]
            # A closed loop has no waiting tasks left.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._resolve, waiting)

    def _resolve(self, waiters: Sequence[asyncio.Future[None]]) -> None:
        for waiter in waiters:
            if waiter.done():
                continue
            if self.failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(unavailable(self.failure))


def unavailable(reason: str) -> TidegateError:
    """The error for a record that could not be written."""
    return TidegateError(
        Code.AUDIT_UNAVAILABLE,
        f"The audit log cannot be written: {reason}.",
        details={"reason": reason},
    )
