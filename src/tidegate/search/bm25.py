"""BM25 of texts that are in memory, by document frequencies of the whole table where they are
known. Pure.

Robertson and Zaragoza 2009, with k1 = 1.5 and b = 0.75 as in the server that the postgres
document describes, and
idf = ln((N - df + 0.5) / (df + 0.5) + 1), which is never negative.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

K1, B = 1.5, 0.75
MOST_TERMS = 64
_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text, case-folded: runs of letters and digits, without single letters."""
    return [word for word in _WORD.findall(text.casefold()) if len(word) > 1 or word.isdigit()]


def terms(text: str) -> list[str]:
    """The different words that a query asks for, at most `MOST_TERMS`. Single letters count if
    there is nothing else."""
    found = words(text) or _WORD.findall(text.casefold())
    return list(dict.fromkeys(found))[:MOST_TERMS]


def idf(count: float, total: float) -> float:
    """How much a term tells that `count` of `total` documents hold."""
    count = min(max(count, 0.0), total)
    return log((total - count + 0.5) / (count + 0.5) + 1)


def score(
    texts: Sequence[str],
    wanted: Sequence[str],
    frequencies: Mapping[str, float] | None = None,
    total: float | None = None,
) -> list[float]:
    """The BM25 score of each text for the terms `wanted`.

    `frequencies` and `total` are document counts of the whole collection; without them those of
    `texts` count.
    """
    counted = [Counter(words(text)) for text in texts]
    if frequencies is None or total is None:
        frequencies = {term: sum(term in each for each in counted) for term in wanted}
        total = len(texts)
    total = max(total, len(texts), 1)
    weights = {term: idf(frequencies.get(term, 0), total) for term in wanted}
    lengths = [each.total() for each in counted]
    average = sum(lengths) / len(lengths) if any(lengths) else 1.0
    return [
        sum(
            weights[term] * count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
            for term in wanted
            if (count := found[term])
        )
        for found, length in zip(counted, lengths, strict=True)
    ]
