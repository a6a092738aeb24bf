"""Command tags: what PostgreSQL says of a statement that has ended, such as `SELECT 5`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.model.results import Page
from tidegate.products.pgwire.command_reader import MOST_READ
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import WORD, Token, lex

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_VERBS = frozenset({*_CHANGES, "SELECT", "VALUES", "TABLE"})
"""What may follow a WITH."""

_HOW = frozenset(
    {"OR", "REPLACE", "UNIQUE", "TEMP", "TEMPORARY", "UNLOGGED", "RECURSIVE", "CONSTRAINT"}
)
"""Words between CREATE and what is made that are in no tag."""
_KINDS = frozenset({"MATERIALIZED", "FOREIGN", "EVENT"})
"""Words that begin the two of a kind, as in `DROP MATERIALIZED VIEW`."""


def command_tag(text: str, page: Page, dialect: str) -> str:
    """The tag of a statement of that dialect, from its result."""
    if page.tag:
        return page.tag
    verb = _verb(text, dialect)
    if verb == "INSERT":
        return f"INSERT 0 {page.affected or page.row_count}"
    if verb in _CHANGES:
        return f"{verb} {page.affected or page.row_count}"
    if verb == "EXPLAIN":
        return verb
    if page.columns or page.reads_nothing:
        return f"SELECT {page.row_count}"
    return verb


def may_return_rows(text: str) -> bool:
    """Whether a change may give rows back: it has the word for it somewhere."""
    return "RETURNING" in text.upper()


def _outer_words(tokens: Sequence[Token]) -> Iterator[str]:
    """The words in no bracket, and then the others: a statement's own verb is after its WITH."""
    depth, inner = 0, list[str]()
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if token.kind == WORD:
            if depth == 0:
                yield token.key
            else:
                inner.append(token.key)
    yield from inner


def _verb(text: str, dialect: str) -> str:
    head = text[:2_000]
    words = [word.upper() for word in head.split(None, 9)[:9]]
    first = words[0].strip("(;") if words else ""
    if first == "WITH" or not first.isalpha():
        try:
            tokens = lex(text[:MOST_READ], find(dialect).lexical_rules)
        except Refusal:
            tokens = []
        keys = list(_outer_words(tokens))
        return next((key for key in keys if key in _VERBS), keys[0] if keys else "OK")
    if first in ("CREATE", "DROP", "ALTER") and len(words) > 1:
        objects = [word.strip(";") for word in words[1:] if word not in _HOW]
        return " ".join([first, *objects[: 2 if objects[:1] and objects[0] in _KINDS else 1]])
    return first
