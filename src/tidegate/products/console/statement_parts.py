"""Parts a text into statements, and counts its characters as JavaScript does. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import OP, Token, lex

_AT = re.compile(r"at character (\d+)")
_BODIES = frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE"})
_HEAD = 12
"""Tokens within which a definition says that it is of something with a body."""
_BLOCKS = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "CASE", "FOR"})


class Part(NamedTuple):
    """A statement, from its first to its last character."""

    start: int
    end: int


class Unreadable(NamedTuple):
    """Why a text cannot be read, and at which character, where that is known."""

    message: str
    at: int | None


def statement_parts(text: str, dialect: str) -> tuple[list[Part], Unreadable | None]:
    """The statements of a text, without those that are empty. A text that cannot be read is one."""
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal as refusal:
        reason = refusal.finding.reason
        found = _AT.search(reason)
        return _whole(text), Unreadable(reason, int(found[1]) - 1 if found else None)
    parts: list[Part] = []
    own: list[Token] = []
    depth = 0
    for place, token in enumerate(tokens):
        if token.kind == OP and token.key == ";" and depth <= 0:
            _end(parts, own, token.at, text)
            own, depth = [], 0
            continue
        own.append(token)
        if _has_body(own):
            depth += _nesting(tokens, place)
    _end(parts, own, len(text), text)
    return parts, None


class Utf16:
    """Positions in a text, in characters and in UTF-16 code units."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = all(each < "\U00010000" for each in text) if not text.isascii() else True

    def units(self, at: int) -> int:
        """The code units before a character."""
        if self._plain:
            return at
        return at + sum(each >= "\U00010000" for each in self._text[:at])

    def characters(self, units: int) -> int:
        """The characters before a code unit."""
        if self._plain:
            return min(max(units, 0), len(self._text))
        at = 0
        for each in self._text:
            units -= 2 if each >= "\U00010000" else 1
            if units < 0:
                break
            at += 1
        return at


def _whole(text: str) -> list[Part]:
    body = text.strip()
    if not body:
        return []
    start = text.index(body[0])
    return [Part(start, start + len(body))]


def _end(parts: list[Part], own: Sequence[Token], stop: int, text: str) -> None:
    if own:
        start = own[0].at
        parts.append(Part(start, start + len(text[start:stop].rstrip())))


def _has_body(own: Sequence[Token]) -> bool:
    """Whether the statement defines something whose body is statements."""
    if own[0].key != "CREATE":
        return False
    return any(token.key in _BODIES for token in own[1:_HEAD])


def _nesting(tokens: Sequence[Token], place: int) -> int:
    key = tokens[place].key
    if key == "END":
        after = tokens[place + 1].key if place + 1 < len(tokens) else ""
        return 0 if after in _BLOCKS - {"CASE"} else -1
    if key == "BEGIN":
        return 1
    before = tokens[place - 1].key if place else ""
    return 1 if key == "CASE" and before != "END" else 0
