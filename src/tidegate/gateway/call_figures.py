"""How many calls there were, how they ended, and how long statements took: by minute for an hour,
by ten minutes for a day, by source.

Bounded: `MOST_SOURCES` sources in a step have figures of their own, the others share some. Times
are counted in bins, each 19 % wider than the one before, so that quantiles of any steps and sources
can be read from sums. What happened before this process began, or in others, comes from the index
of the audit log (`add`). Used on the event loop; `series` is pure and may run on a thread.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from math import log2
from typing import Literal, NamedTuple

import msgspec

from tidegate.audit.activity_lines import Ending, ending_of
from tidegate.audit.event import Event

MOST_SOURCES = 64
OTHERS = "\0others"
"""Under this name those sources are counted that came when a step had so many already."""
BINS = 88
_FIRST_BIN = 16
"""Bins of a quarter of an octave, from 0.06 ms to 4 minutes."""
HOUR_STEPS, DAY_STEPS = 60, 144
_DAY_MINUTES = 10

Counting = Literal["ok"] | Ending
Span = Literal["hour", "day"]


def outcome_of(event: Event) -> Counting:
    """How a call ended, of which this is recorded."""
    if event.phase == "outcome" and not event.code:
        return "ok"
    return ending_of(event.phase, event.code, event.verdict, event.approval)


def bin_of(elapsed_ms: float) -> int:
    """The bin of a time. `audit.activity` counts by the same rule."""
    place = int(log2(elapsed_ms) * 4 + _FIRST_BIN) if elapsed_ms > 0.0625 else 0
    return place if place < BINS else BINS - 1


def middle_of(place: int) -> float:
    """The time in the middle of a bin, in milliseconds."""
    return 2.0 ** ((place + 0.5 - _FIRST_BIN) / 4)


class Cell:
    """The calls on one source in one step."""

    __slots__ = ("asked", "bins", "cancelled", "denied", "failed", "ok")

    def __init__(self) -> None:
        self.ok = self.asked = self.denied = self.failed = self.cancelled = 0
        self.bins: array[int] | None = None

    def add(self, other: Cell) -> None:
        self.ok += other.ok
        self.asked += other.asked
        self.denied += other.denied
        self.failed += other.failed
        self.cancelled += other.cancelled
        if other.bins is not None:
            if self.bins is None:
                self.bins = array("I", other.bins)
            else:
                for place, count in enumerate(other.bins):
                    if count:
                        self.bins[place] += count


_Step = dict[str, Cell]


class Counted(NamedTuple):
    """Calls of one minute (Unix time / 60), source and ending, with one bin of their time (-1: of
    none)."""

    minute: int
    source: str
    ending: Counting
    bin: int
    calls: int


class Series(msgspec.Struct, frozen=True):
    """Figures by step, the oldest first, from `since` (Unix seconds) on; the last step is not over.
    `p50` and `p99` are milliseconds, None where nothing was timed. `shared`: some calls are not in
    the figures because sources that the reader does not see share them."""

    span: Span
    since: int
    step_s: int
    calls: list[int]
    asked: list[int]
    denied: list[int]
    failed: list[int]
    cancelled: list[int]
    p50: list[float | None]
    p99: list[float | None]
    total_p50: float | None
    total_p99: float | None
    shared: bool = False


class CallFigures:
    """The figures of one process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minute = int(clock()) // 60
        self._now: _Step = {}
        self._minutes: dict[int, _Step] = {self._minute: self._now}
        self._tens: dict[int, _Step] = {}

    def observe(self, event: Event) -> None:
        """Count a call that has ended; on the path of every call."""
        outcome = outcome_of(event)
        if outcome == "ok":
            self.count(event.source, event.elapsed_ms)
        else:
            self.count_failure(event.source, outcome)

    def count(self, source: str, elapsed_ms: float | None) -> None:
        """Count a call that was answered."""
        minute = int(self._clock()) // 60
        if minute != self._minute:
            self._turn(minute)
        cell = self._now.get(source)
        if cell is None:
            cell = _cell(self._now, source)
        cell.ok += 1
        if elapsed_ms is not None:
            bins = cell.bins
            if bins is None:
                bins = cell.bins = array("I", bytes(4 * BINS))
            place = int(log2(elapsed_ms) * 4 + _FIRST_BIN) if elapsed_ms > 0.0625 else 0
            bins[place if place < BINS else BINS - 1] += 1

    def count_failure(self, source: str, ending: Ending) -> None:
        """Count a call that was not answered."""
        minute = int(self._clock()) // 60
        if minute != self._minute:
            self._turn(minute)
        _add(_cell(self._now, source), ending, 1)

    def add(self, counted: Iterable[Counted]) -> None:
        """Count calls of earlier, or of other processes."""
        self._turn(int(self._clock()) // 60)
        for minute, source, ending, place, calls in counted:
            at = min(minute, self._minute)
            steps: list[_Step] = []
            if at > self._minute - HOUR_STEPS:
                steps.append(self._minutes.setdefault(at, {}))
            if at != self._minute:  # that one is added to its ten minutes when it is over
                steps.append(self._tens.setdefault(at // _DAY_MINUTES, {}))
            for step in steps:
                cell = _cell(step, source)
                _add(cell, ending, calls)
                if place >= 0:
                    if cell.bins is None:
                        cell.bins = array("I", bytes(4 * BINS))
                    cell.bins[place] += calls
        self._forget()

    def _turn(self, minute: int) -> None:
        """Begin another minute. A clock that was set back goes on in the minute that is open."""
        if minute <= self._minute:
            return
        ten = self._tens.setdefault(self._minute // _DAY_MINUTES, {})
        for source, cell in self._now.items():
            _cell(ten, source).add(cell)
        self._minute = minute
        self._now = self._minutes.setdefault(minute, {})
        self._forget()

    def _forget(self) -> None:
        for steps, first in (
            (self._minutes, self._minute - HOUR_STEPS + 1),
            (self._tens, self._minute // _DAY_MINUTES - DAY_STEPS + 1),
        ):
            for old in [at for at in steps if at < first]:
                del steps[old]

    def steps(self, span: Span) -> tuple[int, list[list[tuple[str, Cell]]]]:
        """The number of the first step, and the cells of each: for `series`."""
        self._turn(int(self._clock()) // 60)
        if span == "hour":
            first = self._minute - HOUR_STEPS + 1
            found = [list(self._minutes.get(first + at, {}).items()) for at in range(HOUR_STEPS)]
            return first, found
        last = self._minute // _DAY_MINUTES
        first = last - DAY_STEPS + 1
        found = [list(self._tens.get(first + at, {}).items()) for at in range(DAY_STEPS)]
        found[-1] += list(self._now.items())
        return first, found


def series(
    span: Span,
    first: int,
    steps: Sequence[Sequence[tuple[str, Cell]]],
    is_visible: Callable[[str], bool],
) -> Series:
    """The figures of the sources that a reader may see; `OTHERS` and the empty name, of calls about
    no source, are asked for as well."""
    step_s = 60 if span == "hour" else 60 * _DAY_MINUTES
    whole, shared, rows = Cell(), False, list[Cell]()
    for step in steps:
        row = Cell()
        for source, cell in step:
            if is_visible(source):
                row.add(cell)
            elif source == OTHERS:
                shared = True
        rows.append(row)
        whole.add(row)
    times = [quantiles(row.bins) for row in rows]
    total = quantiles(whole.bins)
    return Series(
        *(span, first * step_s, step_s),
        [row.ok + row.asked + row.denied + row.failed + row.cancelled for row in rows],
        [row.asked for row in rows],
        *([row.denied for row in rows], [row.failed for row in rows]),
        [row.cancelled for row in rows],
        *([p50 for p50, _ in times], [p99 for _, p99 in times]),
        *(*total, shared),
    )


def quantiles(bins: Sequence[int] | None) -> tuple[float | None, float | None]:
    """The median and the 99th percentile, 9 % off at most; None of nothing."""
    total = 0 if bins is None else sum(bins)
    if bins is None or not total:
        return None, None
    found: list[float] = []
    for share in (0.5, 0.99):
        left = share * total
        for place, count in enumerate(bins):
            left -= count
            if left <= 0:
                found.append(middle_of(place))
                break
    return found[0], found[1]


def _cell(step: _Step, source: str) -> Cell:
    cell = step.get(source)
    if cell is None:
        if len(step) >= MOST_SOURCES and source != OTHERS:
            return _cell(step, OTHERS)
        cell = step[source] = Cell()
    return cell


def _add(cell: Cell, ending: Counting, count: int) -> None:
    setattr(cell, ending, getattr(cell, ending) + count)
