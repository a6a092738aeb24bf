"""What the records of a state's gates say of the time after a backup.

A right may have been taken away at any gate, and is on record there. So the record of each gate
that the state of the backup or another record knows is needed, and a missing one is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.audit.chain_uses import ChainUses, read_uses
from tidegate.audit.control_records import Checkpoint, parse_checkpoint
from tidegate.audit.keys import Keys, fingerprint, parse_public
from tidegate.audit.segment import segments
from tidegate.audit.shipped import find_gate_id
from tidegate.audit.verify import verify
from tidegate.errors import Code, TidegateError
from tidegate.products.backup.contents import Description
from tidegate.products.backup.taken_rights import REMINDERS, ServerEventLine
from tidegate.store.gates import GateEntry

MARGIN_S = 60.0
"""An event is on record before what it says is done: so long before the backup they still count."""


class LaterEvents(NamedTuple):
    """The server events since the backup, the oldest first, and the gates whose record is missing,
    each in words."""

    events: list[ServerEventLine]
    missing: list[str]


class _Record(NamedTuple):
    """The record of one gate. `entry` is what the backup has of it, None for the gate that made
    the backup and for one that came later."""

    directory: Path
    gate: str
    is_own: bool
    entry: GateEntry | None
    uses: ChainUses


def read_later_events(
    directories: Sequence[Path], backup: Description, keys: Path, gates: Sequence[GateEntry]
) -> LaterEvents:
    """What the records in `directories` say. `gates` are those of the backup's state, `keys` the
    directory of the keys in the backup. Raises: TidegateError ARGUMENT_INVALID if one is not the
    record of a gate of the backup's state, whole and unchanged."""
    records = _find(directories, backup, gates)
    found: list[tuple[datetime, ServerEventLine]] = []
    for record in records:
        if record.is_own:
            _check_own(record.directory, backup, keys)
            found += _later(record.directory, backup, backup.positions, None)
        else:
            head = _check_other(record)
            found += [
                (at, event)
                for at, event in _later(record.directory, backup, _positions(head), head)
                if event.name not in REMINDERS  # the keys of other gates are not in the backup
            ]
    found.sort(key=lambda each: each[0])
    return LaterEvents([event for _, event in found], list(_missing(records, backup, gates)))


def _find(
    directories: Sequence[Path], backup: Description, gates: Sequence[GateEntry]
) -> list[_Record]:
    entries = {entry.id: entry for entry in gates if entry.id != backup.gate}
    records: list[_Record] = []
    for given in directories:
        inner = given / "audit"
        directory = inner if inner.is_dir() else given
        if not directory.is_dir():
            raise _unfit(f"there is no directory `{directory}`")
        try:
            gate = find_gate_id(directory)
        except (OSError, UnicodeDecodeError):
            gate = ""
        records.append(_Record(directory, gate, False, entries.get(gate), read_uses(directory)))
    seen = {gate for record in records for gate in record.uses.seen}
    return [
        # One that no one knows is verified as that of the backup's gate, and refused.
        record._replace(is_own=record.entry is None and record.gate not in seen - {backup.gate})
        for record in records
    ]


def _check_own(directory: Path, backup: Description, keys: Path) -> None:
    anchors = [] if backup.head is None else [backup.head]
    _verify(directory, anchors, Keys(keys).trusted())
    names = {path.name for path in segments(directory)}
    if missing := sorted(set(backup.open) - names):
        raise _unfit(f"it does not reach back to the backup: {missing[0]} is missing")


def _check_other(record: _Record) -> Checkpoint | None:
    """Verify the record of another gate up to its head in the backup, which is returned. Of one
    that came later there is no key, and what it says takes rights away alone."""
    if record.entry is None:
        _verify(record.directory, [], {})
        return None
    public = parse_public(record.entry.public_key)
    head = parse_checkpoint(record.entry.head) if record.entry.head else None
    _verify(record.directory, [head] if head else [], {fingerprint(public): public})
    return head


def _verify(directory: Path, anchors: Sequence[Checkpoint], trusted: dict[str, bytes]) -> None:
    report = verify(directory, None, anchors, trusted)
    if not report.intact:
        fault = report.faults[0]
        where = f"{fault.segment} line {fault.line}" if fault.line else fault.segment
        raise _unfit(f"`{directory}` was changed: {where}: {fault.reason}")


def _positions(head: Checkpoint | None) -> dict[str, int]:
    if head is None:
        return {}
    return {each.segment: each.seq for each in head.ends} | {head.segment: head.seq}


def _later(
    directory: Path, backup: Description, positions: dict[str, int], head: Checkpoint | None
) -> Iterator[tuple[datetime, ServerEventLine]]:
    """The events with their times. A segment that a head does not name had ended before it, or
    began after it."""
    since = _since(backup)
    newest = "" if head is None else max(positions)
    for path in segments(directory):
        had = positions.get(path.name, 0 if path.name > newest else inf)
        with path.open("rb") as file:
            for line in file:
                if b'"phase":"event"' not in line[:160] or not line.endswith(b"\n"):
                    continue
                fields: dict[str, Any] = json.loads(line)
                at = datetime.fromisoformat(fields["time"])
                if fields["seq"] > had or at >= since:
                    yield at, ServerEventLine(fields["name"], fields.get("details", {}))


def _missing(
    records: Sequence[_Record], backup: Description, gates: Sequence[GateEntry]
) -> Iterator[str]:
    """Each gate that was there at the backup or later, and of which no record is named."""
    since = _since(backup)
    named = {backup.gate if record.is_own else record.gate for record in records}
    places = {entry.id: entry.place for entry in gates if entry.expires_at >= since.timestamp()}
    for record in records:
        for gate, head in record.uses.seen.items():
            if head.time >= since:
                places.setdefault(gate, head.place)
    for gate, place in sorted(places.items()):
        if gate not in named:
            yield f"the gate {gate} in {place}"


def _since(backup: Description) -> datetime:
    return datetime.fromtimestamp(backup.made_at - MARGIN_S, UTC)


def _unfit(why: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"The record cannot be used: {why}.",
        hint="Name the audit directory of the former state, or restore with --without-record.",
    )
