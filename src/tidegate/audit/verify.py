"""Checks an audit directory and says where it was changed. Reads only.

Finds, by line, every edit, removal, insertion and exchange within a segment; a segment that was
removed; and an end that was cut off, as far as a process that started later in another segment
has seen it. It cannot find an end cut off after that, nor records that were written anew from
some line on by someone who may write the directory: only a signed checkpoint kept elsewhere can.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.event import Opening
from tidegate.audit.segment import segments
from tidegate.errors import Code, GateError

_OPENING = b',"phase":"open",'


class Fault(msgspec.Struct, frozen=True):
    """Something that is not as it was written. `line` counts from 1; 0 means the whole file."""

    segment: str
    line: int
    reason: str


class Report(msgspec.Struct, frozen=True):
    """What was found. `lines` counts those that hold; `notes` are no proof of a change."""

    segments: int
    lines: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]

    @property
    def intact(self) -> bool:
        return not self.faults


class _Segment:
    """A segment while it is read: its lines go through the chain, its openings are kept."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.directory = path.parent
        self.torn = 0
        self.openings: list[tuple[int, bytes]] = []
        with path.open("rb") as file:
            self.checked = chain.check(self._lines(file))

    def _lines(self, file: Iterator[bytes]) -> Iterator[bytes]:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                self.torn = len(line)
                return
            if _OPENING in line[:128]:
                self.openings.append((number, line))
            yield line[:-1]

    def hash_at(self, seq: int) -> str | None:
        """The hash of the line `seq`, if that far the chain holds."""
        return self.checked.hashes[32 * (seq - 1) : 32 * seq].hex() if seq else None


def verify(directory: Path) -> Report:
    """Check every segment in the directory, and each against what later ones say of it.

    Raises: GateError STATE_FAILED if the directory or a file in it cannot be read.
    """
    try:
        found = {path.name: _Segment(path) for path in segments(directory)}
        faults = [fault for segment in found.values() for fault in _faults(segment, found)]
    except OSError as error:
        raise GateError(
            Code.STATE_FAILED, f"Cannot read the audit log in `{directory}`: {error.strerror}."
        ) from error
    known = {*found, *(fault.segment for fault in faults)}
    for number in range(1, int(max(found, default="0.").partition(".")[0])):
        if (name := f"{number:06}.jsonl") not in known:
            faults.append(Fault(name, 0, "the segment was removed"))
    return Report(
        segments=len(found),
        lines=sum(segment.checked.lines for segment in found.values()),
        faults=tuple(sorted(faults, key=lambda fault: (fault.segment, fault.line))),
        notes=tuple(
            f"{segment.name} ends in {segment.torn} bytes of an unfinished line"
            for segment in found.values()
            if segment.torn
        ),
    )


def _faults(segment: _Segment, found: dict[str, _Segment]) -> Iterator[Fault]:
    broken = segment.checked.fault
    if broken is not None:
        yield Fault(segment.name, broken.line, broken.reason)
    if segment.checked.lines and (not segment.openings or segment.openings[0][0] != 1):
        yield Fault(segment.name, 1, "the segment does not begin with an opening")
    for number, line in segment.openings:
        if number > segment.checked.lines:
            return
        try:
            opening = msgspec.json.decode(line, type=Opening)
        except msgspec.MsgspecError:
            yield Fault(segment.name, number, "the opening cannot be read")
            continue
        yield from _opening_faults(segment, number, opening, found)


def _opening_faults(
    segment: _Segment, number: int, opening: Opening, found: dict[str, _Segment]
) -> Iterator[Fault]:
    if opening.segment != segment.name:
        yield Fault(segment.name, number, f"the line belongs to {opening.segment}")
    for witness in opening.witnesses:
        other = found.get(witness.segment)
        seen_by = f"{segment.name} line {number} saw line {witness.seq}"
        if other is None:
            yield Fault(witness.segment, 0, f"the segment was removed: {seen_by}")
        elif other.checked.fault is None and witness.seq > other.checked.lines:
            yield Fault(witness.segment, other.checked.lines, f"the end was cut off: {seen_by}")
        elif witness.seq <= other.checked.lines and other.hash_at(witness.seq) != witness.hash:
            yield Fault(witness.segment, witness.seq, f"written anew: {seen_by} differ")
    if opening.torn is not None:
        aside = segment.directory / Path(opening.torn.file).name
        content = aside.read_bytes() if aside.is_file() else b""
        if f"sha256:{sha256(content).hexdigest()}" != opening.torn.digest:
            yield Fault(segment.name, number, f"{aside.name}, which it names, is gone or changed")
