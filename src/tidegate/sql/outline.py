"""The outline of a plain UPDATE or DELETE: its table and its condition, as written.

For who wants to look at the rows that the statement would touch. Fails closed: what is not plain
has no outline, and a reason instead.
"""

from __future__ import annotations

import msgspec

from tidegate.sql.dialects import find
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, WORD, Token
from tidegate.sql.opinion import Refusal
from tidegate.sql.scan import scan

_NOWHERE = frozenset({"SELECT", "TABLE", "VALUES", "WITH", "DEFAULT"})
_NOT_OUTSIDE = frozenset(
    {"FROM", "USING", "RETURNING", "ORDER", "GROUP", "LIMIT", "CURRENT", "INDEXED", "JOIN"}
)


class Outline(msgspec.Struct, frozen=True):
    """`name` has the parts of the table's name, each with whether it was quoted. `target` is the
    table with its alias and `where` the condition, as written; empty if there is none. `calls` are
    the names, in lower case if they are not quoted, that an opening bracket follows."""

    deletes: bool
    name: tuple[tuple[str, bool], ...]
    target: str
    where: str
    calls: frozenset[str]
    qualified: bool
    """Whether one of these names stands behind a dot."""


def outline(text: str, dialect: str) -> Outline | str:
    """The outline, or why there is none."""
    try:
        tokens = scan(text, find(dialect))
    except Refusal as refusal:
        return f"{refusal.opinion.reason}."
    keys = [token.key for token in tokens]
    if keys[0] == "DELETE" and keys[1:2] == ["FROM"]:
        start = 2
    elif keys[0] == "UPDATE":
        start = 1
    else:
        return "only a plain UPDATE or DELETE is tried."
    if any(token.kind == PARAM for token in tokens):
        return "it has parameters."
    if not _NOWHERE.isdisjoint(keys):
        return "it reads more than the table that it changes."
    name, end = _name(tokens, start)
    outside = _outside(tokens)
    places = [at for at in outside if tokens[at].key == "WHERE"]
    stop = outside[-1] + 1 if not places else places[0]
    deletes = start == 2
    if not deletes:
        sets = [at for at in outside if tokens[at].key == "SET"]
        stop = sets[0] if sets else end
    alias = tokens[end:stop]
    if alias and alias[0].key == "AS":
        alias = alias[1:]
    plain = not name or len(places) > 1 or len(alias) > 1 or any(not _names(a) for a in alias)
    if plain or any(tokens[at].key in _NOT_OUTSIDE for at in outside if at >= start):
        return "only a plain UPDATE or DELETE of one table is tried."
    if tokens[-1].kind not in (WORD, NUMBER, OP) and ";" in tokens[-1].text:
        return "its last word holds a semicolon."
    close = _end(text, tokens)
    target = text[tokens[start].at : tokens[stop].at if stop < len(tokens) else close]
    where = text[tokens[places[0]].at + len("WHERE") : close] if places else ""
    calls = frozenset(
        token.text if token.kind == NAME else token.text.lower()
        for token, after in zip(tokens, keys[1:], strict=False)
        if after == "(" and _names(token)
    )
    qualified = any(
        before == "." and after == "(" for before, after in zip(keys, keys[2:], strict=False)
    )
    return Outline(deletes, name, target, where, calls, qualified)


def _names(token: Token) -> bool:
    return token.kind in (WORD, NAME)


def _name(tokens: list[Token], start: int) -> tuple[tuple[tuple[str, bool], ...], int]:
    """The parts of the name that starts there, and where it ends."""
    parts: list[tuple[str, bool]] = []
    at = start
    while at < len(tokens) and _names(tokens[at]):
        parts.append((tokens[at].text, tokens[at].kind == NAME))
        at += 1
        if at >= len(tokens) or tokens[at].key != ".":
            return tuple(parts), at
        at += 1
    return (), at


def _outside(tokens: list[Token]) -> list[int]:
    """The places of the tokens that stand in no brackets."""
    places: list[int] = []
    depth = 0
    for at, token in enumerate(tokens):
        if token.key in ("(", "[", "{"):
            depth += 1
        elif token.key in (")", "]", "}"):
            depth -= 1
        elif depth == 0:
            places.append(at)
    return places


def _end(text: str, tokens: list[Token]) -> int:
    """Where the statement ends: before the semicolons behind it, wherever comments stand."""
    last = tokens[-1].at + 1
    rest = text[last:]
    # What follows is the rest of the last token, then comments and semicolons.
    rest = text[last:]
    return last + rest.index(";") if ";" in rest else len(text)
