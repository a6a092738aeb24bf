"""Verification of the records of several gates together, with what their state knows of them.

Each record is verified by itself (`verify`), up to its head in the state and to what other records
saw of it. Then they are compared: each gate of the state must be there, each process must have
written to one record, and what counts once (an approval, a sealed request) must be used once over
all. Reads only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.audit.chain_uses import NONCE_USED, RETURNED, ChainUses, SeenHead, read_uses
from tidegate.audit.checkpoints import is_recorded
from tidegate.audit.control_records import Checkpoint, parse_checkpoint
from tidegate.audit.keys import Keys, fingerprint, parse_public
from tidegate.audit.segment import segments
from tidegate.audit.segment_check import Claim, Fault
from tidegate.audit.shipped import find_gate_id
from tidegate.audit.verify import Outside, Report, verify
from tidegate.errors import Code, TidegateError
from tidegate.store.gates import GateEntry

_ATTEMPTS = 3
_LAG = timedelta(seconds=120)
"""By so much the clocks of a gate and of the state may differ, and a head may be late."""
_SHOWN = 10
"""The number of faults of one kind that are each described."""


class GateRecord(msgspec.Struct, frozen=True):
    """The record of one gate: its id (empty if it has none) and the result of its verification."""

    directory: str
    gate: str
    report: Report


class JointReport(msgspec.Struct, frozen=True):
    """The result for all together. `faults` are those between the records and the state; each
    record's own are in its report."""

    intact: bool
    lines: int
    gates: tuple[GateRecord, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


class _Place(NamedTuple):
    """Where one record is, and what it says."""

    shown: str
    log: Path
    keys: Path | None
    gate: str
    uses: ChainUses


def verify_together(
    directories: Sequence[Path],
    known: Sequence[GateEntry] | None,
    anchors: Sequence[Checkpoint] = (),
    trusted: Mapping[str, bytes] | None = None,
    *,
    complete: bool = True,
) -> JointReport:
    """Verify the records of these state directories, or copies of them. `known` are the gates of
    the state, None where it was not asked. Without `complete`, other gates may be elsewhere.

    What is compared is read again while gates write, so that a use of which only the half was on
    the disk is no fault. Raises: TidegateError STATE_FAILED if a file cannot be read,
    ARGUMENT_INVALID for a directory without a record.
    """
    places, faults = _read(directories, complete=complete)
    for _ in range(_ATTEMPTS - 1):
        if faults:
            places, faults = _read(directories, complete=complete)
    entries = {entry.id: entry for entry in known or ()}
    seen = [head for place in places for head in place.uses.seen.values()]
    checks = [_Check(place, places, entries, known is not None) for place in places]
    gates = tuple([check.record(anchors, trusted or {}) for check in checks])
    unchecked = [text for check in checks for text in check.unchecked]
    notes: list[str] = []
    if known is None:
        unchecked.append("no state was asked, so a gate that is missing would not be seen")
    missing = list(_missing(places, entries, seen))
    if complete:
        faults += missing
    elif missing:
        notes.append(
            f"{len(missing)} other records belong to this state: name the directories of all gates"
            " to verify them together"
        )
    used = {key for check in checks for key in check.keys}
    faults += [
        f"anchor {number} is not signed by a key of these records, and was ignored"
        for number, anchor in enumerate(anchors, 1)
        if anchor.key not in used
    ]
    return JointReport(
        intact=not faults and all(each.report.intact for each in gates),
        lines=sum(each.report.lines for each in gates),
        gates=gates,
        faults=tuple(faults),
        notes=tuple(notes),
        unchecked=tuple(unchecked),
    )


def _read(directories: Sequence[Path], *, complete: bool) -> tuple[list[_Place], list[str]]:
    """Where the records are, what they say, and the faults between them."""
    places = [_find(directory) for directory in directories]
    return places, list(_compare(places, complete=complete))


def _find(directory: Path) -> _Place:
    inner = directory / "audit"
    log = inner if inner.is_dir() else directory
    if log is directory and not (log.is_dir() and segments(log)):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no record in `{directory}`.",
            hint="Name the state directory of a gate, or a copy of it with `audit` in it.",
        )
    keys = directory / "audit-key"
    try:
        gate = find_gate_id(log)
    except (OSError, UnicodeDecodeError):
        gate = ""
    return _Place(str(directory), log, keys if keys.is_dir() else None, gate, read_uses(log))


