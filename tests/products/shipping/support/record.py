"""A record with a writer, and what a destination has of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.segment import segments
from tidegate.config.model import AuditSettings


def open_record(directory: Path, **settings: Any) -> AuditLog:
    """A writer of the record in a directory of its own, which is not signed."""
    return AuditLog(directory, settings=AuditSettings(**settings))


def write(log: AuditLog, *calls: str) -> None:
    """Record a call of each id, as one that read something."""
    for call_id in calls:
        log.append(Event(call_id=call_id, phase="outcome", actor="a", source="shop", effect="read"))


def ids_of(directory: Path, gate: str) -> list[str]:
    """The ids that the events of a record must have, in the order of the segments."""
    return [
        f"{gate}/{path.stem}/{json.loads(line)['seq']}"
        for path in segments(directory)
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


def uids(lines: Iterable[bytes]) -> list[str]:
    """The ids of events, one JSON text each."""
    return [json.loads(line)["metadata"]["uid"] for line in lines]


def first_of_each(found: Iterable[str]) -> list[str]:
    """Without repetitions, as a receiver drops them."""
    return list(dict.fromkeys(found))
