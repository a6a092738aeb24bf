"""Reciprocal-rank fusion: joins rankings by place alone, so that scores need no common scale.

Cormack, Clarke and Büttcher 2009: the score of a row is the sum of weight / (k + place). Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = 60

RowT = TypeVar("RowT", bound=Hashable)


def fuse(rankings: Sequence[tuple[float, Sequence[RowT]]]) -> dict[RowT, float]:
    """The fused score of each row, best first. `rankings` are (weight, rows from the best on).

    Rows of equal score are in the order of their best place, then of the first ranking with it.
    """
    scores: dict[RowT, float] = {}
    best: dict[RowT, tuple[int, int]] = {}
    for number, (weight, rows) in enumerate(rankings):
        for place, row in enumerate(rows, 1):
            scores[row] = scores.get(row, 0.0) + weight / (K + place)
            best[row] = min(best.get(row, (place, number)), (place, number))
    ranked = sorted(scores, key=lambda row: (-scores[row], best[row]))
    return {row: scores[row] for row in ranked}


def places(rows: Sequence[RowT]) -> Mapping[RowT, int]:
    """The place of each row, from 1 on."""
    return {row: place for place, row in enumerate(rows, 1)}
