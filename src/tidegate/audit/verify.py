"""Checks an audit directory and says where it was changed. Reads only, and streams.

Finds, by line, every edit, removal, insertion and exchange; a segment that was removed, an end
that was cut off and a log that was put back to an older copy, up to the newest checkpoint that
the keys or an anchor know of. What no checkpoint covers yet is said in the notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from tidegate.audit.control_records import Checkpoint, parse_checkpoint
from tidegate.audit.cross_checks import Claims, Fault, Read
from tidegate.audit.keys import Keys, is_signed
from tidegate.audit.latest_checkpoint import LatestCheckpoint
from tidegate.audit.segment import number_of, segments, unexpected_files
from tidegate.audit.segment_check import SegmentCheck, check_segment
from tidegate.errors import Code, TidegateError

_MOST_MISSING = 100
"""So many segments of one gap are told each: a file with a great number must not drown the rest."""


_LOOKS = 3
"""How often a log that moves is looked at before a fault in it is believed."""


class Report(msgspec.Struct, frozen=True):
    """What was found. `lines` counts those that hold, `checkpoints` those that are signed by a key
    that is trusted, `signed_until` is the time of the newest; `notes` are no proof of a change."""

    intact: bool
    segments: int
    lines: int
    checkpoints: int
    signed_until: datetime | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def verify(
    directory: Path,
    keys: Path | None = None,
    anchors: Sequence[Checkpoint] = (),
    trusted: dict[str, bytes] | None = None,
) -> Report:
    """Check every segment in the directory, and each against what others say of it.

    `keys` is the directory of the keys and the head, `anchors` are checkpoints from elsewhere,
    `trusted` public keys beside those in `keys`. Without any key signatures are not checked.
    A server may write meanwhile, go on in another segment, make a key and remove what is old:
    what is found while the log moves is believed when it is found again.
    Raises: TidegateError STATE_FAILED if the directory or a file in it cannot be read.
    """
    for _ in range(_LOOKS - 1):
        before = _stand(directory, keys)
        with suppress(TidegateError):
            report = _Verification(directory, keys, anchors, trusted or {}).report()
            if report.intact or _stand(directory, keys) == before:
                return report
    return _Verification(directory, keys, anchors, trusted or {}).report()


def _stand(directory: Path, keys: Path | None) -> dict[Path, tuple[int, int]]:
    """How far the log and its keys have come."""
    found: dict[Path, tuple[int, int]] = {}
    for place in (directory, keys):
        with suppress(OSError):
            for path in place.iterdir() if place is not None else ():
                seen = path.lstat()
                found[path] = (seen.st_size, seen.st_mtime_ns)
    return found


class _Verification:
    def __init__(
        self,
        directory: Path,
        keys: Path | None,
        anchors: Sequence[Checkpoint],
        trusted: dict[str, bytes],
    ) -> None:
        self._directory = directory
        self._trusted = dict(trusted)
        self._head: Checkpoint | None = None
        self._claims = Claims()
        self._faults: list[Fault] = []
        self._notes: list[str] = []
        self._oldest = 1
        self._headless = ""
        self._newest: Checkpoint | None = None
        if keys is not None:
            self._trusted |= Keys(keys).trusted()
            self._take_head(LatestCheckpoint(keys))
        for place, anchor in enumerate(anchors, 1):
            self._take(anchor, f"anchor {place}")

    def report(self) -> Report:
        try:
            scans = [check_segment(path, self._trusted) for path in segments(self._directory)]
            for path in unexpected_files(self._directory):
                self._faults.append(Fault(path.name, 0, "it is no file, and nothing follows of it"))
            self._gather(scans)
            found = {read.path.name: read.check(self._claims) for read in scans}
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"Cannot read the audit log in `{self._directory}`: {error.strerror}.",
                details={"path": str(self._directory)},
            ) from error
        read: dict[str, Read] = {name: outcome.read for name, outcome in found.items()}
        for outcome in found.values():
            self._faults += outcome.faults
            self._notes += outcome.notes
        checkpoints = sum(outcome.checkpoints for outcome in found.values())
        self._miss_head(checkpoints)
        self._faults += self._claims.faults(read, self._oldest)
        self._faults += self._links(scans, read)
        self._faults += self._missing(read)
        self._faults += self._left_alone(scans, read)
        # One fault for each place; what concerns the whole log has no place, so each counts.
        first = {
            (fault.segment, fault.line, "" if fault.segment else fault.reason): fault
            for fault in reversed(self._faults)
        }
        order = [first[place] for place in sorted(first)]
        return Report(
            intact=not order,
            segments=len(found),
            lines=sum(outcome.held for outcome in found.values()),
            checkpoints=checkpoints,
            signed_until=self._newest.time if self._newest is not None else None,
            faults=tuple(order),
            notes=tuple(self._notes),
        )

    def _take_head(self, head: LatestCheckpoint) -> None:
        newest = head.read()
        if newest is not None:
            self._take(newest, "the head")
        elif head.path.exists():
            self._faults.append(Fault("", 0, f"the head `{head.path}` cannot be read"))
        else:
            self._headless = f"the head `{head.path}` is gone"

    def _miss_head(self, checkpoints: int) -> None:
        """After the first checkpoint a crash may have come before its head, after others not."""
        if checkpoints > 1 and self._headless:
            self._faults.append(Fault("", 0, self._headless))

    def _take(self, checkpoint: Checkpoint, by: str) -> None:
        """Hold the log to a checkpoint that was kept outside it."""
        if not is_signed(checkpoint, self._trusted):
            reason = f"{by} is not signed by a key that is known, so nothing follows from it"
            self._faults.append(Fault("", 0, reason))
            return
        self._claims.add_checkpoint(checkpoint, by)
        self._learn(checkpoint)

    def _learn(self, checkpoint: Checkpoint) -> None:
        self._oldest = max(self._oldest, checkpoint.oldest)
        if self._newest is None or self._newest.time < checkpoint.time:
            self._newest = checkpoint

    def _gather(self, scans: list[SegmentCheck]) -> None:
        for read in scans:
            if read.newest is not None:
                self._learn(msgspec.structs.replace(read.newest, oldest=read.oldest))
            for seq, witness in read.witnesses:
                by = f"{read.path.name} number {seq}"
                self._claims.add_end(witness, by, (read.path.name, seq))
        if not self._trusted and any(read.has_checkpoints for read in scans):
            self._notes.append("no public key was given, so no signature was checked")

    def _links(self, scans: list[SegmentCheck], read: dict[str, Read]) -> Iterator[Fault]:
        """Where a chain goes on in another segment, both ends must say so."""
        by_name = {each.path.name: each for each in scans}
        for each in scans:
            name, previous, following = each.path.name, each.previous, each.next
            if previous is not None:
                before = by_name.get(previous.segment)
                if before is None:
                    if number_of(previous.segment) >= self._oldest:
                        yield Fault(previous.segment, 0, f"the segment was removed: {name} follows")
                elif not read[before.path.name].broken and before.next != name:
                    end = read[before.path.name].lines
                    yield Fault(before.path.name, end, f"the end was cut off: {name} follows it")
            if following and not read[name].broken:
                after = by_name.get(following)
                if after is None:
                    if number_of(following) >= self._oldest:
                        yield Fault(following, 0, f"the segment was removed: {name} goes on in it")
                elif read[following].lines and (
                    after.previous is None or after.previous.segment != name
                ):
                    yield Fault(following, 1, f"written anew: {name} goes on in it")

    def _left_alone(self, scans: list[SegmentCheck], read: dict[str, Read]) -> Iterator[Fault]:
        """Segments whose end a process found changed when it began, if nothing else tells."""
        told = {fault.segment for fault in self._faults}
        for each in scans:
            for seq, name in each.unreadable:
                if seq <= read[each.path.name].last and name not in told:
                    by = f"{each.path.name} number {seq}"
                    yield Fault(name, 0, f"its end was changed or cut off when {by} was written")

    def _missing(self, read: dict[str, Read]) -> Iterator[Fault]:
        told = {fault.segment for fault in self._faults}
        numbers = {number_of(name) for name in read}
        known = numbers | {number_of(name) for name in self._claims.segments()}
        before = self._oldest - 1
        for number in sorted(number for number in known if number >= self._oldest):
            gap = range(before + 1, number + (number not in numbers))
            for missing in gap[:_MOST_MISSING]:
                name = f"{missing:06}.jsonl"
                if name not in told:
                    yield Fault(name, 0, "the segment was removed")
            if gap[_MOST_MISSING:]:
                name = f"{gap[_MOST_MISSING]:06}.jsonl"
                yield Fault(name, 0, f"the segments up to number {gap[-1]} were removed")
            before = number


def read_anchors(text_or_path: str) -> list[Checkpoint]:
    """The checkpoints in a text, or in the file that it names, one a line.

    Raises: TidegateError ARGUMENT_INVALID.
    """
    text = text_or_path
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Cannot read the anchor `{text_or_path}`: {reason}.",
                hint="Name a file with checkpoints, or give one as it was printed.",
            ) from None
    lines = [line for line in text.splitlines() if line.strip()]
    found = [parse_checkpoint(line) for line in lines[:-1]]
    try:
        found.append(parse_checkpoint(lines[-1] if lines else ""))
    except TidegateError:
        # A crash may have cut the last one short.
        if not found:
            raise
    return found
