"""Joins rankings into one, and chooses from it what is relevant and differs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

K = 60

RowT = TypeVar("RowT", bound=Hashable)


def fuse(rankings: Sequence[tuple[float, Sequence[RowT]]]) -> dict[RowT, float]:
    """The fused score of each row, best first. `rankings` are (weight, rows from the best on).

    Reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009) joins rankings by place alone, so
    that scores need no common scale: the score of a row is the sum of weight / (k + place). Rows
    of equal score are in the order of their best place, then of the first ranking with it.
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


def choose(
    relevance: Sequence[float],
    similarity: Callable[[int, int], float],
    lambda_: float,
    most: int,
) -> list[tuple[int, float]]:
    """The places of the chosen ones, in the order of choice, with the value that chose each.

    Maximal marginal relevance (Carbonell and Goldstein 1998): the next one has the highest
    `lambda * relevance - (1 - lambda) * max(similarity to those chosen)`.
    `relevance` is between 0 and 1, and so is `similarity` of two places. Equal values go to the
    earlier place.
    """
    left = dict.fromkeys(range(len(relevance)), 0.0)  # the highest similarity so far
    chosen: list[tuple[int, float]] = []
    while left and len(chosen) < most:
        best, value = -1, float("-inf")
        for place, nearest in left.items():
            worth = lambda_ * relevance[place] - (1 - lambda_) * nearest
            if worth > value:
                best, value = place, worth
        chosen.append((best, value))
        del left[best]
        for place, nearest in left.items():
            left[place] = max(nearest, similarity(place, best))
    return chosen
