"""Reads the lines of the audit log for the index: which are calls and events, and whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidegate.audit.activity_lines import Line

UNLISTED = frozenset({"sample", "dry_run"})
"""Requests that the gate sends for itself: they are on record, and no lines of the index."""
_CONTROL = frozenset({"checkpoint", "continued"})
_NUMBERS = ("seq", "rows", "elapsed_ms")
_OWN = frozenset({"n", "time", "session", "segment", "offset", "outcome", "message", "event", "ms"})
_TEXTS = (*(set(Line.__struct_fields__) - _OWN - set(_NUMBERS)), "phase", "error", "name")
"""What a line of the log holds as numbers and as texts; `_OWN` is what only the index has."""


class ReadLine(NamedTuple):
    """A line of the log: its time, where it is, where the next one begins, and its fields, None for
    one that says nothing of a call or event. One of the phase `open` says who goes on writing."""

    at: float
    segment: str
    offset: int
    end: int
    fields: dict[str, Any] | None


def new_lines(path: Path, begin: int) -> Iterator[ReadLine]:
    """The lines of a segment from an offset on, as far as they are whole."""
    at, offset = 0.0, begin
    try:
        with path.open("rb") as file:
            file.seek(begin)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                fields = _fields_of(line)
                at = at if fields is None else fields["at"]
                yield ReadLine(at, path.name, offset, offset + len(line), fields)
                offset += len(line)
    except FileNotFoundError:  # a server may remove an expired segment
        return


def _fields_of(line: bytes) -> dict[str, Any] | None:
    try:
        fields: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        fields["at"] = datetime.fromisoformat(fields["time"]).timestamp()
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, OverflowError):
        return None
    numbers = (fields.get(name) for name in _NUMBERS)
    texts = (fields.get(name, "") for name in _TEXTS)
    if not (
        isinstance(fields.get("details", {}), dict)
        and all(map(_is_number, numbers))
        and all(isinstance(each, str) for each in texts)
    ):
        return None  # not as the server writes it; the proof of the log names such a line
    if fields.get("phase") in _CONTROL or fields.get("request") in UNLISTED:
        return None
    return fields


def _is_number(value: Any) -> bool:
    """Whether SQLite can keep a value as a number, or as NULL."""
    return (
        value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
    )
