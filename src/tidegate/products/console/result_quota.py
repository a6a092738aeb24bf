"""The room that the results of the Data page have together, in files and in memory.

It holds for results that still grow, too. When there is none left, results that are over go, the
oldest first; if that is not enough, no more of the result that asks is kept.
"""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from tidegate.errors import Code, TidegateError

MOST_HELD = 200
"""Results that are held."""
FILE_BYTES = 1_073_741_824
MEMORY_BYTES = 32 * 1_048_576
"""Bytes of all results together, in files and in memory."""


class Held(Protocol):
    """A result that takes room."""

    over: bool
    """It does not grow any more, and so may go."""
    gone: bool

    def release(self) -> None:
        """Give back what it takes, once it is `gone`. Takes locks of its own."""
        ...


class ResultQuota:
    """Counts what results take. `directory` is where their files without a name are made."""

    def __init__(
        self,
        directory: Path,
        file_bytes: int = FILE_BYTES,
        memory_bytes: int = MEMORY_BYTES,
        results: int = MOST_HELD,
    ) -> None:
        self.directory = directory
        self._left = (file_bytes, memory_bytes)
        self._results = results
        self._lock = threading.Lock()
        self._taken: dict[Held, tuple[int, int]] = {}
        self._going: list[Held] = []

    def enter(self, held: Held) -> None:
        """Have room for one more result."""
        with self._lock:
            self._taken[held] = (0, 0)
            while len(self._taken) > self._results and self._let_oldest_go():
                pass
        self.sweep()

    def take(self, held: Held, files: int, memory: int) -> bool:
        """Take so many bytes more for a result; False if there is no room.

        The caller calls `sweep` afterwards, when it holds no lock.
        """
        with self._lock:
            if held not in self._taken:
                return False
            while files > self._left[0] or memory > self._left[1]:
                if not self._let_oldest_go():
                    return False
            before = self._taken[held]
            self._taken[held] = (before[0] + files, before[1] + memory)
            self._left = (self._left[0] - files, self._left[1] - memory)
            return True

    def leave(self, held: Held) -> None:
        """Let a result go."""
        with self._lock:
            self._let_go(held)
        self.sweep()

    def sweep(self) -> None:
        """Close the files of results that had to go. The caller holds no lock."""
        with self._lock:
            going, self._going = self._going, []
        for held in going:
            held.release()

    def new_file(self) -> IO[bytes]:
        """A file without a name. Raises: TidegateError STATE_FAILED."""
        try:
            return TemporaryFile(dir=self.directory, buffering=0)
        except OSError as error:
            raise unwritable(self.directory, error) from error

    def _let_oldest_go(self) -> bool:
        for held in self._taken:
            if held.over:
                self._let_go(held)
                return True
        return False

    def _let_go(self, held: Held) -> None:
        taken = self._taken.pop(held, None)
        if taken is None:
            return
        self._left = (self._left[0] + taken[0], self._left[1] + taken[1])
        held.gone = True
        self._going.append(held)


def unwritable(directory: Path, error: OSError) -> TidegateError:
    """The error of a file that cannot be made or written in a folder."""
    why = error.strerror or "it cannot be written"
    return TidegateError(
        Code.STATE_FAILED,
        f"The rows cannot be kept in {directory}: {why}",
        hint="Free space there, or set `state` to a folder on another disk.",
    )
