"""Where a place in a rewritten statement is in the text of its caller, if that is certain."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+|.", re.DOTALL)


def place_in_original(original: str, written: str, place: int) -> int | None:
    """The offset in `original` of what is at `place` in `written`, which came of it; offsets count
    characters from 0.

    It is certain where both texts are the same up to the end of the word there, or from its begin
    on, or where the word occurs once in each. Elsewhere, and in what was put in, it is None.
    """
    found = _WORD.match(written, place) if 0 <= place < len(written) else None
    if found is None:
        return None
    word, end = found.group(), found.end()
    pairs = enumerate(zip(original, written, strict=False))
    shorter = min(len(original), len(written))
    same = next((at for at, (ours, theirs) in pairs if ours != theirs), shorter)
    if end < same or (end == same == len(original)):
        return place
    rest = len(written) - place
    before = len(original) - rest
    if before >= 0 and original[before:] == written[place:] and not _joins(original, before):
        return before
    if not (word[0].isalnum() or word[0] == "_"):
        return None
    places = [each.start() for each in _WORD.finditer(original) if each.group() == word]
    return places[0] if len(places) == 1 and _occurs_once(word, written) else None


def _joins(text: str, at: int) -> bool:
    """Whether a word goes over this place."""
    return at > 0 and bool(re.match(r"\w\w", text[at - 1 : at + 1]))


def _occurs_once(word: str, text: str) -> bool:
    return sum(each.group() == word for each in _WORD.finditer(text)) == 1
