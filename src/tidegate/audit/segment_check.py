"""Reads one segment for the verifier, twice: its marks at first, then line by line.

The first time finds what a segment claims about others, without looking at the lines between. The
second follows the chain and holds every mark to its place.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.control_records import Checkpoint, PeerPosition, SegmentEnd, SegmentHeader
from tidegate.audit.cross_checks import Claims, Fault, Read
from tidegate.audit.keys import is_signed

_Mark = SegmentHeader | Checkpoint | SegmentEnd

_PHASES: dict[bytes, type[_Mark]] = {
    b',"phase":"open",': SegmentHeader,
    b',"phase":"checkpoint",': Checkpoint,
    b',"phase":"continued",': SegmentEnd,
}
_HEAD_BYTES = 96
"""Within so many bytes of its beginning a line says what it is."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of following one segment's chain; `held` counts every line that holds, also those
    after a fault."""

    read: Read
    held: int
    checkpoints: int
    faults: list[Fault]
    notes: list[str]


class SegmentCheck:
    """A segment's marks, as it states them itself: nothing of it is checked yet, but that
    checkpoints are signed by a trusted key."""

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
        for place, line in enumerate(_marks(path)):
            self._take(line, seen, is_first=place == 0)

    def check(self, claims: Claims) -> Outcome:
        """Follow the chain and hold the marks to their places. Raises: OSError."""
        return _Following(self, claims).outcome()

    def _take(self, line: bytes, seen: set[PeerPosition], *, is_first: bool) -> None:
        mark = _parse(line)
        if isinstance(mark, SegmentHeader):
            if mark.previous is not None and is_first:  # elsewhere it was put in
                self.previous, self.first = mark.previous, mark.previous.seq + 1
                self._see(mark.seq, mark.previous, seen)
            self.unreadable += ((mark.seq, name) for name in mark.unreadable)
            for witness in mark.witnesses:
                self._see(mark.seq, witness, seen)
        elif isinstance(mark, Checkpoint):
            self.has_checkpoints = True
            if is_signed(mark, self.trusted):
                self.newest = mark
                self.oldest = max(self.oldest, mark.oldest)
                for end in mark.ends:
                    if end.segment != self.path.name:
                        self._see(mark.seq, end, seen)
        elif isinstance(mark, SegmentEnd):
            self.next = mark.next

    def _see(self, seq: int, witness: PeerPosition, seen: set[PeerPosition]) -> None:
        if witness not in seen:
            seen.add(witness)
            self.witnesses.append((seq, witness))


def check_segment(path: Path, trusted: dict[str, bytes]) -> SegmentCheck:
    """Find a segment's marks. Raises: OSError."""
    return SegmentCheck(path, trusted)


class _Following:
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
        self._left: list[tuple[int, int]] = []
        self._last_phase: type[_Mark] | None = None
        self._before = b""

    def outcome(self) -> Outcome:
        found = self._found
        with found.path.open("rb") as file:
            checked = chain.check(self._lines(file), self._previous, found.first, self._wanted)
        # What a line says that does not hold is no proof of anything.
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
                self._fault(1, "the segment does not begin with an opening")
            if continued:
                self._fault(number, "there is a line after the one that says where it goes on")
            if phase is not None:
                self._hold(number, line, phase)
            continued = phase is SegmentEnd
            self._last_phase, self._before = phase, line[:-1]
            yield self._before

    def _hold(self, number: int, line: bytes, phase: type[_Mark]) -> None:
        mark = _parse(line)
        if mark is None:
            self._fault(number, f"the {_word(phase)} cannot be read")
        elif isinstance(mark, SegmentHeader):
            self._hold_opening(number, mark)
        elif isinstance(mark, Checkpoint):
            self._hold_checkpoint(number, mark)

    def _hold_opening(self, number: int, opening: SegmentHeader) -> None:
        if opening.segment != self._name:
            self._fault(number, f"the line belongs to {opening.segment}")
        if opening.previous is not None and number > 1:
            self._fault(number, f"the line says that the chain of {opening.previous.segment} is it")
        if self._last_phase not in (None, Checkpoint, SegmentHeader) and number > 1:
            self._left.append((self._signed_line + 1, number - 1))
        if opening.torn is not None:
            aside = self._found.path.parent / Path(opening.torn.file).name
            content = aside.read_bytes() if aside.is_file() else b""
            if f"sha256:{sha256(content).hexdigest()}" != opening.torn.digest:
                self._fault(number, f"{aside.name}, which it names, is gone or changed")

    def _hold_checkpoint(self, number: int, checkpoint: Checkpoint) -> None:
        if checkpoint.segment != self._name:
            self._fault(number, f"the line belongs to {checkpoint.segment}")
        if not self._found.trusted:
            return
        if not is_signed(checkpoint, self._found.trusted):
            self._fault(number, "the checkpoint is not signed by a key that is known")
            return
        before = chain.unseal(self._before)
        stands = PeerPosition(self._name, checkpoint.seq - 1, before[1].hex() if before else "")
        if stands not in checkpoint.ends:
            self._fault(number - 1, "written anew: the checkpoint after it signed another line")
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
        if self._left:
            count = sum(last - first + 1 for first, last in self._left)
            yield (
                f"{self._name}: {count} lines, the last of them line {self._left[-1][1]}, were "
                "written by processes that ended without signing them"
            )
        if lines > self._signed_line and self._last_phase not in (SegmentHeader, SegmentEnd):
            yield f"{self._name}: no checkpoint covers lines {self._signed_line + 1} to {lines} yet"

    def _fault(self, line: int, reason: str) -> None:
        self._faults.append(Fault(self._name, line, reason))


def _marks(path: Path) -> Iterator[bytes]:
    """The lines that are marks, in order, found without reading those between."""
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
                begin = content.rfind(b"\n", max(0, place - _HEAD_BYTES), place) + 1
                end = content.find(b"\n", place)
                if end >= 0 and (begin or place < _HEAD_BYTES) and begin >= at:
                    yield content[begin:end]
                    at = end
                found = {
                    phase: content.find(phase, place + 1) if known == place else known
                    for phase, known in found.items()
                }


def _phase(line: bytes) -> type[_Mark] | None:
    at = line.find(b',"phase":"', 0, _HEAD_BYTES)
    if at < 0:
        return None
    end = line.find(b",", at + 1)
    return _PHASES.get(line[at : end + 1])


def _parse(line: bytes) -> _Mark | None:
    """The mark in a line; None if it is none, or cannot be read."""
    phase = _phase(line)
    unsealed = chain.unseal(line.rstrip(b"\n"))
    if phase is None or unsealed is None:
        return None
    try:
        return msgspec.json.decode(unsealed[0], type=phase)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _word(phase: type[_Mark]) -> str:
    return "line that goes on" if phase is SegmentEnd else phase.__name__.lower()
