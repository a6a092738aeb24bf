"""Whether a query says in which order its rows come."""

from __future__ import annotations

from tidegate.sql.dialects import find
from tidegate.sql.lex import lex


def is_ordered(text: str, dialect: str) -> bool:
    """Whether there is an ORDER BY outside of all brackets. Raises: Refusal if the text cannot be
    read."""
    depth = 0
    before = ""
    for token in lex(text, find(dialect).lexical_rules):
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
        elif depth == 0 and before == "ORDER" and token.key == "BY":
            return True
        before = token.key
    return False
