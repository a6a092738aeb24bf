"""The words of a text as the history's search finds them: the same as SQLite's `unicode61
remove_diacritics 2` gives, so that both states answer alike. PostgreSQL's own parser would take
`public.users` for one word."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 16_000
_MOST_LETTERS = 400
_MOST_TEXT = 200_000
"""More of a text is not searched: PostgreSQL keeps no more words and no longer ones."""


class _Folding(dict[int, str]):
    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


def _fold(letter: str) -> str:
    """The letter in lower case and without its marks; a mark alone is nothing."""
    if unicodedata.category(letter) == "Mn":
        return ""
    whole = unicodedata.normalize("NFD", letter)
    if len(whole) > 1 and all(unicodedata.category(each) == "Mn" for each in whole[1:]):
        letter = whole[0]
    lower = letter.lower()
    return lower if len(lower) == 1 else letter


_FOLDING = _Folding()


def words_of(text: str) -> list[str]:
    """The words of a text in their order."""
    found = _WORD.findall(text[:_MOST_TEXT].translate(_FOLDING))
    return [word[:_MOST_LETTERS] for word in found[:_MOST_WORDS]]


def index_of(text: str) -> str:
    """The words of a text with their places, as a `tsvector` is written."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words_of(text), 1):
        places.setdefault(word, []).append(place)
    return " ".join(f"'{word}':{','.join(map(str, found[:255]))}" for word, found in places.items())


def query_of(phrases: list[str]) -> str:
    """A `tsquery` for texts that hold each phrase, whose last word may be the start of one. Empty
    where no phrase has a word."""
    terms: list[str] = []
    for phrase in phrases:
        if found := words_of(phrase):
            *before, last = [f"'{word}'" for word in found]
            terms.append(f"({' <-> '.join([*before, f'{last}:*'])})")
    return " & ".join(terms)
