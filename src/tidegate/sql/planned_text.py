"""Which part of a text a database plans and runs. Pure."""

from __future__ import annotations

from tidegate.sql.dialects.model import Dialect
from tidegate.sql.lex import Token, lex
from tidegate.sql.statement_kinds import explained

_PLANNED = ("query", "change")
_FILLED = frozenset({"TABLE", "MATERIALIZED"})
"""What CREATE makes of a query that it runs; a view runs when it is read."""

_READS_ALL = frozenset({"SUMMARIZE"})
"""Reads every row of what it describes, unlike DESCRIBE."""


def planned_text(text: str, dialect: Dialect) -> str | None:
    """The query or change that a statement runs: itself, or the one in EXPLAIN ANALYZE, COPY or
    CREATE TABLE AS. None where nothing is planned that runs. Raises: Refusal for a text that cannot
    be read, which the judge has refused."""
    tokens, end = lex(text, dialect.lexical_rules), len(text)
    while tokens and tokens[-1].key == ";":
        end = tokens.pop().at
    if not tokens:
        return None
    start = _start(tokens, dialect)
    if start is None or start >= len(tokens):
        return None
    if tokens[start - 1].key == "(" and tokens[0].key == "COPY":
        end = _closing(tokens, start - 1)
    return text[tokens[start].at : end].rstrip()


def _start(tokens: list[Token], dialect: Dialect) -> int | None:
    """The place of the first token that is planned and runs."""
    first = tokens[0].key
    form = dialect.roots.get(first)
    if form in _PLANNED or (form == "describe" and first in _READS_ALL):
        return 0
    if form == "explain":
        at, runs = explained(tokens, dialect)
        return at if runs else None
    if form == "analyze":
        at = 4 if tokens[1:2] and tokens[1].key == "FORMAT" else 1
        gathers = at < len(tokens) and tokens[at].key == "TABLE"  # statistics of a table
        return at if _is_planned(tokens, at, dialect) and not gathers else None
    if first == "COPY" and len(tokens) > 2 and tokens[1].key == "(":
        return 2
    if form == "create":
        return _query_of(tokens, dialect)
    return None


def _query_of(tokens: list[Token], dialect: Dialect) -> int | None:
    """The place of the query of which CREATE makes a table."""
    depth, fills = 0, False
    for at, token in enumerate(tokens):
        if depth == 0 and token.key == "AS":
            return at + 1 if fills and _is_planned(tokens, at + 1, dialect) else None
        if depth == 0 and fills and _begins_query(tokens, at):
            return at
        depth += (token.key == "(") - (token.key == ")")
        fills = fills or (depth == 0 and token.key in _FILLED)
    return None


def _begins_query(tokens: list[Token], at: int) -> bool:
    """Whether it is the query of a table to which no AS leads, as MariaDB and MySQL take it."""
    before = tokens[at - 1].key
    while at < len(tokens) - 1 and tokens[at].key == "(":
        at += 1
    key, after = tokens[at].key, tokens[at + 1 : at + 2]
    if key == "WITH":  # not the options of a table
        return bool(after) and after[0].key not in ("(", "SYSTEM")
    return key in ("SELECT", "TABLE") or (key == "VALUES" and before != "FOR")


def _is_planned(tokens: list[Token], at: int, dialect: Dialect) -> bool:
    if at >= len(tokens):
        return False
    key = tokens[at].key
    return key in _READS_ALL or dialect.roots.get(key) in _PLANNED


def _closing(tokens: list[Token], opening: int) -> int:
    """Where the bracket closes, in characters."""
    depth = 0
    for token in tokens[opening:]:
        depth += (token.key == "(") - (token.key == ")")
        if depth == 0:
            return token.at
    return tokens[-1].at
