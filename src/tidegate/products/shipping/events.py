"""Makes of the lines of a segment the events that destinations send, as lines of JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

import msgspec

from tidegate.audit import chain
from tidegate.products.shipping.calls import call_event
from tidegate.products.shipping.ocsf import (
    HIGH,
    OTHER,
    Line,
    OcsfEvent,
    decode,
    encode,
    lifecycle,
)
from tidegate.products.shipping.server_events import control_event, server_event
from tidegate.products.shipping.statements import statement_events

PIECE_BYTES = 16_384
"""Of lines whose events are made together: the objects on the way take several times as much memory
as these, and displace from the caches what the threads that answer callers have there."""
_OUTCOME, _MOST_HEAD = b'"phase":"outcome"', 96
"""Which lines are likely to be of the usual kind, and how much of a line says so."""
_CALLS = frozenset({"intent", "outcome", "refusal"})


def make_events(gate: str, segment: str, text: bytes, after: int = 0) -> Iterator[bytes]:
    """The event of each line of a segment as a line of JSON, some at a time, so that the caller may
    do something else between. `after` is the number of the line before. Every line has one."""
    prefix, number, begin = f"{gate}/{segment.partition('.')[0]}/", after, 0
    while begin < len(text):
        end = text.rfind(b"\n", begin, begin + PIECE_BYTES) + 1
        if not end:
            end = text.find(b"\n", begin) + 1 or len(text)
        lines = text[begin:end]
        made, number = _make_usual(lines, number, prefix) or _make_each(lines, number, prefix)
        yield made
        begin = end


def _make_usual(text: bytes, after: int, prefix: str) -> tuple[bytes, int] | None:
    """The events of lines that are all of the usual kind, and the number of the last one."""
    try:
        return statement_events(text, after, prefix)
    except (ValueError, OverflowError):
        return None


def _make_each(text: bytes, after: int, prefix: str) -> tuple[bytes, int]:
    """The events of lines of any kind, and the number of the last one. Lines that follow each other
    and are likely to be of the usual kind are tried together."""
    events: list[bytes] = []
    number = after
    for is_likely, alike in groupby(filter(bytes.strip, text.split(b"\n")), _is_outcome):
        lines = list(alike)
        usual = _make_usual(b"\n".join((*lines, b"")), number, prefix) if is_likely else None
        made, number = usual or _make_one_by_one(lines, number, prefix)
        events.append(made)
    return b"".join(events), number


def _is_outcome(line: bytes) -> bool:
    return _OUTCOME in line[:_MOST_HEAD]


def _make_one_by_one(lines: list[bytes], after: int, prefix: str) -> tuple[bytes, int]:
    """As `_make_each`. A line has the next number, unless it says another."""
    events: list[bytes] = []
    number = after
    for line in lines:
        if usual := _make_usual(line + b"\n", number, prefix):
            made, number = usual
        else:
            number = chain.sequence(line) or number + 1
            made = encode(_make_event(line, number, f"{prefix}{number}")) + b"\n"
        events.append(made)
    return b"".join(events), number


def _make_event(text: bytes, number: int, uid: str) -> OcsfEvent:
    try:
        line = decode(text)
        if line.phase in _CALLS:
            return call_event(line, uid)
        if line.phase == "event":
            return server_event(line, uid)
        return control_event(line, uid, text)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return _unreadable(text, uid, number)


def _unreadable(text: bytes, uid: str, number: int) -> OcsfEvent:
    """What is sent in place of a line that is not as the gate writes them."""
    now = time.time()
    line = Line(number, datetime.fromtimestamp(now).astimezone().isoformat(), "unreadable")
    return lifecycle(
        line, uid, "record.unreadable", OTHER, severity=HIGH,
        message="A line of the record is not as the gate writes them.",
        unmapped={"line": text[:4_096].decode("utf-8", "replace")},
    )  # fmt: skip
