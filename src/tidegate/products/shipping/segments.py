"""Reads the segments of the record from where a destination has them, as the writer goes on.

A line counts once it is whole and on the disk: what a receiver has must not vanish from the record
in a power cut. A segment whose last line names the next one gets no further lines, and is not read
again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tidegate.audit import chain
from tidegate.audit.segment import is_segment, number_of, time_of
from tidegate.store.shipping import Position
from tidegate.system.descriptors import read_at, sync_content
from tidegate.system.private_files import open_existing

MOST_BYTES = 1_048_576
"""Of a batch, unless one line is longer."""
_LONGEST_LINE = 1_048_576
_CONTINUED = b'"phase":"continued"'
START = Position(0, 0)


class Batch(NamedTuple):
    """Lines that follow each other in a segment after the one with the number `after`, each with
    its line break, and the position of the destination that has them."""

    segment: str
    text: bytes
    after: int
    position: Position

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.text)


class Lag(NamedTuple):
    """What a destination lacks: how many bytes, and since when the oldest of them are there."""

    size: int
    since: float | None

    def age(self) -> float:
        """In seconds; 0 if nothing is missing."""
        return 0.0 if self.since is None else max(0.0, time.time() - self.since)


class SegmentReader:
    """Reads what lies beyond positions, the oldest segment first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(
        self, positions: Mapping[str, Position], most_bytes: int = MOST_BYTES
    ) -> Iterator[Batch]:
        """What is there now of the oldest segment, then of the next. Raises: OSError."""
        for path, position in self._incomplete(positions):
            yield from _read(path, position, most_bytes)

    def lag(self, positions: Mapping[str, Position]) -> Lag:
        """What is beyond the positions. Raises: OSError."""
        size, since = 0, None
        for path, position in self._incomplete(positions):
            with suppress(FileNotFoundError):
                missing = path.stat().st_size - position.offset
                if missing > 0:
                    size += missing
                    at = _time_at(path, position.offset)
                    since = at if since is None or (at is not None and at < since) else since
        return Lag(size, since)

    def removed(self, known: Collection[str]) -> set[str]:
        """Those of the known segments that are not there any more. Raises: OSError."""
        return set(known) - set(self._names())

    def check(self, positions: Mapping[str, Position]) -> dict[str, Position]:
        """The positions without those of segments that are not what they were, as after a power cut
        on a disk that reported a write as done before it was: these are sent again from their
        beginning. Raises: OSError."""
        found = dict(positions)
        for name, position in positions.items():
            # One that is complete gets no more lines, and there may be thousands of them.
            if position.complete or not position.offset:
                continue
            if not _is_at(self._directory / name, position):
                del found[name]
        return found

    def _incomplete(self, positions: Mapping[str, Position]) -> list[tuple[Path, Position]]:
        """The segments of which there may be more, the oldest first. There may be thousands of
        others, which are not opened. Raises: OSError."""
        found = [
            (self._directory / name, position)
            for name in self._names()
            if not (position := positions.get(name, START)).complete and is_segment(name)
        ]
        return sorted(found, key=lambda each: number_of(each[0]))

    def _names(self) -> list[str]:
        return os.listdir(self._directory)  # noqa: PTH208 - paths of thousands would take longer


def _read(path: Path, position: Position, most_bytes: int) -> Iterator[Batch]:
    """The whole lines that are there now. One sync before the first of them is enough for all."""
    try:
        descriptor = open_existing(path)
    except OSError:  # it was removed, or is none of ours
        return
    try:
        size = os.fstat(descriptor).st_size
        if size <= position.offset:
            return
        sync_content(descriptor)
        while not position.complete and (
            text := _read_lines(descriptor, position.offset, size, most_bytes)
        ):
            position, before = _position_after(text, position), position
            yield Batch(path.name, text, before.number, position)
    finally:
        os.close(descriptor)


def _read_lines(descriptor: int, begin: int, size: int, most_bytes: int) -> bytes:
    """Whole lines of a file of this size from a place on; empty if there is none."""
    text = read_at(descriptor, min(most_bytes, size - begin), begin)
    end = text.rfind(b"\n") + 1
    if not end and len(text) == most_bytes:  # one line, which comes alone
        text = read_at(descriptor, min(most_bytes + _LONGEST_LINE, size - begin), begin)
        end = text.find(b"\n") + 1
    return text[:end]


def _position_after(text: bytes, position: Position) -> Position:
    """The position of a destination that has these lines as well."""
    last = text[text.rfind(b"\n", 0, -1) + 1 : -1]
    number = chain.sequence(last) or _count_on(text[:-1], position.number)
    return Position(position.offset + len(text), number, _CONTINUED in last[:128])


def _count_on(text: bytes, after: int) -> int:
    """The number of the last line, counted on from the last one that says its own."""
    lines = text.split(b"\n")
    for place, line in enumerate(reversed(lines)):
        if (found := chain.sequence(line)) is not None:
            return found + place
    return after + len(lines)


def _is_at(path: Path, position: Position) -> bool:
    """Whether the line of that number ends at the position."""
    try:
        descriptor = open_existing(path)
    except OSError:
        return True
    try:
        begin = max(0, position.offset - 262_144)
        window = read_at(descriptor, position.offset - begin, begin)
    finally:
        os.close(descriptor)
    if len(window) != position.offset - begin or not window.endswith(b"\n"):
        return False
    number = chain.sequence(window[:-1].rpartition(b"\n")[2])
    return number is None or number == position.number


def _time_at(path: Path, offset: int) -> float | None:
    with suppress(OSError):
        descriptor = open_existing(path)
        try:
            return time_of(read_at(descriptor, 128, offset))
        finally:
            os.close(descriptor)
    return None
