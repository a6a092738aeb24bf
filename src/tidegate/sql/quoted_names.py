"""Names in double quotes, which SQLite reads as texts where nothing has such a name."""

from __future__ import annotations

import re

from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, lex

_DOUBLE_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def in_backticks(text: str, dialect: str) -> str | None:
    """The text with its double quotes around names as backticks, within which a name is never a
    text; None if it cannot be read."""
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal:
        return None
    parts: list[str] = []
    at = 0
    for token in tokens:
        if token.kind != NAME or token.at < at:
            continue
        found = _DOUBLE_QUOTED.match(text, token.at)
        if found is not None:
            name = found[0][1:-1].replace('""', '"').replace("`", "``")
            parts += [text[at : token.at], f"`{name}`"]
            at = found.end()
    return "".join([*parts, text[at:]])
