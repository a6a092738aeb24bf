"""Chance that falls the same way on every machine and every Python.

Only `random.Random.random` is used, whose sequence Python promises to keep for a seed; the rest
is derived here by multiplication and square roots, which are exact everywhere (powers are not).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import sqrt
from random import Random
from typing import TypeVar

T = TypeVar("T")

OPENING = datetime(2021, 1, 4)
CLOSING = datetime(2025, 12, 31)
SPAN_S = int((CLOSING - OPENING).total_seconds())


class RandomSource:
    """One stream of chance; each table has its own, so that one can grow without the others."""

    def __init__(self, name: str) -> None:
        self.roll = Random(f"tidegate shop 1: {name}").random

    def below(self, end: int) -> int:
        """An integer from 0 to `end` - 1, evenly."""
        return int(self.roll() * end)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self.roll() * (high - low + 1))

    def skewed(self, end: int, halves: int = 5) -> int:
        """An integer from 0 to `end` - 1 that favors small ones: few have most.

        `halves` is how strongly: 2 is evenly, 4 squares the chance, 5 is its power of 2.5.
        """
        root = share = sqrt(self.roll())
        for _ in range(halves - 1):
            share *= root
        return int(share * end)

    def chance(self, share: float) -> bool:
        return self.roll() < share

    def pick(self, things: Sequence[T]) -> T:
        return things[int(self.roll() * len(things))]


def moment(seconds: int) -> str:
    """UTC text of a moment, given in seconds after the shop opened."""
    return str(OPENING + timedelta(seconds=seconds))


def day(seconds: int) -> str:
    """The day of a moment, given in seconds after the shop opened."""
    return moment(seconds)[:10]
