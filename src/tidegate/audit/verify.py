"""Verification of an audit directory: reports every place that was changed. Reads only.

Each edit, removal, insertion and reordering is reported with its line. Removed segments, truncated
ends and a log that was replaced by an older copy are found up to the newest checkpoint, which is
kept with the keys or in an anchor. Notes say which lines no checkpoint covers yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from tidegate.audit.checkpoints import LatestCheckpoint
from tidegate.audit.control_records import Checkpoint, parse_checkpoint
from tidegate.audit.keys import Keys, is_signed
from tidegate.audit.segment import number_of, segments, unexpected_files
from tidegate.audit.segment_check import Claim, Claims, Fault, Read, SegmentCheck, check_segment
from tidegate.errors import Code, TidegateError

_MOST_MISSING = 100
"""The number of missing segments in a gap that get a fault each. A file with a large number must
not fill the report."""


_ATTEMPTS = 3
"""How often a log that is being written is checked before a fault is reported."""


class Outside(msgspec.Struct, frozen=True):
    """What is known of a log elsewhere: checkpoints, by who has them, and claims of other logs."""

    heads: Mapping[str, Checkpoint] = {}
    claims: tuple[Claim, ...] = ()


NOTHING = Outside()


class Report(msgspec.Struct, frozen=True):
    """The result of a verification.

    `lines` counts the lines that verify, `checkpoints` those with a trusted signature,
    `signed_until` is the time of the newest. `notes` are not evidence of a change. `unchecked` says
    what could not be checked for want of a key or of a checkpoint kept outside the log: `intact`
    says nothing of that.
    """

    intact: bool
    segments: int
    lines: int
    checkpoints: int
    signed_until: datetime | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


def verify(
    directory: Path,
    keys: Path | None = None,
    anchors: Sequence[Checkpoint] = (),
    trusted: dict[str, bytes] | None = None,
    outside: Outside = NOTHING,
) -> Report:
    """Check every segment in the directory, and what other segments and checkpoints say about it.

    `keys` is the directory of the keys and the newest checkpoint, `anchors` are checkpoints from
    elsewhere, `trusted` are public keys in addition to those in `keys`, `outside` is what a state
    and other records say of this one. Without a key, signatures are not checked. A server may write
    to the log, begin segments, create a key and remove expired segments at the same time: a fault
    is reported only if a second check finds it as well.
    Raises: TidegateError STATE_FAILED if the directory or a file in it cannot be read.
    """
    for _ in range(_ATTEMPTS - 1):
        before = _snapshot(directory, keys)
        with suppress(TidegateError):
            report = _Verification(directory, keys, anchors, trusted or {}, outside).report()
            if report.intact or _snapshot(directory, keys) == before:
                return report
    return _Verification(directory, keys, anchors, trusted or {}, outside).report()


def _snapshot(directory: Path, keys: Path | None) -> dict[Path, tuple[int, int]]:
    """Size and time of each file of the log and its keys, to see whether they changed."""
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
        outside: Outside = NOTHING,
    ) -> None:
        self._directory = directory
        self._trusted = dict(trusted)
        self._latest: Checkpoint | None = None
        self._claims = Claims()
        self._faults: list[Fault] = []
        self._notes: list[str] = []
        self._oldest = 1
        self._has_outside = False
        self._latest_missing = ""
        self._newest: Checkpoint | None = None
        if keys is not None:
            self._trusted |= Keys(keys).trusted()
            self._add_latest(LatestCheckpoint(keys))
        for place, anchor in enumerate(anchors, 1):
            self._add_checkpoint(anchor, f"anchor {place}")
        for by, head in outside.heads.items():
            self._add_checkpoint(head, by)
        for claim in outside.claims:
            self._claims.add(claim)

    def report(self) -> Report:
        try:
            checks = [check_segment(path, self._trusted) for path in segments(self._directory)]
            for path in unexpected_files(self._directory):
                self._faults.append(Fault(path.name, 0, "it is not a regular file"))
            self._add_claims(checks)
            found = {read.path.name: read.check(self._claims) for read in checks}
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
        self._check_latest_exists(checkpoints)
        self._faults += self._claims.faults(read, self._oldest)
        self._faults += self._links(checks, read)
        self._faults += self._missing(read)
        self._faults += self._unreadable_ends(checks, read)
        # One fault for each line; faults of the whole log have no line, so all are kept.
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
            unchecked=tuple(self._unchecked()) if any(each.lines for each in read.values()) else (),
        )

    def _unchecked(self) -> Iterator[str]:
        """What someone with the log alone could have changed without a fault here."""
        if not self._trusted:
            yield "no public key was given, so no signature was checked"
        if not self._has_outside:
            yield (
                "no checkpoint from outside the log was there (`audit-key/head.json` or an anchor),"
                " so lines that were cut off at the end would not be seen"
            )

    def _add_latest(self, latest: LatestCheckpoint) -> None:
        newest = latest.read()
        if newest is not None:
            self._add_checkpoint(newest, "the newest checkpoint")
        elif latest.path.exists():
            reason = f"the newest checkpoint, `{latest.path}`, cannot be read"
            self._faults.append(Fault("", 0, reason))
        else:
            self._latest_missing = f"the newest checkpoint, `{latest.path}`, is missing"

    def _check_latest_exists(self, checkpoints: int) -> None:
        """A crash can explain a missing file after the first checkpoint, but not after others."""
        if checkpoints > 1 and self._latest_missing:
            self._faults.append(Fault("", 0, self._latest_missing))

    def _add_checkpoint(self, checkpoint: Checkpoint, by: str) -> None:
        """Add the claims of a checkpoint that was kept outside the log."""
        if not is_signed(checkpoint, self._trusted):
            reason = f"{by} is not signed by a trusted key and was ignored"
            self._faults.append(Fault("", 0, reason))
            return
        self._has_outside = True
        self._claims.add_checkpoint(checkpoint, by)
        self._note_checkpoint(checkpoint)

    def _note_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._oldest = max(self._oldest, checkpoint.oldest)
        if self._newest is None or self._newest.time < checkpoint.time:
            self._newest = checkpoint

    def _add_claims(self, checks: list[SegmentCheck]) -> None:
        for read in checks:
            if read.newest is not None:
                self._note_checkpoint(msgspec.structs.replace(read.newest, oldest=read.oldest))
            for seq, witness in read.witnesses:
                by = f"{read.path.name} number {seq}"
                self._claims.add_end(witness, by, (read.path.name, seq))

    def _links(self, checks: list[SegmentCheck], read: dict[str, Read]) -> Iterator[Fault]:
        """Both segments must state that one continues the other."""
        by_name = {each.path.name: each for each in checks}
        for each in checks:
            name, previous, following = each.path.name, each.previous, each.next
            if previous is not None:
                before = by_name.get(previous.segment)
                if before is None:
                    if number_of(previous.segment) >= self._oldest:
                        reason = f"the segment was removed: {name} continues it"
                        yield Fault(previous.segment, 0, reason)
                elif not read[before.path.name].broken and before.next != name:
                    end = read[before.path.name].lines
                    reason = f"the end was cut off: {name} continues it"
                    yield Fault(before.path.name, end, reason)
            if following and not read[name].broken:
                after = by_name.get(following)
                if after is None:
                    if number_of(following) >= self._oldest:
                        yield Fault(following, 0, f"the segment was removed: it continued {name}")
                elif read[following].lines and (
                    after.previous is None or after.previous.segment != name
                ):
                    yield Fault(following, 1, f"rewritten: it continued {name}")

    def _unreadable_ends(
        self, checks: list[SegmentCheck], read: dict[str, Read]
    ) -> Iterator[Fault]:
        """Segments whose end a starting process found changed, unless another fault names them."""
        reported = {fault.segment for fault in self._faults}
        for each in checks:
            for seq, name in each.unreadable:
                if seq <= read[each.path.name].last and name not in reported:
                    by = f"{each.path.name} number {seq}"
                    yield Fault(name, 0, f"its end was changed or cut off when {by} was written")

    def _missing(self, read: dict[str, Read]) -> Iterator[Fault]:
        """Every number of which no segment is left; of one that is known for missing already, the
        first fault is kept."""
        numbers = {number_of(name) for name in read}
        known = numbers | {number_of(name) for name in self._claims.segments()}
        before = self._oldest - 1
        for number in sorted(number for number in known if number >= self._oldest):
            gap = range(before + 1, number + (number not in numbers))
            for missing in gap[:_MOST_MISSING]:
                yield Fault(f"{missing:06}.jsonl", 0, "the segment was removed")
            if gap[_MOST_MISSING:]:
                name = f"{gap[_MOST_MISSING]:06}.jsonl"
                yield Fault(name, 0, f"the segments up to number {gap[-1]} were removed")
            before = number


def read_anchors(text_or_path: str) -> list[Checkpoint]:
    """The checkpoints in a text, or in the file that it names, one in a line.

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
                hint="Name a file of checkpoints, or give what `tidegate audit checkpoint` prints.",
            ) from None
    lines = [line for line in text.splitlines() if line.strip()]
    found = [parse_checkpoint(line) for line in lines[:-1]]
    try:
        found.append(parse_checkpoint(lines[-1] if lines else ""))
    except TidegateError:
        # A crash may have truncated the last one.
        if not found:
            raise
    return found
