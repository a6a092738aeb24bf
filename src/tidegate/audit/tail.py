"""Reading the newest audit records, across segments, without reading the older ones.

The records are shown as they are in the files; `verify` says whether they were changed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tidegate.audit.segment import segments
from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import read_at

_BLOCK = 65_536


class Record(msgspec.Struct, frozen=True):
    """One line of any kind: its time and its fields, without `hash`."""

    time: datetime
    fields: dict[str, Any]


class TailFilter(msgspec.Struct, frozen=True):
    """Selects records by actor (id or name), by source, and by time: `since` <= time < `until`.

    What no caller asked for is selected only with `everything`: segment headers, checkpoints,
    segment ends, and the samples that the server reads to learn what columns hold.
    """

    actor: str | None = None
    source: str | None = None
    since: datetime | None = None
    everything: bool = False
    until: datetime | None = None

    def matches(self, record: Record) -> bool:
        fields = record.fields
        if not self.everything and (
            fields.get("phase") in ("open", "checkpoint", "continued")
            or fields.get("request") == "sample"
        ):
            return False
        if self.actor is not None and self.actor not in (
            fields.get("actor"),
            fields.get("actor_name"),
        ):
            return False
        if self.source is not None and self.source not in (
            fields.get("source"),
            # Server events, such as a decision on an approval, name the source in the details.
            fields.get("details", {}).get("source"),
        ):
            return False
        if self.until is not None and record.time >= self.until:
            return False
        return self.since is None or record.time >= self.since


class Tail:
    """Reads the last records in `directory`, and then those that are added."""

    def __init__(self, directory: Path) -> None:
        """Raises: TidegateError STATE_FAILED if there is no log."""
        self._directory = directory
        self._read: dict[Path, int] = {}
        for path in self._segments():
            with suppress(FileNotFoundError):  # a server may remove an expired segment
                self._read[path] = path.stat().st_size

    def newest(self, wanted: TailFilter, count: int) -> list[Record]:
        """The last `count` selected records, ordered by time."""
        found: list[Record] = []
        streams = [_backwards(path, size) for path, size in self._read.items()]
        for record in heapq.merge(*streams, key=lambda record: record.time, reverse=True):
            if len(found) == count or (wanted.since is not None and record.time < wanted.since):
                break
            if wanted.matches(record):
                found.append(record)
        return found[::-1]

    def more(self, wanted: TailFilter) -> list[Record]:
        """The selected records that were written since the last call."""
        found: list[Record] = []
        for path in self._segments():
            begin = self._read.get(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(begin)
                    whole, _, _ = file.read().rpartition(b"\n")
            except FileNotFoundError:
                continue
            if whole:
                self._read[path] = begin + len(whole) + 1
                found += (record for line in whole.split(b"\n") if (record := _record(line)))
        return sorted(filter(wanted.matches, found), key=lambda record: record.time)

    def _segments(self) -> list[Path]:
        try:
            return segments(self._directory)
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"Cannot read the audit log in `{self._directory}`: {error.strerror}.",
                details={"path": str(self._directory)},
            ) from error


def _backwards(path: Path, size: int) -> Iterator[Record]:
    """The records of a segment, last one first."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with file:
        rest, at = b"", size
        while at > 0:
            begin = max(0, at - _BLOCK)
            lines = (read_at(file.fileno(), at - begin, begin) + rest).split(b"\n")
            rest = lines.pop(0) if begin else b""
            for line in reversed(lines):
                record = _record(line)
                if record is not None:
                    yield record
            at = begin


def _record(line: bytes) -> Record | None:
    """The record in a line; None if it is not one, such as a line that is being written."""
    try:
        fields: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        time = datetime.fromisoformat(fields["time"])
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
        return None
    fields.pop("hash", None)
    return Record(time if time.tzinfo else time.replace(tzinfo=UTC), fields)
