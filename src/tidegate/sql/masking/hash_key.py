"""Binds the key of hash masks to a rewritten statement as a parameter.

The key is never part of a statement's text: databases quote that text in errors, plans, names of
columns and lists of sessions. While a statement is rewritten, `KEY` marks the places of the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.statements import Statement
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.lex import PARAM, Token
from tidegate.sql.scan import scan

KEY = "\0"
"""Marks a place of the key. It is one character, as `?` is, so that places stay the same."""

NO_KEY = f"'{'0' * 32}'"
"""Takes the key's place where nothing is computed: a plan shows expressions."""


def readable(text: str) -> str:
    """The marked text as the judge can read it."""
    return text.replace("tidegate_hash(", "hex(").replace(KEY, "''")


def bind_key(
    written: str,
    tokens: Sequence[Token],
    params: tuple[Any, ...] | None,
    key: str,
    dialect: Dialect,
) -> Statement:
    """The marked text with parameters in the marked places. `tokens` are those of the text that the
    caller wrote, `params` the caller's parameters.

    Raises: TidegateError ARGUMENT_INVALID if the caller's placeholders do not fit its parameters:
    one of them could take the key. POLICY_MASKED where placeholders cannot be distinguished.
    """
    given = params or ()
    if dialect.numbered_parameters:
        _check_numbers(tokens, len(given))
        return Statement(written.replace(KEY, f"${len(given) + 1}"), (*given, key))
    if dialect.variable_sigil == "@":
        return _in_order(written, given, key, dialect)
    return _by_number(written, given, key, dialect)


def key_parameters(dialect: Dialect, places: int) -> tuple[str, int]:
    """What is in each of so many places of the key where the caller has no placeholder, and how
    many parameters take it: what `bind_key` gives then."""
    if dialect.numbered_parameters:
        return "$1", 1
    return ("?", places) if dialect.variable_sigil == "@" else ("?1", 1)


def has_placeholder(tokens: Sequence[Token]) -> bool:
    """Whether the caller's text may have a placeholder."""
    return any(token.kind == PARAM or token.key == "?" for token in tokens)


def _check_numbers(tokens: Sequence[Token], given: int) -> None:
    for token in tokens:
        number = token.text[1:]
        if token.kind == PARAM and not (number.isdigit() and 0 < int(number) <= given):
            raise _parameter_mismatch(token.text, given)
    if any(token.key == "?" and token.kind != PARAM for token in tokens) and given:
        raise masking_refused(
            "Placeholders without numbers cannot be used where columns are hashed",
            "mask.parameters",
            "Write $1, $2, and so on.",
        )


def _in_order(written: str, given: tuple[Any, ...], key: str, dialect: Dialect) -> Statement:
    """Each `?` takes the next parameter."""
    text = written.replace(KEY, "?")
    rest = iter(given)
    bound: list[Any] = []
    for token in scan(text, dialect):
        if token.kind != PARAM or token.text != "?":
            continue
        if written[token.at] == KEY:
            bound.append(key)
            continue
        try:
            bound.append(next(rest))
        except StopIteration:
            raise _parameter_mismatch("?", len(given)) from None
    return Statement(text, (*bound, *rest))


def _by_number(written: str, given: tuple[Any, ...], key: str, dialect: Dialect) -> Statement:
    """SQLite's placeholders: `?` takes the number after the largest so far, and so does a name
    where it is first met. All are written with their numbers, because the key has the last one."""
    text = written.replace(KEY, "?")
    names: dict[str, int] = {}
    largest, end = 0, 0
    parts: list[str] = []
    for token in scan(text, dialect):
        if token.kind != PARAM:
            continue
        number = len(given) + 1
        if written[token.at] != KEY:
            placeholder = token.text
            if placeholder == "?":
                number = largest + 1
            elif placeholder[0] == "?":
                number = int(placeholder[1:])
            else:
                number = names.setdefault(placeholder, largest + 1)
            largest = max(largest, number)
            if not 0 < number <= len(given):
                raise _parameter_mismatch(placeholder, len(given))
        parts += [text[end : token.at], f"?{number}"]
        end = token.at + len(token.text)
    if largest != len(given):
        raise _parameter_mismatch("?", len(given))
    return Statement("".join([*parts, text[end:]]), (*given, key))


def _parameter_mismatch(placeholder: str, given: int) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"The placeholders do not match the {given} parameters: `{placeholder[:40]}` has none.",
        hint="Give one parameter for each placeholder.",
        details={"rule": "mask.parameters"},
    )
