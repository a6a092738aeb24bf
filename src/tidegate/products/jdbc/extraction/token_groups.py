"""The tokens of a query with their brackets: what is at one level, and which brackets hold a query.

CASE and END count as brackets here, so that the AND of a CASE belongs to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tidegate.products.jdbc.extraction.source_text import SourceText
from tidegate.sql.dialects.model import LexicalRules, words
from tidegate.sql.lex import NAME, STRING, WORD, Token
from tidegate.sql.token_regex import token_regex

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_QUERIES = words("SELECT WITH VALUES TABLE FROM")
_AFTER_QUERY = words("UNION INTERSECT EXCEPT MINUS ORDER LIMIT OFFSET FETCH")


class TokenGroups:
    """The tokens of `source`; `marks` are the indexes of its parameters, in order."""

    def __init__(self, source: SourceText, tokens: list[Token], rules: LexicalRules) -> None:
        self._source = source
        self._rules = rules
        self.tokens = tokens
        places = frozenset(source.markers)
        self.marks = [index for index, token in enumerate(tokens) if token.at in places]
        self.partner = _partners(tokens)

    def key(self, index: int) -> str:
        """The keyword or sign at a place; empty for anything quoted, and outside the text."""
        return self.tokens[index].key if 0 <= index < len(self.tokens) else ""

    def is_word(self, index: int) -> bool:
        """Whether a bare word is there that no dot precedes: it may be a keyword."""
        token = self.tokens[index]
        return token.kind == WORD and bool(token.key) and self.key(index - 1) != "."

    def level(self, low: int, high: int) -> Iterator[int]:
        """The places from `low` to `high` that are in no bracket of their own; of a bracket, the
        opening one."""
        at = low
        while at < high:
            yield at
            at = self.partner.get(at, at) + 1

    def marks_in(self, low: int, high: int) -> list[int]:
        """The places in `marks` of the parameters from `low` to `high`."""
        return list(range(bisect_left(self.marks, low), bisect_left(self.marks, high)))

    def own_marks(self, low: int, high: int) -> list[int]:
        """Those of `marks_in` that no nested query holds."""
        found = self.marks_in(low, high)
        if not found:
            return found
        hidden: set[int] = set()
        for start, end in self.queries(low, high):
            hidden.update(self.marks_in(start, end))
        return [mark for mark in found if mark not in hidden]

    def queries(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Where the nested queries are, the outermost alone."""
        for at in self.level(low, high):
            end = self.partner.get(at)
            if end is None:
                continue
            if self.is_query(at):
                yield at + 1, end
            else:
                yield from self.queries(at + 1, end)

    def is_query(self, opening: int) -> bool:
        """Whether the bracket at a place holds a query."""
        while self.key(opening) == "(":
            if self.key(opening + 1) in _QUERIES and self.is_word(opening + 1):
                return self.key(opening + 1) != "VALUES" or self.key(opening + 2) in ("(", "ROW")
            inner = self.partner.get(opening + 1)
            end = self.partner[opening]
            if inner is None or not (inner + 1 == end or self.key(inner + 1) in _AFTER_QUERY):
                return False
            opening += 1
        return False

    def unwrap(self, low: int, high: int) -> tuple[int, int]:
        """Without brackets around the whole."""
        while low < high and self.key(low) == "(" and self.partner.get(low) == high - 1:
            low, high = low + 1, high - 1
        return low, high

    def text(self, low: int, high: int) -> str:
        """What the client wrote from the token `low` up to the token `high`, without comments at
        the ends."""
        if low >= high:
            return ""
        last = self.tokens[high - 1]
        return self._source.slice(self.tokens[low].at, self._end(last))

    def _end(self, token: Token) -> int:
        if token.kind not in (NAME, STRING):
            return token.at + len(token.text)
        text = self._source.text
        found = token_regex(self._rules).match(text, token.at)
        if found is None:
            return token.at + len(token.text)
        if found.lastgroup == "dollar":
            return text.index(found["dollar"], found.end()) + len(found["dollar"])
        return found.end()


def _partners(tokens: list[Token]) -> dict[int, int]:
    """The place of the closing bracket by that of the opening one."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        key = token.key
        named = index > 0 and tokens[index - 1].key == "."
        if key in _OPENING or (key == "CASE" and not named):
            opened.append(index)
        elif opened and (
            (key in _CLOSING and tokens[opened[-1]].key != "CASE")
            or (key == "END" and not named and tokens[opened[-1]].key == "CASE")
        ):
            partner[opened.pop()] = index
    return partner
