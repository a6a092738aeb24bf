"""Disk space that is kept for the time when the disk is full: a right can then still be taken away.

The space is a file in the state directory. It is given up in small steps, each right before a write
that needs it, so that another program which fills the disk meanwhile gets little of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

from tidegate.system.descriptors import write_at
from tidegate.system.disks import allocate, free_bytes
from tidegate.system.private_files import open_file

T = TypeVar("T")

SIZE = 524_288
"""Bytes of the file. A state that was closed needs less than half of them to open and to revoke
a token, with a line of the audit log."""

STEP = 65_536

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskReserve:
    """The file at `path`, which `fill` makes. Safe to use from threads and several processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._released = False

    def fill(self) -> None:
        """Take the space again, as far as there is some. Never raises."""
        with self._lock, suppress(OSError):
            file = open_file(self._path, "read and write", follow=False)
            try:
                for start in range(os.fstat(file).st_size, SIZE, STEP):
                    _allocate(file, start, min(STEP, SIZE - start))
                self._released = False
            finally:
                os.close(file)

    def fill_again(self) -> None:
        """Like `fill`, if this process gave up some of it."""
        if self._released:
            self.fill()

    def release(self) -> bool:
        """Give up a step if the disk has not that much; False if there is nothing to give up."""
        with self._lock, suppress(OSError):
            size = self._path.stat().st_size
            if size and free_bytes(self._path) < STEP:
                os.truncate(self._path, max(0, size - STEP))
                self._released = True
                return True
        return False

    def retry(self, action: Callable[[], T], is_full: Callable[[Exception], bool]) -> T:
        """Do `action`, and again with more space as long as it fails for want of it."""
        while True:
            try:
                return action()
            except Exception as error:
                if not is_full(error) or not self.release():
                    raise


def is_full(error: OSError) -> bool:
    """Whether the system refused a write because the disk or a quota is full."""
    return error.errno in _FULL


def _allocate(file: int, start: int, count: int) -> None:
    """Raises: OSError."""
    if not allocate(file, start, count):
        # Random, because a file system that compresses keeps no space for zeros.
        write_at(file, os.urandom(count), start)
