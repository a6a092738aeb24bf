"""Headers that a request must have, or must not, before its body is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.edges.replies import Refusal
from tidegate.protocol.model import INVALID_REQUEST

_ONCE = frozenset(
    {b"host", b"origin", b"authorization", b"content-type", b"content-length", b"last-event-id"}
)


def refuse_twice(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a header that decides something and is given twice: who looked before us may have
    taken the other one. Raises: Refusal."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and (name in _ONCE or name.startswith(b"mcp-")):
            raise Refusal(
                400, INVALID_REQUEST, f"The header {name.decode('latin-1')} is sent twice"
            )
        seen.add(name)


def check_media(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the client takes an event stream. Raises: Refusal on other media types."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refusal(415, INVALID_REQUEST, "Content-Type must be application/json")
    accept = headers.get(b"accept", b"*/*")
    if b"*/*" in accept:
        return True
    takes_events = b"text/event-stream" in accept
    if not takes_events and b"application/json" not in accept and b"application/*" not in accept:
        raise Refusal(
            406, INVALID_REQUEST, "Accept must include application/json and text/event-stream"
        )
    return takes_events
