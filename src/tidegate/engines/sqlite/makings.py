"""Reads from CREATE statements what SQLite tells in no other way: the expressions of computed
columns, and which tables a virtual one could hold rows of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidegate.sql.dialects import find
from tidegate.sql.lex import Token, lex
from tidegate.sql.opinion import Refusal

_OPENS, _CLOSES = "([{", ")]}"


def expressions(text: str) -> dict[str, str]:
    """Expressions of a table's computed columns by column; empty if they cannot be made out."""
    try:
        tokens = lex(text, find("sqlite").lexis)
    except Refusal:
        return {}
    found: dict[str, str] = {}
    for item in _items(tokens):
        for number, token in enumerate(item[:-1]):
            if number and token.key == "AS" and item[number + 1].key == "(":
                first = item[number + 1]
                found[item[0].text] = text[first.at : _end(item[number + 1 :])]
                break
    return found


def sources(text: str, names: Mapping[str, str]) -> Iterable[str]:
    """The tables that a virtual table's arguments name, perhaps in a string: too many rather than
    too few. `names` are the known ones by their lower-case form."""
    lowered = text.lower()
    arguments = lowered[lowered.find("using") :]
    words = set(re.findall(r"\w+", arguments))
    for lower, name in names.items():
        plain = lower.isidentifier()
        if lower in words if plain else lower in arguments:
            yield name


def _items(tokens: list[Token]) -> list[list[Token]]:
    """What stands between the commas of the outermost brackets."""
    items: list[list[Token]] = []
    depth = 0
    for token in tokens:
        depth -= token.key in _CLOSES
        if depth == 0 and token.key == ")":
            break
        if depth == 1 and token.key == ",":
            items.append([])
        elif depth:
            items[-1].append(token)
        elif token.key == "(":
            items.append([])
        depth += token.key in _OPENS
    return [item for item in items if item]


def _end(tokens: list[Token]) -> int:
    """Where the brackets end that the first of these tokens opens."""
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if depth == 0:
            return token.at + 1
    return tokens[-1].at
