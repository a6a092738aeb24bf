"""Finds names in the quotes of another database: in backticks, or in brackets. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.products.jdbc.extraction.source_text import GENERIC, dialect_of
from tidegate.sql.dialects.model import words

_PIECE = re.compile(
    r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*+|/\*.*?\*/"""
    r"""|(?P<tick>`[^`\n]++`)|(?P<bracket>\[[A-Za-z_][^\[\],?\n]*+\])|(?P<word>\w++)|(?P<sign>\S)""",
    re.DOTALL,
)
_BEFORE_NAME = words(
    "SELECT DISTINCT ALL FROM JOIN WHERE AND OR NOT ON BY AS HAVING WHEN THEN ELSE CASE INTO"
)
_AFTER = frozenset("=<>+-*/%.,(|&")
"""The words and signs after which a bracket begins no subscript."""
_LISTS = frozenset({"duckdb"})
"""Dialects in which brackets anywhere are lists."""


class ForeignName(NamedTuple):
    """The name, as it is written, and where it begins."""

    text: str
    raw: str
    at: int


def foreign_name(text: str, dialect: str) -> ForeignName | None:
    """The first name in quotes that the dialect does not have; None if there is none. In a text of
    no known database only brackets are foreign, and only if none is a subscript."""
    if "`" not in text and "[" not in text:
        return None
    rules = dialect_of(dialect).lexical_rules
    found: ForeignName | None = None
    before = ""
    for piece in _PIECE.finditer(text):
        kind, raw = piece.lastgroup, piece[0]
        if kind == "tick" and not rules.backticks:
            found = found or ForeignName(raw[1:-1], raw, piece.start())
        elif kind == "bracket" and not rules.bracketed_names and dialect not in _LISTS:
            if before.upper() in _BEFORE_NAME or before in _AFTER:
                found = found or ForeignName(raw[1:-1], raw, piece.start())
            elif dialect == GENERIC:
                return None
        elif kind == "sign" and raw == "[" and dialect == GENERIC:
            return None  # a subscript or a list
        if kind is not None:
            before = raw
    return found
