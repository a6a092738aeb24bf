"""A statement as JDBC drivers take it: with `?` for parameters, without a last semicolon. Pure."""

from __future__ import annotations

import re
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Prepare
from tidegate.products.jdbc.engine.known_databases import KnownDatabase
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import OP, PARAM, Token, lex

_COMMENT = re.compile(r"--|#|/[*/]")
_TEMPORARY = words("TEMP TEMPORARY")
_CREATED = words("TABLE VIEW SEQUENCE INDEX")


def for_jdbc(
    text: str, params: tuple[Any, ...] | None, dialect: str
) -> tuple[str, tuple[Any, ...]]:
    """The statement with `?` for each marker, and the values in the order of the markers. Without
    parameters the text stays as it is.

    An operator that holds a `?`, as PostgreSQL's on JSON, has it doubled: so JDBC drivers read it.
    Raises: TidegateError ARGUMENT_INVALID if the counts differ, or where a `?` could be misread.
    """
    if not params:
        return text, ()
    rules = find(dialect)
    if not rules.numbered_parameters:
        _check_comments(text)
        return text, params
    return _with_marks(text, params, _tokens(text, rules))


def to_prepare(text: str, dialect: str) -> str:
    """The statement with `?` for each marker, for a driver that is only to prepare it.

    Raises: TidegateError as `for_jdbc`.
    """
    rules = find(dialect)
    if not rules.numbered_parameters:
        return text
    tokens = _tokens(text, rules)
    places = [token.text[1:] for token in tokens if token.kind == PARAM]
    count = max([int(place) for place in places if place.isdecimal()], default=0)
    return _with_marks(text, (None,) * min(count, len(places)), tokens)[0]


def check_described(request: Prepare, product: KnownDatabase) -> None:
    """See that a statement without columns may have none: MariaDB's driver keeps quiet where the
    server did not prepare it.

    Raises: TidegateError SQL_FAILED for a query, UNSUPPORTED for a change that returns rows.
    """
    text = request.statement.text
    returns = any(token.key == "RETURNING" for token in _tokens(text, find(product.dialect)))
    if request.changes and returns:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The driver of {product.title} does not describe what this change returns.",
        )
    if not request.changes:
        raise TidegateError(
            Code.SQL_FAILED,
            "The database did not prepare the query, and its driver does not say why.",
            hint="Check the names and the syntax; the error is shown when the query runs.",
        )


def _tokens(text: str, rules: Dialect) -> list[Token]:
    try:
        return lex(text, rules.lexical_rules)
    except Refusal as refusal:
        raise TidegateError(Code.SQL_UNREADABLE, str(refusal)) from None


def _with_marks(
    text: str, params: tuple[Any, ...], tokens: list[Token]
) -> tuple[str, tuple[Any, ...]]:
    parts: list[str] = []
    values: list[Any] = []
    at = 0
    for token in tokens:
        if token.kind == PARAM:
            place = token.text[1:]
            if not place.isdecimal() or not 1 <= int(place) <= len(params):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The statement has the marker {token.text[:20]}, and {len(params)} parameters"
                    " were given.",
                )
            parts += (text[at : token.at], "?")
            values.append(params[int(place) - 1])
            at = token.at + len(token.text)
        elif token.kind == OP and "?" in token.text:
            parts += (text[at : token.at], token.text.replace("?", "??"))
            at = token.at + len(token.text)
    parts.append(text[at:])
    return "".join(parts), tuple(values)


def with_values(text: str, params: tuple[Any, ...] | None, dialect: str) -> str:
    """The statement with literals in place of its markers, for a driver that would write them
    itself. Raises: TidegateError ARGUMENT_INVALID if the counts differ, SQL_UNREADABLE."""
    if not params:
        return text
    rules = find(dialect)
    try:
        markers = [token for token in lex(text, rules.lexical_rules) if token.kind == PARAM]
    except Refusal as refusal:
        raise TidegateError(Code.SQL_UNREADABLE, str(refusal)) from None
    if len(markers) != len(params):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement has {len(markers)} markers, and {len(params)} parameters were given.",
        )
    parts: list[str] = []
    at = 0
    for token, value in zip(markers, params, strict=True):
        parts += (text[at : token.at], f" {rules.literal(value)} ")
        at = token.at + len(token.text)
    parts.append(text[at:])
    return "".join(parts)


def _check_comments(text: str) -> None:
    """Refuse what may begin a comment, anywhere in the text. Some drivers write the values into the
    text themselves: one that ends a comment elsewhere than the database takes a `?` in a string for
    a marker, and the value would be read as SQL that was not judged. Raises: TidegateError
    ARGUMENT_INVALID."""
    found = _COMMENT.search(text)
    if found is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement holds {found[0]} at character {found.start() + 1}, which may begin a"
            " comment, and has parameters: a JDBC driver could take a string for a marker.",
            hint="Leave the comment out, put a space between two signs, or pass a string that holds"
            " it as a parameter.",
        )


def creates_temporary(text: str, dialect: str) -> bool:
    """Whether a statement creates a temporary table, which the connection would keep."""
    try:
        keys = [token.key for token in lex(text, find(dialect).lexical_rules)]
    except Refusal:
        return True
    named = next((at for at, key in enumerate(keys) if key in _CREATED), len(keys))
    return keys[:1] == ["CREATE"] and any(key in _TEMPORARY for key in keys[1:named])


def without_end(text: str, dialect: str) -> str:
    """The statement without a semicolon at its end, and without what follows it: some
    drivers take it for a second statement."""
    if ";" not in text:
        return text
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal:
        return text
    end = len(text)
    while tokens and tokens[-1].key == ";":
        end = tokens.pop().at
    return text[:end]


def first_word(text: str, dialect: str) -> str:
    """The word that a statement begins with, in capitals; empty if it begins with something else
    or cannot be read."""
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal:
        return ""
    return tokens[0].key if tokens and tokens[0].key.isalpha() else ""
