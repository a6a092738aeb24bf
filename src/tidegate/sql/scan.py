"""Checks the raw text: that it is not too long or too deep, can be split into tokens, and is one
statement.

Does not check what the statement does. Takes time in proportion to the text, tens of microseconds
for an ordinary one.
"""

from __future__ import annotations

from tidegate.errors import Code
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import Token, lex

MAX_BYTES = 102_400
MAX_DEPTH = 64

_OPENING = frozenset("([{")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def scan(text: str, dialect: Dialect) -> list[Token]:
    """The tokens of the one statement in a text, without semicolons at its ends.

    Raises: Refusal SQL_EMPTY, SQL_TOO_LONG, SQL_TOO_DEEP, SQL_MULTIPLE, SQL_UNREADABLE.
    """
    _check_bytes(text)
    tokens = lex(text, dialect.lexical_rules)
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    first = 0
    while first < len(tokens) and tokens[first].key == ";":
        first += 1
    del tokens[:first]
    if not tokens:
        raise Refusal(Code.SQL_EMPTY, "text.empty", "The text holds no statement")
    _check_nesting(tokens, _body(tokens, dialect))
    return tokens


def _check_bytes(text: str) -> None:
    size = len(text)
    if size <= MAX_BYTES and not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.surrogate",
                "The text holds half of a UTF-16 surrogate pair",
                "Send valid UTF-8.",
            ) from None
    if size > MAX_BYTES:
        raise Refusal(Code.SQL_TOO_LONG, "text.size", "Query exceeds 100KB limit")
    if "\0" in text:
        raise Refusal(
            Code.SQL_UNREADABLE, "text.nul", "The text holds a NUL character", "Remove it."
        )


def _body(tokens: list[Token], dialect: Dialect) -> int:
    """How many tokens at the start belong to a definition with a body (CREATE TRIGGER ... BEGIN
    a; b; END), in which semicolons do not end the statement; 0 if it is another statement."""
    if tokens[0].key != "CREATE" or dialect.compound.isdisjoint(t.key for t in tokens[1:6]):
        return 0
    keys = [token.key for token in tokens]
    if "BEGIN" not in keys:
        return 0
    for at in range(keys.index("BEGIN") + 1, len(keys)):
        if keys[at] == "END" and keys[at - 1] == ";" and (keys[at + 1 : at + 2] in ([], [";"])):
            return at + 1
    return 0


def _check_nesting(tokens: list[Token], body: int) -> None:
    """Refuses a second statement, unbalanced brackets and too deep ones."""
    open_brackets: list[str] = []
    for index, token in enumerate(tokens):
        key = token.key
        if not key:
            continue
        if key in _OPENING:
            open_brackets.append(key)
            if len(open_brackets) > MAX_DEPTH:
                raise Refusal(
                    Code.SQL_TOO_DEEP,
                    "text.depth",
                    f"More than {MAX_DEPTH} brackets are open at character {token.at + 1}",
                )
        elif key in _CLOSING:
            if not open_brackets or open_brackets.pop() != _CLOSING[key]:
                raise _unbalanced(token)
        elif key == ";" and index >= body:
            # An empty statement does not count; semicolons at the end are already gone.
            raise Refusal(
                Code.SQL_MULTIPLE,
                "text.statements",
                "Multi-statement queries are not supported. Send one statement at a time.",
            )
    if open_brackets:
        raise _unbalanced(tokens[-1])


def _unbalanced(token: Token) -> Refusal:
    return Refusal(
        Code.SQL_UNREADABLE,
        "text.brackets",
        f"Brackets do not match at character {token.at + 1}",
        "Close every bracket that is opened.",
    )
