"""Makes of the lines of a segment the events that destinations send."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from tidegate.audit import chain
from tidegate.products.shipping.calls import call_event
from tidegate.products.shipping.destination import Shipped
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
from tidegate.products.shipping.statements import statement_event

_TRACE_BYTES = 16
_CALLS = frozenset({"intent", "outcome", "refusal"})


def make_events(
    gate: str, segment: str, lines: Iterable[bytes], after: int = 0
) -> Iterator[Shipped]:
    """The event of each line; `after` is the number of the line before. Every line has one."""
    prefix, number = f"{gate}/{segment.partition('.')[0]}/", after
    for text in lines:
        number += 1
        try:
            made = statement_event(text, number, f"{prefix}{number}")
        except (ValueError, OverflowError):
            made = None
        if made is None:
            number = chain.sequence(text) or number
            made = _make_event(text, number, f"{prefix}{number}")
        yield made


def _make_event(text: bytes, number: int, uid: str) -> Shipped:
    trace_id = b""
    try:
        line = decode(text)
        if line.phase in _CALLS:
            event = call_event(line, uid)
            trace_id = _trace_of(line)
        elif line.phase == "event":
            event = server_event(line, uid)
        else:
            event = control_event(line, uid, text)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        event = _unreadable(text, uid, number)
    return Shipped(
        uid, event.time * 1_000_000, event.metadata.event_code, event.severity_id, encode(event),
        trace_id,
    )  # fmt: skip


def _trace_of(line: Line) -> bytes:
    try:
        found = bytes.fromhex(line.trace_id)
    except ValueError:
        return b""
    return found if len(found) == _TRACE_BYTES else b""


def _unreadable(text: bytes, uid: str, number: int) -> OcsfEvent:
    """What is sent in place of a line that is not as the gate writes them."""
    now = time.time()
    line = Line(number, datetime.fromtimestamp(now).astimezone().isoformat(), "unreadable")
    return lifecycle(
        line, uid, "record.unreadable", OTHER, severity=HIGH,
        message="A line of the record is not as the gate writes them.",
        unmapped={"line": text[:4_096].decode("utf-8", "replace")},
    )  # fmt: skip
