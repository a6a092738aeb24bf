"""Writes lines to the end of a chain: each as a whole or, on a full disk, not at all.

Knows where the chain stands; not safe to use from two threads at once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tidegate.audit import chain
from tidegate.audit.control_records import PeerPosition
from tidegate.audit.group_commit import unavailable
from tidegate.audit.segment_lock import SegmentLock


class Writer:
    """The end of the chain in the segment that was claimed; `begun` is the segment's first time."""

    __slots__ = ("_torn", "begun", "descriptor", "failing", "hash", "path", "seq", "size")

    def __init__(self, claimed: SegmentLock, now: float) -> None:
        self.path: Path = claimed.path
        self.descriptor = claimed.descriptor
        self.size = claimed.tail.size
        self.seq = claimed.tail.seq
        self.hash = claimed.tail.hash
        self.begun = now if claimed.begun is None else claimed.begun
        self.failing = False
        """Whether the last line could not be written."""
        self._torn = False

    @property
    def end(self) -> PeerPosition:
        """The last line, as others may hold us to it."""
        return PeerPosition(self.path.name, self.seq, self.hash.hex())

    def write(self, body: bytes) -> int:
        """Seal a body into the next line and return its number.

        Raises: TidegateError AUDIT_UNAVAILABLE; then it is not in the chain.
        """
        line, new_hash = chain.seal(body, self.hash)
        line += b"\n"
        self._put(line)
        self.size += len(line)
        self.hash = new_hash
        self.seq += 1
        return self.seq

    def move(self, path: Path, descriptor: int, now: float) -> None:
        """Go on with the same chain in an empty segment; the one before is closed."""
        os.close(self.descriptor)
        self.path, self.descriptor, self.size, self.begun = path, descriptor, 0, now

    def close(self) -> None:
        """Let another process continue the segment."""
        os.close(self.descriptor)

    def _put(self, line: bytes) -> None:
        try:
            if self._torn:
                self._take_back()
            if os.write(self.descriptor, line) == len(line):
                self.failing = False
                return
            reason = "there was no room for a whole line"
        except OSError as error:
            reason = error.strerror or str(error)
        self._torn = self.failing = True
        # If it cannot be taken back now, then before the next line, or by whoever opens it next.
        with suppress(OSError):
            self._take_back()
        raise unavailable(reason)

    def _take_back(self) -> None:
        os.ftruncate(self.descriptor, self.size)
        self._torn = False
