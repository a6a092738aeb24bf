"""The events of statements that ran, which nearly all lines are about, for half of what
`call_event` costs.

Such lines of one caller on one source differ in few values. `call_event` makes the event of the
first with marks in place of these; the events of all have their own values where the marks were.
A line with anything else is left to `call_event`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import structs

from tidegate.products.shipping.calls import call_event
from tidegate.products.shipping.destination import Shipped
from tidegate.products.shipping.ocsf import Line, encode, milliseconds
from tidegate.typed_values import json_decoder

_MOST_TEMPLATES = 2_048
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _StatementLine(
    msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True
):
    """The fields that such a line must have, and others of which there are few values."""

    seq: int
    time: str
    phase: Literal["outcome"]
    call_id: _Text
    actor: str
    actor_name: str = ""
    client: str = ""
    surface: str = ""
    tool: str = ""
    source: _Text
    request: str = ""
    effect: str = ""
    verdict: str = ""
    rule: str = ""
    code: str = ""
    digest: _Text
    statement: _Text
    rows: int
    bytes: int
    elapsed_ms: float
    approval: str = ""
    statement_class: str = ""
    address: str = ""
    truncated: str = ""
    hash: str


_MARKS: dict[str, Any] = {
    "seq": 1, "time": "2001-02-03T04:05:06Z", "call_id": "mark", "digest": "mark of a digest",
    "statement": "mark", "rows": 1, "bytes": 1, "elapsed_ms": 1.5, "hash": "mark",
}  # fmt: skip
_UID = "mark of an id"
_SLOTS: tuple[tuple[str, Any], ...] = (
    ("time", milliseconds(_MARKS["time"])),
    ("uid", _UID),
    ("sequence", 1),
    ("original_time", _MARKS["time"]),
    ("correlation_uid", "mark"),
    ("duration", 1),
    ("query_string", "mark"),
    ("uid", _MARKS["digest"]),
    ("hash", "mark"),
    ("rows", 1),
    ("bytes", 1),
    ("elapsed_ms", 1.5),
)
"""Where the values are, in their order: the attribute, and what it is with marks."""


class _Template(NamedTuple):
    """An event without the values of `_SLOTS`."""

    text: bytes
    severity: int


_decode = json_decoder(_StatementLine).decode
_key = attrgetter(*(name for name in _StatementLine.__struct_fields__ if name not in _MARKS))
_templates: dict[tuple[str, ...], _Template] = {}


def statement_event(text: bytes, number: int, uid: str) -> Shipped | None:
    """The event of a line; None if that is not the outcome of a statement, or has another number.
    Raises: ValueError, OverflowError for its time."""
    try:
        line = _decode(text)
    except msgspec.MsgspecError:
        return None
    if line.seq != number:
        return None
    template = _templates.get(_key(line)) or _make_template(line)
    if template is None:
        return None
    time, elapsed = milliseconds(line.time), line.elapsed_ms
    body = template.text % (
        encode(time), encode(uid), encode(line.seq), encode(line.time), encode(line.call_id),
        encode(int(elapsed)), encode(line.statement), encode(line.digest), encode(line.hash),
        encode(line.rows), encode(line.bytes), encode(elapsed),
    )  # fmt: skip
    return Shipped(uid, time * 1_000_000, "call.outcome", template.severity, body)


def _make_template(line: _StatementLine) -> _Template | None:
    """None if a text of the line is like a mark."""
    event = call_event(Line(**structs.asdict(line) | _MARKS), _UID)
    body = rest = encode(event).replace(b"%", b"%%")
    text = b""
    for name, value in _SLOTS:
        mark = encode({name: value})[1:-1]
        if body.count(mark) != 1:
            return None
        before, _, rest = rest.partition(mark)
        text += b'%b"%b":%%b' % (before, name.encode())
    if len(_templates) >= _MOST_TEMPLATES:
        _templates.clear()
    made = _templates[_key(line)] = _Template(text + rest, event.severity_id)
    return made
