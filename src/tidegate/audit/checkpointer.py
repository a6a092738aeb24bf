"""Signs how far the log has come, and removes what was kept long enough.

A checkpoint goes three ways: as a line into the chain, into the head beside the key, into the
anchor. The line is on the disk before the head names it, so a crash between the two is no
difference that anyone would have to explain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tidegate.audit.control_records import Checkpoint, PeerPosition, encode_control_record
from tidegate.audit.group_commit import GroupCommit
from tidegate.audit.keys import Keys
from tidegate.audit.latest_checkpoint import LatestCheckpoint
from tidegate.audit.segment import number_of, segments, tail_of
from tidegate.audit.segment_lock import SegmentLock, hold, sync_directory
from tidegate.audit.writer import Writer
from tidegate.config.model import AuditSettings

_DAY_S = 86_400.0


class Checkpointer:
    """Signs for one writer. `claimed` is what was known of the other segments at the beginning."""

    def __init__(self, keys: Keys, head: LatestCheckpoint, settings: AuditSettings) -> None:
        self._keys = keys
        self._head = head
        self._settings = settings
        self._others: tuple[PeerPosition, ...] = ()
        self._finished: set[str] = set()
        self._oldest = 1
        self._signed = 0
        self._signed_at = time.monotonic()

    def begin(self, claimed: SegmentLock, first: int) -> None:
        """Sign for who claimed this, and whose opening is the line `first`.

        An opening alone is not worth a signature.
        """
        self._others = claimed.witnesses
        self._finished |= claimed.finished
        # What a process before us could not sign any more, we do.
        self._signed = first if claimed.tail.signed else 0
        self._signed_at = time.monotonic()

    def finished(self, segment: str) -> None:
        """The chain goes on in another segment, and whoever holds that one to be there knows."""
        self._finished.add(segment)

    def due_in(self, seq: int) -> float | None:
        """In how many seconds a checkpoint is due; None while there is nothing to sign."""
        unsigned = seq - self._signed
        if unsigned <= 0:
            return None
        if unsigned >= self._settings.checkpoint_lines:
            return 0.0
        return max(0.0, self._signed_at + self._settings.checkpoint_s - time.monotonic())

    def checkpoint(
        self,
        stand: Callable[[], tuple[Writer, GroupCommit]],
        lock: Lock,
        clock: Callable[[], float],
    ) -> None:
        """Sign where the writer stands, which `stand` tells; takes the lock for it.

        Raises: OSError, TidegateError; then it is due again after a while.
        """
        self._signed_at = time.monotonic()
        self._keys.public()
        with self._head.turn() as head:
            with lock:
                writer, sync = stand()
                signed = self._keys.sign(
                    Checkpoint(
                        writer.seq + 1,
                        datetime.fromtimestamp(clock(), UTC),
                        "checkpoint",
                        writer.path.name,
                        self._ends(head, writer.end),
                        self._oldest,
                        key="",
                        signature="",
                    )
                )
                sync.note(writer.write(encode_control_record(signed)))
                self._signed = writer.seq
            sync.flush()
            if sync.failure is None:
                self._head.put(signed)
        self._others = ()

    @contextmanager
    def old_enough(self, own: Path, now: float) -> Generator[list[Path]]:
        """The segments that may be removed, from the first on: every line of them is old, and
        nobody writes to them. At the end of the context they are removed; until then what is
        signed says that they are gone. Raises: OSError.
        """
        with ExitStack() as held:
            old = self._hold_old(own, now, held)
            if old:
                self._oldest = number_of(old[-1]) + 1
            yield old
            for path in old:
                for torn in path.parent.glob(f"{path.stem}.torn-*"):
                    torn.unlink()
                path.unlink()
            if old:
                sync_directory(own.parent)

    def _hold_old(self, own: Path, now: float, held: ExitStack) -> list[Path]:
        old: list[Path] = []
        keep_days = self._settings.keep_days
        if keep_days is None:
            return old
        for path in segments(own.parent):
            tail = tail_of(path) if path != own else None
            if tail is None or tail.at is None or tail.at > now - keep_days * _DAY_S:
                break
            descriptor = hold(path)
            if descriptor is None:
                break
            held.callback(os.close, descriptor)
            old.append(path)
        return old

    def _ends(self, head: Checkpoint | None, own: PeerPosition) -> tuple[PeerPosition, ...]:
        """What the head knows and what we saw, with our own end in the place of an earlier one."""
        if head is not None:
            self._oldest = max(self._oldest, head.oldest)
        ends: dict[str, PeerPosition] = {}
        for end in (*(head.ends if head is not None else ()), *self._others):
            known = ends.get(end.segment)
            if known is None or known.seq < end.seq:
                ends[end.segment] = end
        kept = [
            end
            for name, end in sorted(ends.items())
            if name not in self._finished
            and name != own.segment
            and number_of(name) >= self._oldest
        ]
        return (*kept, own)
