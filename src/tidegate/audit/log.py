"""The audit log: appends events to a hash chain that outlives the process, one line each.

Decides nothing about what is recorded. What may go on without a record is the operator's word,
`audit.failure_mode`. An event is either in the chain as a whole or not at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tidegate import __version__
from tidegate.audit import chain
from tidegate.audit.checkpointer import Checkpointer
from tidegate.audit.control_records import (
    ControlRecord,
    Gap,
    PeerPosition,
    SegmentEnd,
    SegmentHeader,
    encode_control_record,
)
from tidegate.audit.event import Event, encode
from tidegate.audit.group_commit import GroupCommit, unavailable
from tidegate.audit.keys import Keys
from tidegate.audit.latest_checkpoint import LatestCheckpoint
from tidegate.audit.segment import Tail, number_of
from tidegate.audit.segment_lock import SegmentLock, acquire, create
from tidegate.audit.server_event import PERIOD_S, RepeatCounter, ServerEvent, encode_server_event
from tidegate.audit.writer import Writer
from tidegate.config.model import AuditSettings
from tidegate.errors import TidegateError

RECOVER_S = 1.0
LONGEST_RECOVER_S = 300.0
"""After a failed sync another segment is tried: after a second, then each time twice as long."""
RETIRE_S = 3_600.0
"""How often segments that were kept long enough are removed."""
MAX_LATE = 1_000
"""How many events that could not be written are kept in memory to be written later."""


class AuditLog:
    """The log in `directory` (made if need be, mode 0700). Safe to use from several threads.

    Several logs may be open on one directory, each appends to a segment of its own. With `keys`,
    a directory too, checkpoints are signed; without, nobody can tell that the end was cut off.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.time,
        *,
        settings: AuditSettings | None = None,
        keys: Path | None = None,
    ) -> None:
        """Open, continue a chain and put that on record.

        While the disk cannot be written the log opens all the same, and its methods raise: taking a
        right away must work without a record.
        Raises: TidegateError STATE_FAILED if there is no key and none can be made.
        """
        self._directory = directory
        self._clock = clock
        self._settings = settings or AuditSettings()
        self._lock = Lock()
        self._closed = False
        self._tallied = RepeatCounter()
        self._missed = 0
        self._late: list[tuple[Event, float]] = []
        self._missed_since = 0.0
        self._opening: SegmentHeader | None = None
        self._lost = self._offset = 0
        self._mend_at = 0.0
        self._mend_s = RECOVER_S
        self._retire_at = 0.0
        self._head: LatestCheckpoint | None = None
        self._notary: Checkpointer | None = None
        if keys is not None:
            anchor = self._settings.anchor
            signing = Keys(keys)
            signing.prepare()
            self._head = LatestCheckpoint(keys, Path(anchor).expanduser() if anchor else None)
            self._notary = Checkpointer(signing, self._head, self._settings)
        failure = ""
        try:
            claimed = self._claim(fresh=False)
        except TidegateError as error:
            failure = error.message
            claimed = _nowhere(directory)
        self._writer = Writer(claimed, clock())
        self._sync = GroupCommit(self._writer.descriptor, tend=self._tend)
        if failure:
            self._sync.failure = failure
            return
        try:
            with suppress(TidegateError):
                self._open(claimed)
                self._rotate()
        except BaseException:
            self._writer.close()
            raise

    @property
    def path(self) -> Path:
        """The segment that is written to now."""
        return self._writer.path

    @property
    def failing(self) -> bool:
        """Whether the last line could not be written."""
        return self._writer.failing or self._sync.failure is not None

    def append(self, event: Event) -> int:
        """Put an event on record and return its number, for `durable`.

        When this returns, the line is with the operating system: it outlives this process, and
        a power cut too once it is synced, within half a second or so.
        Raises: TidegateError AUDIT_UNAVAILABLE; then the event is not in the chain.
        """
        with self._lock:
            self._prepare()
            return self._write(encode(event, self._writer.seq + 1, self._clock()))

    def append_later(self, event: Event) -> None:
        """Put an event on record as soon as the log can be written: it has happened. Never raises.

        Too many of them are counted like events that are missing.
        """
        with self._lock:
            if len(self._late) < MAX_LATE:
                self._late.append((event, self._clock()))
                return
        self.count_missed()

    def record_event(self, happening: ServerEvent) -> int:
        """Put on record what a person or the server does, and return its number, for `durable`.

        For what is done on somebody's authority (`token.created`, `approval.decided`): call it
        first, and do it only if this returns. Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        with self._lock:
            self._prepare()
            return self._write(encode_server_event(happening, self._writer.seq + 1, self._clock()))

    def record_repeated(self, happening: ServerEvent) -> None:
        """Put on record what needs no token to cause (`login.failed`): the first few of a name in
        a minute each, then how many there were. Never raises: what it tells was refused anyway.
        """
        now = self._clock()
        with self._lock, suppress(TidegateError):
            self._prepare()
            self._tell(now)
            if self._tallied.should_record(happening, now):
                self._write(encode_server_event(happening, self._writer.seq + 1, now))

    async def durable(self, number: int) -> None:
        """Return when the event `number` and all before it outlive a power cut.

        Everyone who waits shares one sync. Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        if number <= self._lost:
            raise unavailable("the disk failed while it was written")
        await self._sync.wait(number - self._offset)

    def tolerates(self, *, changes: bool) -> bool:
        """Whether a call goes on that cannot be recorded; `changes`: it could change data."""
        mode = self._settings.failure_mode
        return mode == "best_effort" or (mode == "strict_mutations" and not changes)

    def count_missed(self) -> None:
        """An event is not on record and its call went on: that will be, once it can."""
        with self._lock:
            if not self._missed:
                self._missed_since = self._clock()
            self._missed += 1

    def close(self) -> None:
        """Sync, sign, and let another process continue the segment. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            with suppress(TidegateError):
                self._prepare()
                self._tell(self._clock(), all_of_them=True)
            self._closed = True
        self._sync.close()
        if self._sync.failure is None and self._notary is not None:
            self._checkpoint(self._notary, within_s=None)
        self._writer.close()

    # What follows is called with the lock held, or before anyone else has the log.

    def _claim(self, *, fresh: bool) -> SegmentLock:
        head = self._head.read() if self._head is not None else None
        ends: tuple[PeerPosition, ...] = ()
        if head is not None:
            # The checkpoint itself stands after what it signed; its hash it could not know.
            ends = (*head.ends, PeerPosition(head.segment, head.seq, ""))
        try:
            return acquire(self._directory, ends, fresh=fresh)
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{self._directory}`)") from error

    def _open(self, claimed: SegmentLock) -> None:
        self._opening = self._opening_line(claimed)
        if self._notary is not None:
            self._notary.begin(claimed, self._opening.seq)
        self._write_opening()

    def _opening_line(self, claimed: SegmentLock) -> SegmentHeader:
        return SegmentHeader(
            seq=self._writer.seq + 1,
            time=self._now(),
            phase="open",
            segment=self._writer.path.name,
            process=os.getpid(),
            version=__version__,
            previous=claimed.previous,
            witnesses=claimed.witnesses,
            unreadable=claimed.unreadable,
            torn=claimed.torn,
        )

    def _write_opening(self) -> None:
        if self._opening is not None:
            self._put(self._opening)
            self._opening = None

    def _prepare(self) -> None:
        """Make good what went wrong before the next line. Raises: TidegateError
        AUDIT_UNAVAILABLE."""
        if self._closed:
            raise unavailable("it is closed")
        if self._sync.failure is not None:
            self._recover(self._sync.failure)
        if self._opening is not None:
            self._write_opening()
        if self._missed:
            since = datetime.fromtimestamp(self._missed_since, UTC)
            self._put(Gap(self._writer.seq + 1, self._now(), "gap", self._missed, since))
            self._missed = 0
        while self._late:
            event, at = self._late[0]
            self._write(encode(event, self._writer.seq + 1, at))
            del self._late[0]

    def _recover(self, failure: str) -> None:
        """Begin another segment: what the failed file lost, a later sync of it would not tell."""
        now = time.monotonic()
        if not self._mend_at:
            self._mend_at = now + self._mend_s
        if now < self._mend_at:
            raise unavailable(failure)
        self._mend_s = min(2 * self._mend_s, LONGEST_RECOVER_S)
        self._mend_at = now + self._mend_s
        claimed = self._claim(fresh=True)
        failed = self._sync
        failed.end()
        self._lost = self._offset + self._writer.seq
        self._offset = self._lost
        self._writer.close()
        self._writer = Writer(claimed, self._clock())
        self._sync = GroupCommit(self._writer.descriptor, tend=self._tend)
        self._mend_at = 0.0
        self._open(claimed)

    def _write(self, body: bytes) -> int:
        number = self._writer.write(body)
        self._sync.note(number)
        return number + self._offset

    def _put(self, mark: ControlRecord) -> None:
        self._write(encode_control_record(mark))

    def _tell(self, now: float, *, all_of_them: bool = False) -> None:
        for happening, count in self._tallied.over(now, all_of_them=all_of_them):
            self._write(encode_server_event(happening, self._writer.seq + 1, now, count))

    def _rotate(self) -> None:
        """Go on in another segment, if this one is full. Raises: TidegateError
        AUDIT_UNAVAILABLE."""
        writer, now = self._writer, self._clock()
        limits = self._settings
        if writer.size < limits.segment_bytes and now - writer.begun < limits.segment_age_s:
            return
        full = writer.path
        try:
            path, descriptor = create(self._directory, number_of(full))
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{self._directory}`)") from error
        try:
            self._put(SegmentEnd(writer.seq + 1, self._now(), "continued", path.name))
        except TidegateError:
            path.unlink()
            os.close(descriptor)
            raise
        self._sync.flush()
        if self._sync.failure is not None:
            os.close(descriptor)
            raise unavailable(self._sync.failure)
        previous = writer.end
        writer.move(path, descriptor, now)
        self._sync.move(descriptor)
        if self._notary is not None:
            self._notary.finished(full.name)
        empty = Tail(0, 0, chain.START, b"")
        self._opening = self._opening_line(SegmentLock(path, descriptor, empty, previous=previous))
        self._write_opening()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    # The thread of the syncs does the rest, so that no call waits for it.

    def _tend(self) -> float | None:
        """Do what is due beside the calls; in how many seconds to come back, if at all."""
        with self._lock:
            if self._closed or self._sync.failure is not None:
                return None
            with suppress(TidegateError):
                self._prepare()
                self._tell(self._clock())
                self._rotate()
            pause = PERIOD_S if self._tallied.waits else None
        if self._notary is None:
            return pause
        self._retire(self._notary)
        self._checkpoint(self._notary, within_s=0.0)
        due = self._notary.due_in(self._writer.seq)
        return pause if due is None else due if pause is None else min(due, pause)

    def _checkpoint(self, notary: Checkpointer, *, within_s: float | None) -> None:
        due = notary.due_in(self._writer.seq)
        if due is not None and (within_s is None or due <= within_s):
            try:
                self._sign(notary)
            except (OSError, TidegateError) as error:
                self._complain("checkpoint.failed", error)

    def _sign(self, notary: Checkpointer) -> None:
        notary.checkpoint(lambda: (self._writer, self._sync), self._lock, self._clock)

    def _retire(self, notary: Checkpointer) -> None:
        """Remove what was kept long enough, after it was put on record and signed."""
        if time.monotonic() < self._retire_at:
            return
        self._retire_at = time.monotonic() + RETIRE_S
        try:
            with notary.old_enough(self._writer.path, self._clock()) as old:
                if old:
                    details = {"first": old[0].name, "last": old[-1].name}
                    self.record_event(ServerEvent(name="audit.retired", details=details))
                    self._sign(notary)
        except (OSError, TidegateError) as error:
            self._complain("retirement.failed", error)

    def _complain(self, name: str, error: OSError | TidegateError) -> None:
        self.record_repeated(ServerEvent(name=name, details={"reason": str(error)}))


def _nowhere(directory: Path) -> SegmentLock:
    """What is held in the place of a segment while none can be opened: nothing is written to it."""
    descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    return SegmentLock(directory / "000000.jsonl", descriptor, Tail(0, 0, chain.START, b""))
