"""Maximal marginal relevance: chooses what is relevant and unlike what was chosen already. Pure.

Carbonell and Goldstein 1998: the next one has the highest
`lambda * relevance - (1 - lambda) * max(similarity to those chosen)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def choose(
    relevance: Sequence[float],
    similarity: Callable[[int, int], float],
    lambda_: float,
    most: int,
) -> list[tuple[int, float]]:
    """The places of the chosen ones, in the order of choice, with the value that chose each.

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
