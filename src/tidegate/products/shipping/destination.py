"""What sends events somewhere, and JSON lines in a file as the first of its kinds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from tidegate.system.descriptors import read_at, sync_content, write_at
from tidegate.system.file_locks import wait_for_lock
from tidegate.system.private_files import open_file

LOCK_S = 10.0
Rejected = Callable[[int, str], None]
"""Takes note that a receiver has taken a batch and thrown away so many of its events, and why."""


class Shipped(msgspec.Struct, frozen=True, gc=False):
    """An event as destinations send it: its id, when it happened in Unix nanoseconds, its name,
    how severe it is (OCSF), itself as one line of JSON, and the trace that it belongs to, 16
    bytes, if it belongs to one."""

    uid: str
    time_ns: int
    name: str
    severity: int
    body: bytes
    trace_id: bytes = b""


class DeliveryFailed(OSError):
    """The destination did not take a batch. `retry_after_s` is what it asks for."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class TooLarge(DeliveryFailed):
    """It takes no batch of this size."""


class Destination(Protocol):
    """Takes batches in order, on one thread. After an error it begins again: what it has not
    acknowledged comes again."""

    def send(self, events: Sequence[Shipped]) -> None:
        """Send a batch. Raises: OSError, TidegateError."""
        ...

    def acknowledged(self) -> int:
        """How many batches are acknowledged of those that were sent since it last began. Raises:
        OSError."""
        ...

    def reset(self) -> None:
        """Forget what was sent, and begin again. Never raises."""
        ...


class FileDestination:
    """Appends to a file, which is opened for each batch, so that another program may rotate it. A
    batch is acknowledged once it is on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = 0

    def send(self, events: Sequence[Shipped]) -> None:
        text = b"\n".join([*[each.body for each in events], b""])
        descriptor = open_file(self._path, "read and write")
        try:
            if not wait_for_lock(descriptor, LOCK_S, 0.01):  # as of another gate
                raise DeliveryFailed("another process has locked the file")
            end = _whole_end(descriptor)
            try:
                if write_at(descriptor, text, end) != len(text):
                    raise DeliveryFailed("no space left for a whole batch")
                sync_content(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)
        self._written += 1

    def acknowledged(self) -> int:
        return self._written

    def reset(self) -> None:
        self._written = 0


def _whole_end(descriptor: int) -> int:
    """Where the last whole line ends: what a killed process has left of a line is cut off, and
    comes again. Raises: OSError."""
    size = os.fstat(descriptor).st_size
    end, block = size, 65_536
    while end:
        begin = max(0, end - block)
        found = read_at(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    if end < size:
        os.ftruncate(descriptor, end)
    return end
