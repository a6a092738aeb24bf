"""Tells SQL from a question in plain language, by its text alone.

What is neither clearly is taken as SQL where a database could read it: a question that is taken for
SQL fails and says how to ask it, while SQL that is taken for a question would be rewritten.
"""

from __future__ import annotations

from tidegate.errors import Code
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, STRING, WORD, Token, lex

_DIALECT = find("postgres")
_SYMBOLS = words("* = < > ( ) ; :: <> != <= >= ||")
_SECOND_WORDS = {
    "INSERT": ("INTO",),
    "UPDATE": ("SET",),
    "DELETE": ("FROM",),
    "MERGE": ("INTO",),
}
_EXPLAINED = frozenset(
    {"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXECUTE"}
    | {"CREATE", "DECLARE", "REFRESH"}
)
_FIXED_SHOWS = frozenset({"ALL", "PORT", "SSL", "FSYNC", "TIMEZONE", "DATESTYLE", "INTERVALSTYLE"})
_SHOW_PHRASES = (
    ("TIME", "ZONE"),
    ("SESSION", "AUTHORIZATION"),
    ("TRANSACTION", "ISOLATION", "LEVEL"),
)


def is_sql(text: str) -> bool:
    """Whether a text is to be run as SQL; otherwise it is a question."""
    try:
        tokens = lex(text, _DIALECT.lexical_rules)
    except Refusal:
        # An apostrophe in prose, or SQL of another dialect: the first word decides.
        first = text.lstrip().split(None, 1)
        return (
            bool(first) and first[0].upper() in _DIALECT.roots and not text.rstrip().endswith("?")
        )
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    if not tokens or tokens[0].key not in _DIALECT.roots:
        return False
    if tokens[0].key == "SHOW":
        return _is_show(tokens[1:])
    if not _has_its_word(tokens):
        return any(token.key in _SYMBOLS for token in tokens[1:])
    if judge(text, "postgres").code != Code.SQL_UNREADABLE.value:
        return not _is_prose(tokens)
    return any(token.kind == STRING or token.key in _SYMBOLS for token in tokens[1:])


def _has_its_word(tokens: list[Token]) -> bool:
    """Whether a change or an EXPLAIN has the word without which there is none."""
    first = tokens[0].key
    if first == "EXPLAIN":
        return any(token.key in _EXPLAINED for token in tokens[1:])
    wanted = _SECOND_WORDS.get(first)
    return wanted is None or any(token.key in wanted for token in tokens[1:])


def _is_show(words: list[Token]) -> bool:
    """`SHOW` takes the name of a parameter, and those of more than one word are few."""
    keys = tuple(token.key for token in words)
    if len(words) == 1:
        token = words[0]
        named = token.kind == NAME or "_" in token.text
        return named or token.key in _FIXED_SHOWS
    return keys in _SHOW_PHRASES or ("." in keys and len(keys) == 3)


def _is_prose(tokens: list[Token]) -> bool:
    """Whether it begins with a word that ends no sentence in SQL: `grant me access to sales?`."""
    is_query = _DIALECT.roots[tokens[0].key] in ("query", "change", "explain")
    plain = all(token.kind == WORD for token in tokens[:-1])
    return not is_query and plain and len(tokens) > 3 and tokens[-1].key == "?"
