"""Finds the columns that the text of a CREATE INDEX names, in its expressions and its condition."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, STRING, WORD, lex

_UNNAMED = frozenset({"rowid", "oid", "_rowid_", "columns"})
"""Words that mean a column without its name."""


def index_columns(
    text: str, table: str, columns: Iterable[str], dialect: Dialect
) -> tuple[str, ...] | None:
    """Those of the table's columns that the text names, perhaps in a string: too many rather than
    too few. None if that is unknown: also for the row as a whole, which the table's name means.
    """
    try:
        tokens = lex(text, dialect.lexical_rules)
    except Refusal:
        return None
    first = next((number for number, token in enumerate(tokens) if token.key == "("), None)
    if first is None:
        return None
    words = {token.text.lower() for token in tokens[first:] if token.kind in (WORD, NAME, STRING)}
    known = {name.lower(): name for name in columns}
    if words & (_UNNAMED | {table.lower()}) - known.keys():
        return None
    return tuple([name for lower, name in known.items() if lower in words])
