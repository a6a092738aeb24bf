"""The arithmetic of the bench: medians, spreads, percentiles, and ratios paired round by round.

Pure. A series is one figure of one server, one value a round.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

_Name = TypeVar("_Name")


class Spread(NamedTuple):
    """A median with the least and the greatest it was taken from."""

    median: float
    low: float
    high: float

    def show(self, digits: int = 2, unit: float = 1.0) -> str:
        """`median [low-high]`, each divided by `unit`."""
        median, low, high = (f"{value / unit:,.{digits}f}" for value in self)
        return f"{median} [{low}-{high}]"


def spread(series: Sequence[float]) -> Spread:
    """Median, least and greatest. Raises ValueError if the series is empty."""
    if not series:
        raise ValueError("no rounds")
    return Spread(statistics.median(series), min(series), max(series))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(rank, 1) - 1]


def median(rounds: Sequence[Any], *path: Any) -> float:
    """Of one figure over the rounds (nearest rank), found in each by these keys and places."""
    values: list[float] = []
    for found in rounds:
        for key in path:
            found = found[key]
        values.append(float(found))
    return percentile(values, 0.5)


def paired(of: Sequence[float], to: Sequence[float]) -> Spread:
    """The ratio `of / to` in each round, then its spread: what both rounds suffered cancels out."""
    return spread([one / other for one, other in zip(of, to, strict=True)])


def increments(stages: Sequence[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """What each stage has more than the one before, and its share of the last one.

    They add up to the last one: noise can make one of them negative, and then another is too large.
    """
    whole = stages[-1][1]
    before = [0.0, *(value for _, value in stages)]
    return [
        (name, value - less, (value - less) / whole)
        for (name, value), less in zip(stages, before, strict=False)
    ]


def rotate(names: Sequence[_Name], turn: int) -> list[_Name]:
    """The order of one round: each server is first in turn, so that none always follows another."""
    start = turn % len(names)
    return [*names[start:], *names[:start]]
