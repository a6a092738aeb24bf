"""What is claimed about lines by others than their own chain, and which of it does not hold.

Claims come from openings, which saw the ends of other segments; from checkpoints; and from
checkpoints that were kept outside the log. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.audit.control_records import Checkpoint, PeerPosition
from tidegate.audit.segment import number_of


class Fault(msgspec.Struct, frozen=True):
    """Something that is not as it was written. `line` counts from 1; 0 means the whole file, and
    an empty `segment` the whole log."""

    segment: str
    line: int
    reason: str


class Read(msgspec.Struct, frozen=True):
    """What reading one segment told: its first number, how many lines hold, the hashes (in
    hexadecimal) and the checkpoints' signatures at the numbers that were asked for."""

    name: str
    first: int
    lines: int
    broken: bool
    hashes: dict[int, str]
    signatures: dict[int, str]

    @property
    def last(self) -> int:
        """The number of the last line that holds."""
        return self.first + self.lines - 1

    def line_of(self, seq: int) -> int:
        """Where in the file the line with this number stands, or would."""
        return max(0, min(seq - self.first + 1, self.lines))


class Claim(msgspec.Struct, frozen=True):
    """`seq` of `segment` has this hash or, with `signature`, is the checkpoint signed so.

    `by` says who claims it; `segment` and `seq` of a claimer in the log are given, because a claim
    from behind a fault counts for nothing.
    """

    segment: str
    seq: int
    by: str
    hash: str = ""
    signature: str = ""
    claimer: tuple[str, int] | None = None


class Claims:
    """All claims, by the segment that they are about; the same one is kept once for a claimer."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[int, str, str], Claim]] = {}

    def add(self, claim: Claim) -> None:
        claimer = claim.claimer[0] if claim.claimer is not None else claim.by
        known = self._of.setdefault(claim.segment, {})
        known.setdefault((claim.seq, claim.hash or claim.signature, claimer), claim)

    def add_end(self, end: PeerPosition, by: str, claimer: tuple[str, int] | None = None) -> None:
        self.add(Claim(end.segment, end.seq, by, hash=end.hash, claimer=claimer))

    def add_checkpoint(self, checkpoint: Checkpoint, by: str) -> None:
        """What a checkpoint from outside the log claims: the ends, and where it stands itself."""
        for end in checkpoint.ends:
            self.add_end(end, by)
        self.add(Claim(checkpoint.segment, checkpoint.seq, by, signature=checkpoint.signature))

    def segments(self) -> set[str]:
        """The segments that something is claimed about by who counts in any case."""
        return {
            name
            for name, claims in self._of.items()
            if any(claim.claimer is None for claim in claims.values())
        }

    def wanted(self, segment: str) -> frozenset[int]:
        """The numbers of the segment's lines that something is claimed about."""
        return frozenset(seq for seq, _, _ in self._of.get(segment, ()))

    def faults(self, read: dict[str, Read], oldest: int) -> Iterator[Fault]:
        """The claims that do not hold, one fault for each line; segments below `oldest` may be
        gone."""
        for name, claims in self._of.items():
            told: set[int] = set()
            for claim in sorted(claims.values(), key=lambda claim: claim.seq):
                if not _counts(claim, read):
                    continue
                if name not in read:
                    if number_of(name) >= oldest:
                        yield Fault(name, 0, f"the segment was removed: {_saw(claim)}")
                    break
                fault = _weigh(claim, read[name])
                if fault is not None and fault.line not in told:
                    told.add(fault.line)
                    yield fault


def _counts(claim: Claim, read: dict[str, Read]) -> bool:
    if claim.claimer is None:
        return True
    segment, seq = claim.claimer
    return segment in read and seq <= read[segment].last


def _weigh(claim: Claim, about: Read) -> Fault | None:
    if claim.seq > about.last:
        if about.broken:
            return None
        return Fault(about.name, about.lines, f"the end was cut off: {_saw(claim)}")
    if claim.seq < about.first:
        return Fault(about.name, 1, f"written anew: {_saw(claim)}, and the segment begins after it")
    held = about.signatures.get(claim.seq, "") if claim.signature else about.hashes[claim.seq]
    if held == (claim.signature or claim.hash):
        return None
    return Fault(about.name, about.line_of(claim.seq), f"written anew: {_saw(claim)} differ")


def _saw(claim: Claim) -> str:
    if claim.signature:
        return f"{claim.by} stood at number {claim.seq}"
    return f"{claim.by} saw number {claim.seq}"
