"""The audit log: appends each event as one line to a durable hash chain.

An event is in the chain as a whole or not at all. The setting `audit.failure_mode` says which
calls may continue when the log cannot be written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tidegate import __version__
from tidegate.audit import chain
from tidegate.audit.checkpoints import Checkpointer, LatestCheckpoint
from tidegate.audit.control_records import (
    ControlRecord,
    Gap,
    PeerPosition,
    SegmentEnd,
    SegmentHeader,
    encode_control_record,
)
from tidegate.audit.event import Event, encode
from tidegate.audit.keys import Keys
from tidegate.audit.segment import SegmentLock, Tail, acquire, create, number_of
from tidegate.audit.server_events import PERIOD_S, RepeatCounter, ServerEvent, encode_server_event
from tidegate.audit.writer import GroupCommit, Writer, unavailable
from tidegate.config.model import AuditSettings
from tidegate.errors import TidegateError
from tidegate.paths import expand
from tidegate.system.descriptors import open_nowhere
from tidegate.system.disks import try_writing

RECOVER_S = 1.0
LONGEST_RECOVER_S = 300.0
"""After a failed sync the log tries a new segment: after a second, then after twice as long each
time, up to the longest."""
EXPIRE_S = 3_600.0
"""The interval at which expired segments are removed."""
_READS = frozenset({"", "read"})
MAX_DEFERRED = 1_000
"""The number of events kept in memory while the log cannot be written."""


class AuditLog:
    """The log in `directory`, which is created if needed (mode 0700). Safe to use from threads.

    Several logs may be open in one directory; each appends to a segment of its own. With `keys`,
    also a directory, checkpoints are signed. Without it, truncation of the end cannot be detected.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.time,
        *,
        settings: AuditSettings | None = None,
        keys: Path | None = None,
        is_shipped: Callable[[str, int], bool] = lambda segment, size: True,
    ) -> None:
        """Open the log, continue a chain and record that.

        `is_shipped` says of a segment of so many bytes whether all of it is where it is to be, so
        that it may be removed when it has expired.

        If the disk cannot be written, the log opens and its methods raise: it must be possible to
        revoke access without a record.
        Raises: TidegateError STATE_FAILED if there is no key and none can be created.
        """
        self._directory = directory
        self._clock = clock
        self._settings = settings or AuditSettings()
        self._lock = Lock()
        self._closed = False
        self._repeats = RepeatCounter()
        self._missed = 0
        self._problems: dict[str, str] = {}
        self._deferred: list[tuple[Event, float]] = []
        self._missed_since = 0.0
        self.withheld = ""
        """Why calls are not to go on although the log can be written; empty: they are. Set by what
        ships the record. `audit.failure_mode` decides which calls that is about."""
        self._header: SegmentHeader | None = None
        self._lost_until = self._offset = 0
        self._retry_at = 0.0
        self._retry_s = RECOVER_S
        self._expire_at = 0.0
        self._latest: LatestCheckpoint | None = None
        self._checkpointer: Checkpointer | None = None
        if keys is not None:
            anchor = self._settings.anchor
            signing = Keys(keys)
            signing.prepare()
            self._latest = LatestCheckpoint(keys, expand(anchor) if anchor else None)
            self._checkpointer = Checkpointer(signing, self._latest, self._settings, is_shipped)
        failure = ""
        try:
            lock = self._acquire(fresh=False)
        except TidegateError as error:
            failure = str(error.details.get("reason", error.message.rstrip(".")))
            lock = _placeholder(directory)
        self._writer = Writer(lock, clock())
        self._sync = GroupCommit(self._writer.descriptor, maintain=self._maintain)
        if failure:
            self._sync.failure = failure
            return
        try:
            with suppress(TidegateError):
                self._open(lock)
                self._rotate()
        except BaseException:
            self._writer.close()
            raise

    @property
    def path(self) -> Path:
        """The current segment."""
        return self._writer.path

    def read_checkpoint_time(self) -> float | None:
        """When the newest checkpoint was signed, by any process; None if there is none. Reads a
        small file."""
        latest = None if self._latest is None else self._latest.read()
        return None if latest is None else latest.time.timestamp()

    @property
    def problems(self) -> Mapping[str, str]:
        """What failed at the last attempt, though the log can be written, with the reason:
        `checkpoints` (the anchor included) and `retirement`."""
        return dict(self._problems)

    @property
    def failing(self) -> bool:
        """Whether the last line could not be written, or calls are withheld."""
        return (
            self._writer.failing
            or self._sync.failure is not None
            or (self.withheld != "" and not self.tolerates(changes=True))
        )

    def append(self, event: Event, *, awaited: bool = False) -> int:
        """Record an event and return its number, for `durable`; `awaited` says that this follows.

        When this returns, the operating system has the line, so it survives the end of the process.
        It survives a power failure once it is synced, about half a second later.
        Raises: TidegateError AUDIT_UNAVAILABLE; then the event is not in the chain.
        """
        if self.withheld and event.phase == "intent":
            self._check_withheld(changes=event.effect not in _READS)
        with self._lock:
            self._prepare()
            return self._write(encode(event, self._writer.seq + 1, self._clock()), awaited=awaited)

    def try_writing(self) -> None:
        """See that the disk of the log takes a line, which is not kept. Raises: TidegateError
        AUDIT_UNAVAILABLE."""
        try:
            try_writing(self._directory)
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{self._directory}`)") from error

    def append_later(self, event: Event) -> None:
        """Record an event that has happened, as soon as the log can be written. Never raises.

        Beyond `MAX_DEFERRED` events, further ones are counted as missed.
        """
        with self._lock:
            if len(self._deferred) < MAX_DEFERRED:
                self._deferred.append((event, self._clock()))
                return
        self.count_missed()

    def record_event(self, event: ServerEvent) -> int:
        """Record an action of a person or of the server; return its number, for `durable`.

        Call it before an action that needs a record (`token.created`, `approval.decided`), and do
        the action only if this returns. Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        with self._lock:
            self._prepare()
            return self._write(encode_server_event(event, self._writer.seq + 1, self._clock()))

    def record_repeated(self, event: ServerEvent) -> None:
        """Record an event that callers without a token can cause (`login.failed`).

        The first few of a name in a minute get a line each; further ones are counted. Never raises:
        the caller has been refused already.
        """
        now = self._clock()
        with self._lock, suppress(TidegateError):
            self._prepare()
            self._write_repeats(now)
            if self._repeats.should_record(event, now):
                self._write(encode_server_event(event, self._writer.seq + 1, now))

    async def durable(self, number: int) -> None:
        """Return when the event `number` and all before it survive a power failure.

        All waiting callers share one sync. Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        if number <= self._lost_until:
            raise unavailable("the disk failed while it was written")
        await self._sync.wait(number - self._offset)

    def tolerates(self, *, changes: bool) -> bool:
        """Whether a call may continue unrecorded; `changes` says that it could change data."""
        mode = self._settings.failure_mode
        return mode == "best_effort" or (mode == "strict_mutations" and not changes)

    def count_missed(self) -> None:
        """Count an event that was not recorded although its call continued.

        A `Gap` with the count is recorded when the log can be written again.
        """
        with self._lock:
            if not self._missed:
                self._missed_since = self._clock()
            self._missed += 1

    def close(self) -> None:
        """Sync, sign, and release the segment for another process. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            with suppress(TidegateError):
                self._prepare()
                self._write_repeats(self._clock(), every_period=True)
            self._closed = True
        self._sync.close()
        if self._sync.failure is None and self._checkpointer is not None:
            self._checkpoint(self._checkpointer, within_s=None)
        self._writer.close()

    def _check_withheld(self, *, changes: bool) -> None:
        """Raises: TidegateError AUDIT_UNAVAILABLE for a call that is not to run; what has run is
        recorded in any case."""
        if not self.tolerates(changes=changes):
            raise unavailable(self.withheld)

    # The methods below are called with the lock held, or before the log is shared.

    def _acquire(self, *, fresh: bool) -> SegmentLock:
        latest = self._latest.read() if self._latest is not None else None
        ends: tuple[PeerPosition, ...] = ()
        if latest is not None:
            # The line of the checkpoint follows the signed lines; its hash was not known then.
            ends = (*latest.ends, PeerPosition(latest.segment, latest.seq, ""))
        try:
            return acquire(self._directory, ends, fresh=fresh)
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{self._directory}`)") from error

    def _open(self, lock: SegmentLock) -> None:
        self._header = self._segment_header(lock)
        if self._checkpointer is not None:
            self._checkpointer.begin(lock, self._header.seq)
        self._write_header()

    def _segment_header(self, lock: SegmentLock) -> SegmentHeader:
        return SegmentHeader(
            seq=self._writer.seq + 1,
            time=self._now(),
            phase="open",
            segment=self._writer.path.name,
            process=os.getpid(),
            version=__version__,
            previous=lock.previous,
            witnesses=lock.witnesses,
            unreadable=lock.unreadable,
            torn=lock.torn,
        )

    def _write_header(self) -> None:
        if self._header is not None:
            self._write_record(self._header)
            self._header = None

    def _prepare(self) -> None:
        """Recover from an earlier failure and write what it left unwritten.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        if self._closed:
            raise unavailable("it is closed")
        if self._sync.failure is not None:
            self._recover(self._sync.failure)
        if self._header is not None:
            self._write_header()
        if self._missed:
            since = datetime.fromtimestamp(self._missed_since, UTC)
            self._write_record(Gap(self._writer.seq + 1, self._now(), "gap", self._missed, since))
            self._missed = 0
        while self._deferred:
            event, at = self._deferred[0]
            self._write(encode(event, self._writer.seq + 1, at))
            del self._deferred[0]

    def _recover(self, failure: str) -> None:
        """Begin a new segment: a later sync of the failed file would not report what was lost."""
        now = time.monotonic()
        if not self._retry_at:
            self._retry_at = now + self._retry_s
        if now < self._retry_at:
            raise unavailable(failure)
        self._retry_s = min(2 * self._retry_s, LONGEST_RECOVER_S)
        self._retry_at = now + self._retry_s
        lock = self._acquire(fresh=True)
        failed = self._sync
        failed.end()
        self._lost_until = self._offset + self._writer.seq
        self._offset = self._lost_until
        self._writer.close()
        self._writer = Writer(lock, self._clock())
        self._sync = GroupCommit(self._writer.descriptor, maintain=self._maintain)
        self._retry_at = 0.0
        self._open(lock)

    def _write(self, body: bytes, *, awaited: bool = False) -> int:
        number = self._writer.write(body)
        self._sync.note(number, awaited=awaited)
        return number + self._offset

    def _write_record(self, record: ControlRecord) -> None:
        self._write(encode_control_record(record))

    def _write_repeats(self, now: float, *, every_period: bool = False) -> None:
        for event, count in self._repeats.finish_periods(now, every_period=every_period):
            self._write(encode_server_event(event, self._writer.seq + 1, now, count))

    def _is_full(self) -> bool:
        writer, limits = self._writer, self._settings
        age = self._clock() - writer.started_at
        return writer.size >= limits.segment_bytes or age >= limits.segment_age_s

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    # The methods below run on the sync thread, so that no call waits for them.

    def _maintain(self, sync: GroupCommit) -> float | None:
        """Do the periodic work; return the seconds until it is due again, or None."""
        with self._lock:
            if self._closed or sync is not self._sync or sync.failure is not None:
                return None
            with suppress(TidegateError):
                self._prepare()
                self._write_repeats(self._clock())
            pause = PERIOD_S if self._repeats.has_open_period else None
        with suppress(TidegateError):
            self._rotate()
        if self._checkpointer is None:
            return pause
        self._remove_expired(self._checkpointer)
        self._checkpoint(self._checkpointer, within_s=0.0)
        due = self._checkpointer.due_in(self._writer.seq)
        return pause if due is None else due if pause is None else min(due, pause)

    def _rotate(self) -> None:
        """Continue in a new segment if this one is full. Raises: TidegateError
        AUDIT_UNAVAILABLE.

        What waits for the disk is done without the lock, so that calls go on meanwhile: their lines
        go into the new segment before the full one is synced. The next sync is that of the full
        one first, so a line in the new one is never called durable without those before it.
        """
        if not self._is_full():
            return
        writer = self._writer
        try:
            path, descriptor = create(self._directory, number_of(writer.path))
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{self._directory}`)") from error
        with self._lock:
            try:
                # Meanwhile the log may have been closed, or have begun a segment after a failure.
                if self._closed or writer is not self._writer or self._sync.failure is not None:
                    raise unavailable("another segment is being written")
                self._write_record(SegmentEnd(writer.seq + 1, self._now(), "continued", path.name))
            except TidegateError:
                path.unlink()
                os.close(descriptor)
                raise
            sync, previous = self._sync, writer.end
            sync.move(descriptor, after=writer.move(path, descriptor, self._clock()))
            if self._checkpointer is not None:
                self._checkpointer.segment_continued(previous.segment)
            empty = SegmentLock(path, descriptor, Tail(0, 0, chain.START, b""), previous=previous)
            self._header = self._segment_header(empty)
            with suppress(TidegateError):  # the next line tries again
                self._write_header()
        sync.flush()

    def _checkpoint(self, checkpointer: Checkpointer, *, within_s: float | None) -> None:
        due = checkpointer.due_in(self._writer.seq)
        if due is not None and (within_s is None or due <= within_s):
            try:
                self._sign(checkpointer)
                self._problems.pop("checkpoints", None)
            except (OSError, TidegateError) as error:
                self._problems["checkpoints"] = str(error)
                self._record_failure("checkpoint.failed", error)

    def _sign(self, checkpointer: Checkpointer) -> None:
        checkpointer.checkpoint(lambda: (self._writer, self._sync), self._lock, self._clock)

    def _remove_expired(self, checkpointer: Checkpointer) -> None:
        """Remove expired segments, after the removal was recorded and signed."""
        if time.monotonic() < self._expire_at:
            return
        self._expire_at = time.monotonic() + EXPIRE_S
        try:
            with checkpointer.expired(self._writer.path, self._clock()) as old:
                if old:
                    details = {"first": old[0].name, "last": old[-1].name}
                    self.record_event(ServerEvent(name="audit.retired", details=details))
                    self._sign(checkpointer)
            self._problems.pop("retirement", None)
        except (OSError, TidegateError) as error:
            self._problems["retirement"] = str(error)
            self._record_failure("retirement.failed", error)

    def _record_failure(self, name: str, error: OSError | TidegateError) -> None:
        self.record_repeated(ServerEvent(name=name, details={"reason": str(error)}))


def _placeholder(directory: Path) -> SegmentLock:
    """A segment that nothing is written to, for the time in which none can be opened."""
    return SegmentLock(directory / "000000.jsonl", open_nowhere(), Tail(0, 0, chain.START, b""))
