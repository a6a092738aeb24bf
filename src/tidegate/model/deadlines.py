"""Ends of what is given for some time, which hold also where the clock is set back.

A time of day alone does not bound anything: a clock that is set back lengthens it. So the process
counts the seconds itself from when it first saw an end, and what was begun in a future that the
clock does not know any more has ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from threading import Lock

import msgspec

AHEAD_S = 60.0
"""How far ahead of the clock a time that was saved may be, since clocks differ and are corrected;
further ahead, it was saved before the clock was set back."""
_MOST = 10_000


class Clocks(msgspec.Struct, frozen=True):
    """The two clocks of a process, both in seconds. `wall` gives the time of day since 1970, which
    may be set back; `monotonic` counts the seconds that go by whatever the wall clock does."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


CLOCKS = Clocks()
"""Those of the system."""


class Deadlines:
    """The ends that this process has seen: `_MOST` at most, those that were used last."""

    def __init__(self, clocks: Clocks = CLOCKS) -> None:
        self._clock = clocks.wall
        self._count = clocks.monotonic
        self._ends: dict[Hashable, tuple[float, float]] = {}
        self._lock = Lock()

    def has_passed(self, key: Hashable, until: float) -> bool:
        """Whether `until` (Unix seconds) has come, by the clock or by the seconds that went by
        since this was asked first of this key and time."""
        with self._lock:
            counted = self._count()
            was, end = self._ends.pop(key, (until, math.inf))
            if was != until:
                end = math.inf
            end = min(end, counted + (until - self._clock()))
            self._ends[key] = until, end
            if len(self._ends) > _MOST:
                del self._ends[next(iter(self._ends))]
            return counted >= end

    def is_over(self, key: Hashable) -> bool:
        """Whether the end that was last seen of this key has come; False if none was seen."""
        seen = self._ends.get(key)
        return seen is not None and self.has_passed(key, seen[0])


def is_ahead(at: float, now: float) -> bool:
    """Whether a time that was saved is one that the clock does not know any more."""
    return at > now + AHEAD_S
