"""What one record says that concerns others: which processes wrote it, what they used up that
counts once in the state, and which other gates they saw there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.audit.segment import number_of, segments
from tidegate.errors import Code, TidegateError
from tidegate.typed_values import json_decoder

SEEN = "gates.seen"
"""The event by which a gate records where the records of others ended."""
NONCE_USED = "request_state.used"
FORGOTTEN = "gate.forgotten"
"""The event before a gate that was ended is removed from the state."""
USED, RETURNED, _ALLOWED = "approval.used", "approval.returned", "approval.allowed"
_BEGIN = re.compile(
    rb'\{"seq":[0-9]+,"time":"[^"]*","phase":"[a-z]+",'
    rb'(?:"call_id":"([^"\\]*)"|"name":"([a-z_.]*)")'
)
_MANY = 1_000_000
_NAMES = frozenset(
    name.encode() for name in (SEEN, NONCE_USED, FORGOTTEN, USED, RETURNED, _ALLOWED)
)


class SeenHead(NamedTuple):
    """Where the record of another gate ended, as this one saw it: the checkpoint is line `seq` of
    `segment` there. `by` says where that is on record."""

    gate: str
    segment: str
    seq: int
    signature: str
    time: datetime
    place: str
    by: str


class ChainUses(NamedTuple):
    """What a record says. `runs` has the processes, by what the ids of their calls begin with, each
    with one of these ids. `grants` counts how often each approval was used and not given back,
    `allowed` says of an approval how often it could be. `nonces` are those of sealed requests.
    `late` are such uses that could not be recorded when they happened, as event, key and time: the
    same may be in several records. `forgotten` are the gates that are not missed. `is_whole` says
    that no segment at the beginning was removed."""

    runs: dict[str, str]
    grants: Counter[str]
    allowed: dict[str, int]
    nonces: Counter[str]
    seen: dict[str, SeenHead]
    forgotten: set[str]
    late: set[tuple[str, str, str]]
    is_whole: bool


class _Event(msgspec.Struct):
    seq: int
    name: str
    details: dict[str, str] = {}


def read_uses(directory: Path) -> ChainUses:
    """Read all segments in a directory; what cannot be read in a line is left to `verify`. Raises:
    TidegateError STATE_FAILED if a file cannot be read."""
    try:
        paths = segments(directory)
        is_whole = not paths or number_of(paths[0]) == 1
        uses = ChainUses({}, Counter(), {}, Counter(), {}, set(), set(), is_whole)
        for path in paths:
            with path.open("rb") as lines:
                _read_segment(path.name, lines, uses)
        return uses
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"Cannot read the audit log in `{directory}`: {error.strerror}.",
            details={"path": str(directory)},
        ) from error


def _read_segment(segment: str, lines: Iterable[bytes], uses: ChainUses) -> None:
    decode = json_decoder(_Event).decode
    for line in lines:
        found = _BEGIN.match(line)
        if found is None:
            continue
        call, name = found[1], found[2]
        if call is not None:
            run = call.partition(b"-")[0].decode("utf-8", "replace")
            if run not in uses.runs:
                uses.runs[run] = call.decode("utf-8", "replace")
        elif name in _NAMES:
            try:
                _add(decode(line), segment, uses)
            except msgspec.MsgspecError:
                continue


def _add(event: _Event, segment: str, uses: ChainUses) -> None:
    details = event.details
    approval = details.get("approval", "")
    if event.name == SEEN:
        for gate, text in details.items():
            if (head := parse_seen(gate, text, f"{segment} number {event.seq}")) is not None:
                uses.seen[gate] = head
    elif event.name == FORGOTTEN:
        uses.forgotten.add(details.get("gate", ""))
    elif at := details.get("happened_at"):
        uses.late.add((event.name, details.get("nonce") or approval, at))
    elif event.name == NONCE_USED:
        uses.nonces[details.get("nonce", "")] += 1
    elif event.name == USED:
        uses.grants[approval] += 1
    elif event.name == RETURNED:
        uses.grants[approval] -= 1
    else:
        uses.allowed[approval] = _most_uses(details)


def _most_uses(details: dict[str, str]) -> int:
    """How often an approval could be used. Earlier versions did not say it of one for minutes."""
    text = details.get("uses") or (str(_MANY) if "minutes" in details else "1")
    return int(text) if text.isdecimal() else _MANY


def parse_seen(gate: str, text: str, by: str) -> SeenHead | None:
    """Read the text of one gate in such an event; None if it is something else."""
    try:
        segment, seq, signature, at, place = text.split(" ", 4)
        return SeenHead(gate, segment, int(seq), signature, datetime.fromisoformat(at), place, by)
    except ValueError:
        return None
