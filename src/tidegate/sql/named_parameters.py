"""Replaces named parameters (`:name`) by the placeholders of a dialect. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import OP, PARAM, WORD, Token, lex


def bind_names(text: str, values: Mapping[str, Any], dialect: str) -> tuple[str, tuple[Any, ...]]:
    """The text with placeholders, and their values in order.

    A name is written `:name`, and also `$name` where the dialect has such placeholders. Only given
    names are replaced: any other colon stays as it is, as in `list[1:2]`.
    Raises: TidegateError ARGUMENT_INVALID if a given name is not there, or if the text has other
    placeholders too; SQL_UNREADABLE.
    """
    rules = find(dialect)
    try:
        tokens = lex(text, rules.lexical_rules)
    except Refusal as refusal:
        raise TidegateError(Code.SQL_UNREADABLE, f"{refusal.finding.reason}.") from None
    numbers: dict[str, int] = {}
    params: list[Any] = []
    pieces: list[str] = []
    end = 0
    for place, token in enumerate(tokens):
        name = _name_at(tokens, place, text)
        if name is None or name not in values:
            if token.kind == PARAM and not token.text.startswith("@@"):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The statement has the placeholder {token.text[:40]}, and named parameters "
                    "were given.",
                    hint=f"Write :name for each of {', '.join(values)}, and no other placeholder.",
                )
            continue
        if rules.numbered_parameters:
            if name not in numbers:
                params.append(values[name])
                numbers[name] = len(params)
            mark = f"${numbers[name]}"
        else:
            params.append(values[name])
            mark = "?"
        numbers.setdefault(name, 0)
        pieces += text[end : token.at], mark
        end = token.at + 1 + len(name)
    missing = [name for name in values if name not in numbers]
    if missing:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement has no parameter :{missing[0][:40]}.",
            hint="Write :name in the statement where the value belongs.",
        )
    return "".join([*pieces, text[end:]]), tuple(params)


def _name_at(tokens: list[Token], place: int, text: str) -> str | None:
    """The name of the parameter that begins with this token."""
    token = tokens[place]
    if token.kind == PARAM and token.text[:1] in (":", "$"):
        return token.text[1:]
    if token.kind != OP or token.key != ":" or place + 1 == len(tokens):
        return None
    after = tokens[place + 1]
    if after.kind != WORD or after.at != token.at + 1:
        return None
    return text[after.at : after.at + len(after.text)]
