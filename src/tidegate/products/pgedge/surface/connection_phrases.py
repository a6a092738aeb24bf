"""Reads connection phrases: `... at postgres://host/database` and `set default database to ...`.

A phrase counts at the end of the text, at its beginning (`database URL ...`), or as the whole of
it, and never inside a literal or a comment of a statement. Reads words and opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import WORD, lex

_URL = r"postgres(?:ql)?://[^\s'\"<>]++"
# A word and what is after it are read once, so that a hostile text costs no more than its length.
_AT_END = re.compile(rf"(?P<rest>.*\S)\s+(?:at|from|on|for|in)\s+(?P<target>{_URL})", re.I | re.S)
_AT_START = re.compile(
    rf"\s*+(?:database|db)\s++(?P<target>{_URL})\s++(?P<rest>\S.*+)", re.I | re.S
)
_DEFAULT = re.compile(
    r"\s*+(?:please\s++)?(?:set\s++(?:the\s++)?default\s++(?:database|connection)(?:\s++to)?"
    r"|use\s++(?:the\s++)?database|switch\s++to(?:\s++(?:the\s++)?database)?)"
    rf"\s++(?P<target>{_URL}|[\w][\w.-]{{0,63}})",
    re.I,
)
_ANY_URL = re.compile(r"postgres(?:ql)?://", re.I)
_ENDS = " \t\r\n\f\v.,;!"
"""What may follow a phrase; after one that is not the whole text also ? and )."""
_LEXICAL_RULES = find("postgres").lexical_rules
_MAX_CHARS = 8_192
"""Characters of the longest text that is searched for a phrase."""


class Phrase(NamedTuple):
    """A phrase and the text without it. `target` is a URL, or the name of a source; `rest` is None
    where the text is nothing but a change of the session's default."""

    target: str
    rest: str | None

    @property
    def is_url(self) -> bool:
        """Whether the target is a URL rather than a name."""
        return "://" in self.target


def read_phrase(text: str) -> Phrase | None:
    """The connection phrase of a text; None if it has none."""
    if len(text) > _MAX_CHARS:
        return None
    found = _DEFAULT.fullmatch(text.rstrip(_ENDS))
    if found is not None:
        return Phrase(found["target"], None)
    found = _AT_END.fullmatch(text.rstrip(f"{_ENDS}?)")) or _AT_START.fullmatch(text)
    if found is None or not _free_places(text, [found.start("target")]):
        return None
    return Phrase(found["target"].rstrip(",;:"), found["rest"])


def has_misplaced_url(text: str) -> bool:
    """Whether a database's URL is in a text where it is no phrase: outside literals and comments.
    No statement that could run has one there, and a question would carry its password on."""
    if len(text) > _MAX_CHARS:
        return False
    places = [found.start() for found in _ANY_URL.finditer(text)]
    return bool(places and _free_places(text, places))


def _free_places(text: str, places: Sequence[int]) -> set[int]:
    """Those of the places that no literal and no comment holds, as far as the text reads as SQL."""
    try:
        tokens = lex(text, _LEXICAL_RULES)
    except Refusal:
        return set(places)  # prose: no statement that could run holds them
    return {token.at for token in tokens if token.kind == WORD} & set(places)
