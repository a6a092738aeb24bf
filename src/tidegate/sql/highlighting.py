"""Splits a statement into parts with the kind of each, for colors: the same lexer that judges it.

The parts together are the text. What cannot be read as tokens is one plain part. Pure.
"""

from __future__ import annotations

from typing import Literal

from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import LexicalRules
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, STRING, Token, lex
from tidegate.sql.quoting import is_reserved
from tidegate.sql.token_regex import token_regex

PartKind = Literal["keyword", "name", "string", "number", "comment", "operator", "space", "plain"]
Part = tuple[PartKind, str]

_KINDS: dict[str, PartKind] = {
    NAME: "name",
    STRING: "string",
    NUMBER: "number",
    PARAM: "number",
    OP: "operator",
}


def highlight(text: str, dialect: str) -> list[Part]:
    """The parts of a statement, in order."""
    rules = find(dialect).lexical_rules
    try:
        tokens = lex(text, rules)
    except Refusal:
        return [("plain", text)] if text else []
    if not tokens:
        return _between(text)
    starts = [token.at for token in tokens]
    parts: list[Part] = _between(text[: starts[0]])
    for token, start, end in zip(tokens, starts, [*starts[1:], len(text)], strict=True):
        stop = _end(text, token, start, end, rules)
        parts.append((_kind(token, dialect), text[start:stop]))
        parts += _between(text[stop:end])
    return parts


def _kind(token: Token, dialect: str) -> PartKind:
    if token.key and token.kind not in _KINDS:
        return "keyword" if is_reserved(token.text, dialect) else "name"
    return _KINDS.get(token.kind, "name")


def _end(text: str, token: Token, start: int, end: int, rules: LexicalRules) -> int:
    """Where a token ends: before the next one may be spaces and comments."""
    found = token_regex(rules).match(text, start)
    if found is None or found.lastgroup in ("dollar", "end"):
        return start + len(text[start:end].rstrip())
    return min(found.end(), end)


def _between(text: str) -> list[Part]:
    if not text:
        return []
    lead = len(text) - len(text.lstrip())
    comment = text.strip()
    parts: list[Part] = [("space", text[:lead])] if lead else []
    if comment:
        parts.append(("comment", comment))
        if tail := text[lead + len(comment) :]:
            parts.append(("space", tail))
    return parts
