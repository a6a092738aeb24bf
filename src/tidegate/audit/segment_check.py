"""Verification of one segment: its chain, its control records, and claims made elsewhere about it.

A claim says which hash or signature a line has. Claims come from headers of other segments, from
checkpoints, and from checkpoints kept outside the log. Each segment is read twice: first only its
control records, to collect claims about other segments, then every line.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.control_records import Checkpoint, PeerPosition, SegmentEnd, SegmentHeader
from tidegate.audit.keys import is_signed
from tidegate.audit.segment import number_of
from tidegate.typed_values import decode_json


class Fault(msgspec.Struct, frozen=True):
    """A place that was changed. `line` counts from 1; 0 means the whole file, an empty `segment`
    the whole log."""

    segment: str
    line: int
    reason: str


class Read(msgspec.Struct, frozen=True):
    """The result of reading one segment: its first number, how many lines verify before the first
    fault, and the hashes (hexadecimal) and checkpoint signatures at the numbers with claims."""

    name: str
    first: int
    lines: int
    broken: bool
    hashes: dict[int, str]
    signatures: dict[int, str]

    @property
    def last(self) -> int:
        """The number of the last line that verifies."""
        return self.first + self.lines - 1

    def line_of(self, seq: int) -> int:
        """The line of the file at which this number is or would be."""
        return max(0, min(seq - self.first + 1, self.lines))


class Claim(msgspec.Struct, frozen=True):
    """States that line `seq` of `segment` has this hash, or is the checkpoint with `signature`.

    `by` describes the source of the claim. `claimer` is the segment and number of a claiming line
    in the log; a claim that comes after a fault is ignored.
    """

    segment: str
    seq: int
    by: str
    hash: str = ""
    signature: str = ""
    claimer: tuple[str, int] | None = None


class Claims:
    """All claims by segment; equal claims of one claimer are kept once."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[int, str, str], Claim]] = {}

    def add(self, claim: Claim) -> None:
        claimer = claim.claimer[0] if claim.claimer is not None else claim.by
        known = self._of.setdefault(claim.segment, {})
        known.setdefault((claim.seq, claim.hash or claim.signature, claimer), claim)

    def add_end(self, end: PeerPosition, by: str, claimer: tuple[str, int] | None = None) -> None:
        self.add(Claim(end.segment, end.seq, by, hash=end.hash, claimer=claimer))

    def add_checkpoint(self, checkpoint: Checkpoint, by: str) -> None:
        """Add the claims of a checkpoint from outside the log: its ends and its own position."""
        for end in checkpoint.ends:
            self.add_end(end, by)
        self.add(Claim(checkpoint.segment, checkpoint.seq, by, signature=checkpoint.signature))

    def segments(self) -> set[str]:
        """The segments with claims from outside the log."""
        return {
            name
            for name, claims in self._of.items()
            if any(claim.claimer is None for claim in claims.values())
        }

    def wanted(self, segment: str) -> frozenset[int]:
        """The numbers of the segment's lines with claims."""
        return frozenset(seq for seq, _, _ in self._of.get(segment, ()))

    def faults(self, read: dict[str, Read], oldest: int) -> Iterator[Fault]:
        """The claims that are not true, one fault for each line. Segments numbered below `oldest`
        may be missing."""
        for name, claims in self._of.items():
            reported: set[int] = set()
            for claim in sorted(claims.values(), key=lambda claim: claim.seq):
                if not _counts(claim, read):
                    continue
                if name not in read:
                    if number_of(name) >= oldest:
                        yield Fault(name, 0, f"the segment was removed: {_evidence(claim)}")
                    break
                fault = _check_claim(claim, read[name])
                if fault is not None and fault.line not in reported:
                    reported.add(fault.line)
                    yield fault


def _counts(claim: Claim, read: dict[str, Read]) -> bool:
    if claim.claimer is None:
        return True
    segment, seq = claim.claimer
    return segment in read and seq <= read[segment].last


def _check_claim(claim: Claim, about: Read) -> Fault | None:
    if claim.seq > about.last:
        if about.broken:
            return None
        return Fault(about.name, about.lines, f"the end was cut off: {_evidence(claim)}")
    if claim.seq < about.first:
        reason = f"rewritten: {_evidence(claim)}, and the segment begins after it"
        return Fault(about.name, 1, reason)
    held = about.signatures.get(claim.seq, "") if claim.signature else about.hashes[claim.seq]
    if held == (claim.signature or claim.hash):
        return None
    reason = f"rewritten: {_evidence(claim)} with other content"
    return Fault(about.name, about.line_of(claim.seq), reason)


