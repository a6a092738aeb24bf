"""Signing checkpoints, keeping the newest one outside the log, and removing expired segments.

A checkpoint is written in this order: as a line into the chain, into `head.json` next to the key,
and into the anchor, a file elsewhere that gets every checkpoint as a line. `head.json` shows that
the log was replaced by an older copy. All processes that use a log replace it in turn, so that
each checkpoint covers all of them. It never names a line that is not on the disk yet, so that a
crash between two steps does not look like tampering.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock

from tidegate.audit.control_records import (
    Checkpoint,
    PeerPosition,
    encode_control_record,
    parse_checkpoint,
)
from tidegate.audit.keys import Keys
from tidegate.audit.segment import (
    SegmentLock,
    lock_for_append,
    number_of,
    segments,
    tail_of,
)
from tidegate.audit.writer import GroupCommit, Writer
from tidegate.config.model import AuditSettings
from tidegate.errors import TidegateError
from tidegate.system.file_locks import wait_for_lock
from tidegate.system.private_files import open_file, replace_file, sync_directory

_LOCK_TIMEOUT_S = 1.0
_LOCK_POLL_S = 0.005


class LatestCheckpoint:
    """The newest checkpoint, in `head.json` in `directory`; each is also appended to `anchor`."""

    def __init__(self, directory: Path, anchor: Path | None = None) -> None:
        self.path = directory / "head.json"
        self._lock = directory / "head.lock"
        self._anchor = anchor

    def read(self) -> Checkpoint | None:
        """The newest checkpoint; None if there is none or it cannot be read."""
        with suppress(OSError, TidegateError):
            return parse_checkpoint(self.path.read_bytes())
        return None

    @contextmanager
    def locked(self) -> Generator[Checkpoint | None]:
        """Lock the file while a checkpoint is made, and read it.

        Raises: OSError; TimeoutError if another process keeps the lock for more than a second.
        """
        descriptor = open_file(self._lock, "read and write")
        try:
            if not wait_for_lock(descriptor, _LOCK_TIMEOUT_S, _LOCK_POLL_S):
                raise TimeoutError(f"`{self._lock}` is held by another process")
            yield self.read()
        finally:
            os.close(descriptor)

    def save(self, checkpoint: Checkpoint) -> None:
        """Make this the newest checkpoint; called within `locked`. Raises: OSError."""
        text = encode_control_record(checkpoint) + b"\n"
        replace_file(self.path, text)
        if self._anchor is not None:
            _append(self._anchor, text)


def is_recorded(directory: Path, checkpoint: Checkpoint) -> bool:
    """Whether the segment that a checkpoint names holds it. Raises: OSError, FileNotFoundError if
    the segment is not there."""
    with (directory / checkpoint.segment).open("rb") as file:
        try:
            content = mmap(file.fileno(), 0, access=ACCESS_READ)
        except ValueError:  # an empty file
            return False
        with content:
            return content.find(b'"signature":"' + checkpoint.signature.encode()) >= 0


def _append(path: Path, text: bytes) -> None:
    descriptor = open_file(path, "append")
    try:
        if os.write(descriptor, text) != len(text):
            raise OSError(f"no space left for a checkpoint in `{path}`")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_DAY_S = 86_400.0


class Checkpointer:
    """Signs the checkpoints of one writer and removes expired segments."""

    def __init__(
        self,
        keys: Keys,
        latest: LatestCheckpoint,
        settings: AuditSettings,
        is_shipped: Callable[[str, int], bool],
    ) -> None:
        self._is_shipped = is_shipped
        self._keys = keys
        self._latest = latest
        self._settings = settings
        self._others: tuple[PeerPosition, ...] = ()
        self._continued: set[str] = set()
        self._oldest = 1
        self._signed = 0
        self._signed_at = time.monotonic()

    def begin(self, lock: SegmentLock, first: int) -> None:
        """Start with a locked segment, in which the line `first` is the header.

        A header alone needs no checkpoint.
        """
        self._others = lock.witnesses
        self._continued |= lock.continued
        # Lines that an earlier process left unsigned are signed by this one.
        self._signed = first if lock.tail.signed else 0
        self._signed_at = time.monotonic()

    def segment_continued(self, segment: str) -> None:
        """Take note that another segment continues this one, which needs no position any more."""
        self._continued.add(segment)

    def due_in(self, seq: int) -> float | None:
        """The seconds until a checkpoint is due; None while there is nothing to sign."""
        unsigned = seq - self._signed
        if unsigned <= 0:
            return None
        if unsigned >= self._settings.checkpoint_lines:
            return 0.0
        return max(0.0, self._signed_at + self._settings.checkpoint_s - time.monotonic())

    def checkpoint(
        self,
        position: Callable[[], tuple[Writer, GroupCommit]],
        lock: Lock,
        clock: Callable[[], float],
    ) -> None:
        """Sign the end of the chain. `position` returns the current writer, under `lock`.

        Raises: OSError, TidegateError; then a checkpoint is due again after the usual interval.
        """
        self._signed_at = time.monotonic()
        self._keys.public()
        with self._latest.locked() as latest:
            with lock:
                writer, sync = position()
                signed = self._keys.sign(
                    Checkpoint(
                        writer.seq + 1,
                        datetime.fromtimestamp(clock(), UTC),
                        "checkpoint",
                        writer.path.name,
                        self._ends(latest, writer.end),
                        self._oldest,
                        key="",
                        signature="",
                    )
                )
                sync.note(writer.write(encode_control_record(signed)))
                self._signed = writer.seq
            sync.flush()
            if sync.failure is None:
                self._latest.save(signed)
        self._others = ()

    @contextmanager
    def expired(self, own: Path, now: float) -> Generator[list[Path]]:
        """The expired segments, oldest first: every line is old and shipped, and no process writes
        to them.

        They are removed at the end of the context. A checkpoint that is signed within it already
        states their removal. Raises: OSError.
        """
        with ExitStack() as held:
            old = self._lock_expired(own, now, held)
            if old:
                self._oldest = number_of(old[-1]) + 1
            yield old
            for path in old:
                for torn in path.parent.glob(f"{path.stem}.torn-*"):
                    torn.unlink()
                path.unlink()
            if old:
                sync_directory(own.parent)

    def _lock_expired(self, own: Path, now: float, held: ExitStack) -> list[Path]:
        old: list[Path] = []
        keep_days = self._settings.keep_days
        if keep_days is None:
            return old
        for path in segments(own.parent):
            tail = tail_of(path) if path != own else None
            if tail is None or tail.at is None or tail.at > now - keep_days * _DAY_S:
                break
            if not self._is_shipped(path.name, tail.size):
                break
            descriptor = lock_for_append(path)
            if descriptor is None:
                break
            held.callback(os.close, descriptor)
            old.append(path)
        return old

    def _ends(self, latest: Checkpoint | None, own: PeerPosition) -> tuple[PeerPosition, ...]:
        """The ends in the newest checkpoint and those seen since, with the current own end."""
        if latest is not None:
            self._oldest = max(self._oldest, latest.oldest)
        ends: dict[str, PeerPosition] = {}
        for end in (*(latest.ends if latest is not None else ()), *self._others):
            known = ends.get(end.segment)
            if known is None or known.seq < end.seq:
                ends[end.segment] = end
        kept = [
            end
            for name, end in sorted(ends.items())
            if name not in self._continued
            and name != own.segment
            and number_of(name) >= self._oldest
        ]
        return (*kept, own)
