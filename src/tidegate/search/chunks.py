"""Cuts texts into chunks of words that overlap, and counts their tokens. Pure.

A token is about three quarters of a word, which is what the makers of the common tokenizers give
for English. A text in a script without spaces counts a token for each character instead.
"""

from __future__ import annotations

import re
from math import ceil
from typing import NamedTuple

WORDS_PER_TOKEN = 0.75
OVERLAP_TOKENS = 25
_DENSE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_WORD = re.compile(r"\S+")
_LONGEST_WORD = 40


class Chunk(NamedTuple):
    """A part of a text; `number` is its place from 1 on, `start` and `end` its bounds."""

    number: int
    text: str
    tokens: int
    start: int
    end: int


def count_tokens(text: str) -> int:
    """About how many tokens a text has; never less than 1 for a text that is not empty."""
    if not text:
        return 0
    return ceil(sum(_weight(word) for word in _WORD.findall(text)) / WORDS_PER_TOKEN) or 1


def _weight(word: str) -> float:
    """How many words a run of characters counts as."""
    dense = len(_DENSE.findall(word))
    if dense:
        return dense * WORDS_PER_TOKEN
    return 1 if len(word) <= _LONGEST_WORD else len(word) / 5


def cut(text: str, size_tokens: int, overlap_tokens: int = OVERLAP_TOKENS) -> list[Chunk]:
    """The chunks of a text, each of about `size_tokens` tokens or less, in order.

    Neighbours share about `overlap_tokens`, but never more than half a chunk. A run of characters
    without a space that is longer than a chunk is cut inside.
    """
    size = size_tokens * WORDS_PER_TOKEN
    overlap = min(overlap_tokens, size_tokens // 2) * WORDS_PER_TOKEN
    words: list[tuple[int, int, float]] = []
    for found in _WORD.finditer(text):
        words += _pieces(text, found.start(), found.end(), size)
    chunks: list[Chunk] = []
    first = 0
    while first < len(words):
        weight, last = 0.0, first
        while last < len(words) and (last == first or weight + words[last][2] <= size):
            weight += words[last][2]
            last += 1
        start, end = words[first][0], words[last - 1][1]
        part = text[start:end]
        chunks.append(Chunk(len(chunks) + 1, part, count_tokens(part), start, end))
        if last >= len(words):
            break
        back, shared = last, 0.0
        while back - 1 > first and shared + words[back - 1][2] <= overlap:
            back -= 1
            shared += words[back][2]
        first = back
    return chunks


def _pieces(text: str, start: int, end: int, size: float) -> list[tuple[int, int, float]]:
    weight = _weight(text[start:end])
    if weight <= size:
        return [(start, end, weight)]
    parts = ceil(weight / size)
    step = ceil((end - start) / parts)
    return [
        (at, min(at + step, end), _weight(text[at : min(at + step, end)]))
        for at in range(start, end, step)
    ]