class _Check:
    """The verification of one record with what the state and other records say of it."""

    def __init__(
        self,
        place: _Place,
        places: Sequence[_Place],
        entries: Mapping[str, GateEntry],
        has_state: bool,
    ) -> None:
        self._place = place
        self._others = [other.log for other in places if other is not place]
        self._entry = entries.get(place.gate) if place.gate else None
        self._has_state = has_state
        self._seen = [
            (other.shown, head)
            for other in places
            if other is not place and (head := other.uses.seen.get(place.gate)) is not None
        ]
        self._faults: list[str] = []
        self.keys: set[str] = set()
        """The fingerprints of the keys that were trusted for it."""
        self.unchecked: list[str] = []

    def record(self, anchors: Sequence[Checkpoint], trusted: Mapping[str, bytes]) -> GateRecord:
        """Verify it. Raises: TidegateError STATE_FAILED."""
        place = self._place
        keys = dict(trusted)
        own = Keys(place.keys).trusted() if place.keys is not None else {}
        self._trust_entry(keys, own)
        self.keys = keys.keys() | own.keys()
        mine = [each for each in anchors if each.key in self.keys and not self._is_elsewhere(each)]
        head = self._head()
        heads = {"its head in the state": head} if head is not None else {}
        report = verify(place.log, place.keys, mine, keys, Outside(heads, tuple(self._claims())))
        if self._has_state:
            self._check_entry(report, head)
        faults = (*report.faults, *(Fault("", 0, reason) for reason in self._faults))
        report = msgspec.structs.replace(report, faults=faults, intact=not faults)
        return GateRecord(place.shown, place.gate, report)

    def _is_elsewhere(self, anchor: Checkpoint) -> bool:
        """Whether another one of the records holds it: a gate that was restored from a backup has
        the key of the former."""
        for other in self._others:
            with suppress(OSError):
                if is_recorded(other, anchor):
                    return True
        return False

    def _trust_entry(self, keys: dict[str, bytes], own: Mapping[str, bytes]) -> None:
        """The key that the state has counts for a copy without keys; elsewhere it must be one of
        the record's own."""
        if self._entry is None:
            return
        try:
            public = parse_public(self._entry.public_key)
        except TidegateError:
            self._faults.append("its key in the state cannot be read")
            return
        name = fingerprint(public)
        if self._place.keys is None:
            keys.setdefault(name, public)
        elif name not in own and name not in keys:
            self._faults.append("the state has another key for this gate than its directory")

    def _head(self) -> Checkpoint | None:
        if self._entry is None or not self._entry.head:
            return None
        try:
            return parse_checkpoint(self._entry.head)
        except TidegateError:
            self._faults.append("its head in the state cannot be read")
            return None

    def _claims(self) -> Iterator[Claim]:
        for other, head in self._seen:
            by = f"{other} {head.by}"
            yield Claim(head.segment, head.seq, by, signature=head.signature)

    def _check_entry(self, report: Report, head: Checkpoint | None) -> None:
        """See whether the state knows of the gate what it must know."""
        entry = self._entry
        if not self._place.gate:
            self.unchecked.append(
                f"{self._place.shown} has no `gate-id`, so its head in the state could not be found"
            )
        elif entry is None:
            self._faults.append(
                f"the state does not know this gate, {self._place.gate}: its row was removed, or"
                " this is another state"
            )
        elif not entry.head:
            if report.checkpoints > 1:
                self._faults.append("its head in the state was removed")
        elif head is not None:
            self._check_age(report, entry, head)

    def _check_age(self, report: Report, entry: GateEntry, head: Checkpoint) -> None:
        for other, seen in self._seen:
            if seen.time > head.time + _LAG:
                self._faults.append(
                    f"its head in the state, of {_moment(head.time)}, was put back: {other}"
                    f" {seen.by} has seen one of {_moment(seen.time)}"
                )
                return
        until = report.signed_until
        if until is None or until <= head.time + _LAG:
            return
        text = (
            f"its head in the state is of {_moment(head.time)}, and the record is signed until"
            f" {_moment(until)}"
        )
        if entry.renewed_at > (until + _LAG).timestamp():
            # Each renewal brings the newest head.
            self._faults.append(f"{text}: the head was put back")
        else:
            self.unchecked.append(
                f"{self._place.shown}: {text}: the gate did not see the state then, or the head was"
                " put back"
            )


