"""Replaces syntax that the parser does not know, so that it can read the rest.

A dialect's table of rules says what to replace: clauses that do nothing, such as the width of a
type or what JSON gives for a missing value. Calls, tables and nested queries are never left out,
and all words were checked before.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tidegate.sql.dialects.model import Dialect
from tidegate.sql.lex import LITERALS, NUMBER, OP, STRING, WORD, Token

ROWS_SHOWN = 8
"""How many rows of literals alone are shown to the parser; further ones tell it nothing."""

_KINDS = {"'": STRING, "#": NUMBER}
_BRACKETS = frozenset("()[]{}")
_PLAIN = frozenset({"NULL", "TRUE", "FALSE", "DEFAULT", "-", "+", ","})


class _Rule(NamedTuple):
    """`seen` is what each token must be, `rewritten` what is put in place of them."""

    seen: tuple[str, ...]
    rewritten: tuple[str, ...]


def apply_shims(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """The tokens with the dialect's rules applied, the first that fits at each place."""
    rules = _rules(dialect.respellings)
    if rules.keys().isdisjoint(token.key for token in tokens):
        return tokens
    rewritten: list[Token] = []
    at = 0
    while at < len(tokens):
        for rule in rules.get(tokens[at].key, ()):
            end = _end(rule.seen, tokens, at)
            if end:
                rewritten += (_token(word, tokens, at) for word in rule.rewritten)
                at = end
                break
        else:
            rewritten.append(tokens[at])
            at += 1
    return rewritten


def shorten(tokens: list[Token]) -> list[Token]:
    """The tokens without all but the first of many rows of literals: `(1, 'a'), (2, 'b'), ...`."""
    if len(tokens) < 200:
        return tokens
    kept: list[Token] = []
    at = rows = 0
    while at < len(tokens):
        end = _row(tokens, at)
        rows = rows + 1 if end else 0
        if not end:
            kept.append(tokens[at])
            at += 1
            continue
        if rows <= ROWS_SHOWN:
            kept += tokens[at:end]
        at = end
    return kept


def _row(tokens: list[Token], at: int) -> int:
    """Where the row of literals ends that begins with a comma after another row; 0 if none does."""
    if at + 1 >= len(tokens) or tokens[at].key != "," or tokens[at + 1].key != "(":
        return 0
    if at == 0 or tokens[at - 1].key != ")":
        return 0
    for end in range(at + 2, len(tokens)):
        token = tokens[end]
        if token.key == ")":
            return end + 1
        if token.kind not in LITERALS and token.key not in _PLAIN:
            return 0
    return 0


def _end(seen: tuple[str, ...], tokens: list[Token], at: int) -> int:
    """Where a rule that fits at a place ends; 0 if it does not fit."""
    for item in seen:
        if item == "*":
            while at < len(tokens) and tokens[at].key not in _BRACKETS:
                at += 1
            continue
        if at >= len(tokens) or not _fits(item, tokens[at]):
            return 0
        at += 1
    return at


def _fits(item: str, token: Token) -> bool:
    if item == "@":
        return token.kind == WORD
    kind = _KINDS.get(item)
    return token.key == item if kind is None else token.kind == kind


def _token(word: str, tokens: list[Token], at: int) -> Token:
    if word.isdigit():
        return tokens[at + int(word)]
    if word == "'":
        return Token(STRING, "", "x", tokens[at].at)
    return Token(WORD if word.isalpha() else OP, word, word, tokens[at].at)


@cache
def _rules(respellings: tuple[tuple[str, str], ...]) -> dict[str, tuple[_Rule, ...]]:
    """The rules by the first word they apply to."""
    rules: dict[str, tuple[_Rule, ...]] = {}
    for seen, rewritten in respellings:
        rule = _Rule(tuple(seen.split()), tuple(rewritten.split()))
        rules[rule.seen[0]] = (*rules.get(rule.seen[0], ()), rule)
    return rules
