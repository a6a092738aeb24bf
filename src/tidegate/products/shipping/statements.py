"""The events of statements that ran, which nearly all lines are about, for a third of what
`call_event` costs.

Such lines of one caller on one source differ in few values. Of the first of them `call_event` makes
the event, and what is the same in all events like it is kept as text; the others are encoded of
that and of their own values, many at a time. A line with anything else is left to `call_event`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import structs

from tidegate.products.shipping.calls import call_event
from tidegate.products.shipping.ocsf import Line, encode, milliseconds
from tidegate.typed_values import json_decoder

_MOST_TEMPLATES = 1_024
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _StatementLine(
    msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True
):
    """The fields that such a line must have, first those of `VALUES`, and others of which there are
    few values."""

    seq: int
    time: str
    call_id: _Text
    digest: _Text
    statement: _Text
    rows: int
    bytes: int
    elapsed_ms: float
    hash: str
    phase: Literal["outcome"]
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
    approval: str = ""
    statement_class: str = ""
    address: str = ""
    truncated: str = ""


_VALUES = _StatementLine.__struct_fields__.index("phase")
"""The number of fields whose values are each time others."""


class _Query(msgspec.Struct, frozen=True, gc=False):
    query_string: str
    uid: str


class _Event(msgspec.Struct, frozen=True, gc=False):
    """An event as it is encoded. Its raw values are texts of several attributes, and open and close
    the objects that the attributes between them are in: that takes half the time of as many
    structures."""

    category_uid: msgspec.Raw
    """Its value and all attributes that are the same, and the beginning of `metadata`."""
    uid: str
    sequence: int
    original_time: str
    correlation_uid: str
    event_code: msgspec.Raw
    """Its value, and the end of `metadata`."""
    time: int
    duration: int
    query_info: _Query
    unmapped: msgspec.Raw
    """Its beginning."""
    hash: str
    rows: int
    bytes: int
    elapsed_ms: float
    phase: msgspec.Raw
    """Its value, and the end of `unmapped`."""


class _Template(NamedTuple):
    """The raw values of events that are alike."""

    same: msgspec.Raw
    event_code: msgspec.Raw
    unmapped: msgspec.Raw
    phase: msgspec.Raw


_decode_lines = json_decoder(_StatementLine).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines
_templates: dict[tuple[Any, ...], _Template] = {}


def statement_events(text: bytes, after: int, prefix: str) -> tuple[bytes, int] | None:
    """The events of lines, a line each, and the number of the last; the first has the number after
    `after`, and their ids are the prefix and the number. None if one of them is not the outcome of
    a statement, or has another number. Raises: ValueError, OverflowError for a time, and for text
    that is no UTF-8."""
    try:
        lines = _decode_lines(text)
    except msgspec.MsgspecError:
        return None
    events: list[_Event] = []
    second, began = "", 0
    for line in lines:
        after += 1
        fields = structs.astuple(line)
        template = _templates.get(fields[_VALUES:]) or _make_template(line)
        number, time, call_id, digest, statement, rows, size, elapsed, seal = fields[:_VALUES]
        fraction = time[20:26]
        if time[:20] != second:
            second, began = time[:20], milliseconds(f"{time[:19]}Z")
        if number != after or time[19:20] + time[26:] != ".Z" or not fraction.isdecimal():
            return None
        same, event_code, unmapped, phase = template
        events.append(
            _Event(
                same, f"{prefix}{after}", after, time, call_id, event_code,
                began + int(fraction) // 1_000, int(elapsed), _Query(statement, digest), unmapped,
                seal, rows, size, elapsed, phase,
            )
        )  # fmt: skip
    return _encode_lines(events), after


def _make_template(line: _StatementLine) -> _Template:
    """That of the line and of all lines like it."""
    event: dict[str, Any] = msgspec.json.decode(
        encode(call_event(Line(**structs.asdict(line)), "any"))
    )
    for name in ("time", "duration", "query_info"):
        del event[name]
    metadata, unmapped = event.pop("metadata"), event.pop("unmapped")
    for name in ("uid", "sequence", "original_time", "correlation_uid"):
        del metadata[name]
    for name in ("hash", "rows", "bytes", "elapsed_ms"):
        del unmapped[name]
    category, event_code = event.pop("category_uid"), metadata.pop("event_code")
    phase = unmapped.pop("phase")
    made = _Template(
        msgspec.Raw(
            b'%b,%b,"metadata":%b' % (encode(category), encode(event)[1:-1], encode(metadata)[:-1])
        ),
        msgspec.Raw(encode(event_code) + b"}"),
        msgspec.Raw(encode(unmapped)[:-1]),
        msgspec.Raw(encode(phase) + b"}"),
    )
    if len(_templates) >= _MOST_TEMPLATES:
        _templates.clear()
    _templates[structs.astuple(line)[_VALUES:]] = made
    return made
