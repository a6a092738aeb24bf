"""Finds the query in a view's definition: some databases tell the whole CREATE VIEW."""

from __future__ import annotations

from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import lex


def view_query(definition: str, dialect: Dialect) -> str | None:
    """The query without a semicolon; None if it cannot be made out."""
    try:
        tokens = lex(definition, dialect.lexical_rules)
    except Refusal:
        return None
    while tokens and tokens[-1].key == ";":
        definition = definition[: tokens.pop().at]
    if not tokens or tokens[0].key != "CREATE":
        return definition if tokens else None
    if "VIEW" not in [token.key for token in tokens[1:6]]:
        return None
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if token.key == "AS" and depth == 0:
            return definition[token.at + 2 :]
    return None