def _evidence(claim: Claim) -> str:
    if claim.signature:
        return f"{claim.by} was number {claim.seq}"
    return f"{claim.by} names number {claim.seq}"


_Record = SegmentHeader | Checkpoint | SegmentEnd

_PHASES: dict[bytes, type[_Record]] = {
    b',"phase":"open",': SegmentHeader,
    b',"phase":"checkpoint",': Checkpoint,
    b',"phase":"continued",': SegmentEnd,
}
_PHASE_WITHIN_BYTES = 96
"""The `phase` is within this many bytes of the beginning of a line."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of checking one segment; `held` counts all lines that verify, also after a
    fault."""

    read: Read
    held: int
    checkpoints: int
    faults: list[Fault]
    notes: list[str]


class SegmentCheck:
    """A segment's control records. Only the signatures of checkpoints are checked so far."""

    def __init__(self, path: Path, trusted: dict[str, bytes]) -> None:
        self.path = path
        self.trusted = trusted
        self.previous: PeerPosition | None = None
        self.next = ""
        self.witnesses: list[tuple[int, PeerPosition]] = []
        self.unreadable: list[tuple[int, str]] = []
        self.newest: Checkpoint | None = None
        self.oldest = 1
        self.has_checkpoints = False
        self.first = 1
        seen: set[PeerPosition] = set()
        for place, line in enumerate(_records(path)):
            self._add(line, seen, is_first=place == 0)

    def check(self, claims: Claims) -> Outcome:
        """Verify the chain and the control records. Raises: OSError."""
        return _ChainCheck(self, claims).outcome()

    def _add(self, line: bytes, seen: set[PeerPosition], *, is_first: bool) -> None:
        record = _parse(line)
        if isinstance(record, SegmentHeader):
            if record.previous is not None and is_first:  # on another line it is forged
                self.previous, self.first = record.previous, record.previous.seq + 1
                self._add_position(record.seq, record.previous, seen)
            self.unreadable += ((record.seq, name) for name in record.unreadable)
            for witness in record.witnesses:
                self._add_position(record.seq, witness, seen)
        elif isinstance(record, Checkpoint):
            self.has_checkpoints = True
            if is_signed(record, self.trusted):
                self.newest = record
                self.oldest = max(self.oldest, record.oldest)
                for end in record.ends:
                    if end.segment != self.path.name:
                        self._add_position(record.seq, end, seen)
        elif isinstance(record, SegmentEnd):
            self.next = record.next

    def _add_position(self, seq: int, witness: PeerPosition, seen: set[PeerPosition]) -> None:
        if witness not in seen:
            seen.add(witness)
            self.witnesses.append((seq, witness))


def check_segment(path: Path, trusted: dict[str, bytes]) -> SegmentCheck:
    """Read a segment's control records. Raises: OSError."""
    return SegmentCheck(path, trusted)