def _missing(
    places: Sequence[_Place], entries: Mapping[str, GateEntry], seen: Sequence[SeenHead]
) -> Iterator[str]:
    """Every gate that the state or a record knows, and of which no record is there."""
    found = {place.gate for place in places}
    forgotten = {gate for place in places for gate in place.uses.forgotten}
    for entry in entries.values():
        if entry.id not in found:
            last = datetime.fromtimestamp(entry.renewed_at, UTC)
            yield (
                f"the record of the gate {entry.id} is missing: it was in {entry.place}, and was"
                f" seen there until {_moment(last)}{_end_of(entry)}"
            )
    others: dict[str, SeenHead] = {}
    for head in seen:
        if head.gate in found or head.gate in entries or head.gate in forgotten:
            continue
        if head.gate not in others or others[head.gate].time < head.time:
            others[head.gate] = head
    for head in others.values():
        yield (
            f"the record of the gate {head.gate} is missing, also in the state: it was in"
            f" {head.place}, and {head.by} of another record saw it end with {head.segment} number"
            f" {head.seq}"
        )


def _end_of(entry: GateEntry) -> str:
    try:
        head = parse_checkpoint(entry.head)
    except TidegateError:
        return ""
    return f"; it ends with {head.segment} number {head.seq} or later"


def _compare(places: Sequence[_Place], *, complete: bool) -> Iterator[str]:
    """What more than one record says, of which only one may. Without `complete`, how often an
    approval could be used may be on record elsewhere."""
    by_gate: dict[str, list[str]] = defaultdict(list)
    for place in places:
        if place.gate:
            by_gate[place.gate].append(place.shown)
    for gate, shown in by_gate.items():
        if len(shown) > 1:
            yield f"{' and '.join(shown)} are copies of the record of one gate, {gate}"
    if any(len(shown) > 1 for shown in by_gate.values()):
        return  # all that follows would be said of each line
    yield from _limited(_shared_runs(places))
    yield from _limited(_overused(places, complete=complete))
    yield from _limited(_reused_nonces(places))


def _shared_runs(places: Sequence[_Place]) -> Iterator[str]:
    first: dict[str, _Place] = {}
    for place in places:
        for run, call in place.uses.runs.items():
            other = first.setdefault(run, place)
            if other is not place:
                yield (
                    f"calls of one process, such as {call}, are in {other.shown} and in"
                    f" {place.shown}"
                )


def _overused(places: Sequence[_Place], *, complete: bool) -> Iterator[str]:
    used = Counter[str]()
    for place in places:
        used.update(place.uses.grants)
    for name, approval, _ in _late(places):
        used[approval] -= name == RETURNED
    allowed = _allowed(places)
    whole = complete and all(place.uses.is_whole for place in places)
    for approval, count in used.items():
        # One for minutes, of which nothing says how often, is no fault.
        most = allowed.get(approval, 1 if whole else count)
        if count > most:
            where = [place.shown for place in places if place.uses.grants[approval] > 0]
            yield (
                f"the approval {approval} could be used {_times(most)} and was used"
                f" {_times(count)}: in {' and in '.join(where)}"
            )


def _allowed(places: Sequence[_Place]) -> dict[str, int]:
    """How often each approval could be used, as far as a record says it."""
    found: dict[str, int] = {}
    for place in places:
        found |= place.uses.allowed
    return found


def _late(places: Sequence[_Place]) -> set[tuple[str, str, str]]:
    """What was recorded late, each once: gates may record the same."""
    return {late for place in places for late in place.uses.late}


def _reused_nonces(places: Sequence[_Place]) -> Iterator[str]:
    used = Counter[str]()
    for place in places:
        used.update(place.uses.nonces)
    used.update([nonce for name, nonce, _ in _late(places) if name == NONCE_USED])
    for nonce, count in used.items():
        if count > 1:
            where = [place.shown for place in places if place.uses.nonces[nonce] > 0]
            yield (
                f"the answer with the nonce {nonce} was used {_times(count)}: in"
                f" {' and in '.join(where)}"
            )


def _limited(found: Iterator[str]) -> Iterator[str]:
    texts = list(found)
    yield from texts[:_SHOWN]
    if len(texts) > _SHOWN:
        yield f"and {len(texts) - _SHOWN} more of the last kind"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
