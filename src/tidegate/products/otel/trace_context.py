"""Reads the trace context that a caller sends: W3C Trace Context, in `_meta` (SEP-414) or in the
headers of HTTP. What is malformed is as if it were not there. Baggage is not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.trace import SpanContext, TraceFlags, TraceState

_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MOST_PARENT = 256
"""Characters; the version that is known has 55."""
_MOST_STATE = 512
"""What others are to pass on at least; a longer one is left out."""
_FLAGS = 0x03
"""Sampled, and a random id; the others have no meaning yet."""


_MOST_MEMBERS = 32
_MEMBER = re.compile(
    r"([a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
"""A key and its value. The SDK's own reader is not used: it writes what is malformed to the log,
which is a caller's text."""


class Given(NamedTuple):
    """The contexts of one request. With both in the request, `parent` is that of `_meta`, and
    `link` that of the headers."""

    parent: SpanContext | None
    link: SpanContext | None


_NOTHING = Given(None, None)


def read_contexts(meta: Mapping[str, object], headers: Mapping[bytes, bytes] | None) -> Given:
    """What a request says of the traces that it belongs to."""
    own = outer = None
    if "traceparent" in meta:
        own = read_context(meta["traceparent"], meta.get("tracestate"))
    if headers is not None and (given := headers.get(b"traceparent")) is not None:
        state = headers.get(b"tracestate")
        outer = read_context(
            given.decode("latin-1"), None if state is None else state.decode("latin-1")
        )
    if own is not None:
        return Given(own, outer)
    return _NOTHING if outer is None else Given(outer, None)


def read_context(parent: object, state: object) -> SpanContext | None:
    """The context in a `traceparent` and a `tracestate`; None if the first is malformed."""
    if not isinstance(parent, str) or len(parent) > _MOST_PARENT:
        return None
    found = _PARENT.fullmatch(parent.strip(" \t"))
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return SpanContext(
        trace_id,
        span_id,
        is_remote=True,
        trace_flags=TraceFlags(int(found[4], 16) & _FLAGS),
        trace_state=_read_state(state),
    )


def _read_state(state: object) -> TraceState | None:
    if not isinstance(state, str) or not state or len(state) > _MOST_STATE:
        return None
    members: dict[str, str] = {}
    for text in state.split(","):
        if not (text := text.strip(" \t")):
            continue
        found = _MEMBER.fullmatch(text)
        if found is None or found[1] in members or len(members) == _MOST_MEMBERS:
            return None
        members[found[1]] = found[2]
    return TraceState([*members.items()])