class _ChainCheck:
    def __init__(self, found: SegmentCheck, claims: Claims) -> None:
        self._found = found
        self._name = found.path.name
        self._wanted = claims.wanted(self._name)
        self._torn = 0
        self._number = 0
        self._previous = chain.START
        if found.previous is not None:
            try:
                self._previous = bytes.fromhex(found.previous.hash)
            except ValueError:
                self._previous = b""
        self._faults: list[Fault] = []
        self._signatures: dict[int, str] = {}
        self._checkpoints = 0
        self._signed_line = 0
        self._header_line = 1
        self._unsigned: list[tuple[int, int]] = []
        self._last_phase: type[_Record] | None = None
        self._before = b""

    def outcome(self) -> Outcome:
        found = self._found
        with found.path.open("rb") as file:
            checked = chain.check(self._lines(file), self._previous, found.first, self._wanted)
        # A statement in a line that does not verify proves nothing.
        faults = [
            fault
            for fault in self._faults
            if not any(begin <= fault.line <= end for begin, end in checked.runs)
        ]
        faults += (Fault(self._name, broken.line, broken.reason) for broken in checked.faults)
        hashes = {seq: hashed.hex() for seq, hashed in checked.hashes.items()}
        read = Read(
            self._name,
            found.first,
            checked.lines,
            bool(checked.faults),
            hashes,
            {seq: sig for seq, sig in self._signatures.items() if seq in self._wanted},
        )
        return Outcome(
            read, checked.held, self._checkpoints, faults, list(self._notes(self._number))
        )

    def _lines(self, file: Iterator[bytes]) -> Iterator[bytes]:
        continued = False
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                self._torn = len(line)
                return
            self._number = number
            phase = _phase(line)
            if number == 1 and phase is not SegmentHeader:
                self._fault(1, "the segment does not begin with a header")
            if continued:
                self._fault(number, "there is a line after the end of the segment")
            if phase is not None:
                self._check_record(number, line, phase)
            continued = phase is SegmentEnd
            self._last_phase, self._before = phase, line[:-1]
            yield self._before

    def _check_record(self, number: int, line: bytes, phase: type[_Record]) -> None:
        record = _parse(line)
        if record is None:
            self._fault(number, f"the {_describe(phase)} cannot be read")
        elif isinstance(record, SegmentHeader):
            self._check_header(number, record)
        elif isinstance(record, Checkpoint):
            self._check_checkpoint(number, record)

    def _check_header(self, number: int, header: SegmentHeader) -> None:
        if header.segment != self._name:
            self._fault(number, f"the line belongs to {header.segment}")
        if header.previous is not None and number > 1:
            before = header.previous.segment
            self._fault(number, f"the line claims to continue {before}, but is not the first")
        if number > 1 and self._last_phase not in (Checkpoint, SegmentHeader):
            self._unsigned.append((max(self._header_line, self._signed_line + 1), number - 1))
        self._header_line = number
        if header.torn is not None:
            aside = self._found.path.parent / Path(header.torn.file).name
            content = aside.read_bytes() if aside.is_file() else b""
            if f"sha256:{sha256(content).hexdigest()}" != header.torn.digest:
                self._fault(number, f"{aside.name}, which it names, is missing or changed")

    def _check_checkpoint(self, number: int, checkpoint: Checkpoint) -> None:
        if checkpoint.segment != self._name:
            self._fault(number, f"the line belongs to {checkpoint.segment}")
        if not self._found.trusted:
            return
        if not is_signed(checkpoint, self._found.trusted):
            self._fault(number, "the checkpoint is not signed by a trusted key")
            return
        before = chain.unseal(self._before)
        position = PeerPosition(self._name, checkpoint.seq - 1, before[1].hex() if before else "")
        if position not in checkpoint.ends:
            self._fault(number - 1, "rewritten: the checkpoint after it signed another line")
            return
        if checkpoint.seq in self._wanted:
            self._signatures[checkpoint.seq] = checkpoint.signature
        self._checkpoints += 1
        self._signed_line = number

    def _notes(self, lines: int) -> Iterator[str]:
        if self._torn:
            yield f"{self._name} ends in {self._torn} bytes of an unfinished line"
        if not self._found.trusted:
            return
        if self._unsigned:
            count = sum(last - first + 1 for first, last in self._unsigned)
            last = self._unsigned[-1][1]
            yield (
                f"{self._name}: {count} lines, the last of them line {last}, were "
                "written by processes that ended without signing them"
            )
        if lines > self._signed_line and self._last_phase not in (SegmentHeader, SegmentEnd):
            yield f"{self._name}: no checkpoint covers lines {self._signed_line + 1} to {lines} yet"

    def _fault(self, line: int, reason: str) -> None:
        self._faults.append(Fault(self._name, line, reason))


def _records(path: Path) -> Iterator[bytes]:
    """The control records of a file in order, found without reading the other lines."""
    with path.open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return
        with content:
            at = 0
            found = {phase: content.find(phase) for phase in _PHASES}
            while found := {phase: place for phase, place in found.items() if place >= 0}:
                place = min(found.values())
                begin = content.rfind(b"\n", max(0, place - _PHASE_WITHIN_BYTES), place) + 1
                end = content.find(b"\n", place)
                if end >= 0 and (begin or place < _PHASE_WITHIN_BYTES) and begin >= at:
                    yield content[begin:end]
                    at = end
                found = {
                    phase: content.find(phase, place + 1) if known == place else known
                    for phase, known in found.items()
                }


def _phase(line: bytes) -> type[_Record] | None:
    at = line.find(b',"phase":"', 0, _PHASE_WITHIN_BYTES)
    if at < 0:
        return None
    end = line.find(b",", at + 1)
    return _PHASES.get(line[at : end + 1])


def _parse(line: bytes) -> _Record | None:
    """The control record in a line; None if it is another line or cannot be read."""
    phase = _phase(line)
    unsealed = chain.unseal(line.rstrip(b"\n"))
    if phase is None or unsealed is None:
        return None
    try:
        return decode_json(unsealed[0], phase)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _describe(phase: type[_Record]) -> str:
    if phase is SegmentHeader:
        return "header"
    return "checkpoint" if phase is Checkpoint else "end of the segment"
