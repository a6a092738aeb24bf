"""What sends events somewhere, and JSON lines in a file as the first of its kinds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tidegate.system.descriptors import read_at, sync_content, write_at
from tidegate.system.file_locks import wait_for_lock
from tidegate.system.private_files import open_file
from tidegate.typed_values import json_decoder

LOCK_S = 10.0
Rejected = Callable[[int, str], None]
"""Takes note that a receiver has taken a batch and thrown away so many of its events, and why."""


class Shipped(NamedTuple):
    """An event with what it says of itself that is said outside of it as well: its id, when it
    happened in Unix milliseconds, its name, how severe it is (OCSF), and the trace that it belongs
    to, 16 bytes, if it belongs to one. `body` is itself as JSON."""

    uid: str
    time_ms: int
    name: str
    severity: int
    body: bytes
    trace_id: bytes = b""


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    uid: str
    event_code: str


class _Unmapped(msgspec.Struct, frozen=True, gc=False):
    trace_id: str = ""


class _Event(msgspec.Struct, frozen=True, gc=False):
    time: int
    severity_id: int
    metadata: _Metadata
    unmapped: _Unmapped = _Unmapped()


_TRACE_BYTES = 16
_decode = json_decoder(_Event).decode


def read_events(text: bytes) -> Iterator[Shipped]:
    """The events of a batch, one after the other."""
    for body in text.split(b"\n")[:-1]:
        event = _decode(body)
        about, trace = event.metadata, event.unmapped.trace_id
        yield Shipped(
            about.uid, event.time, about.event_code, event.severity_id, body,
            _trace_of(trace) if trace else b"",
        )  # fmt: skip


def _trace_of(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return b""
    return found if len(found) == _TRACE_BYTES else b""


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

    def send(self, events: bytes) -> None:
        """Send a batch: events as lines of JSON. Raises: OSError, TidegateError."""
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

    def send(self, events: bytes) -> None:
        descriptor = open_file(self._path, "read and write")
        try:
            if not wait_for_lock(descriptor, LOCK_S, 0.01):  # as of another gate
                raise DeliveryFailed("another process has locked the file")
            end = _whole_end(descriptor)
            try:
                if write_at(descriptor, events, end) != len(events):
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
