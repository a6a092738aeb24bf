"""Numbered placeholders of PostgreSQL's protocol, `$1`, as a source's dialect writes them. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from msgspec import structs

from tidegate.edges.pgwire.command_reader import MOST_READ
from tidegate.edges.pgwire.values import oid_of_alias
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import LexicalRules
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import PARAM, lex


class Placed(NamedTuple):
    """A text with placeholders of its dialect. `order` gives the number of the parameter at each
    of them, empty where they are numbered; `most` is the highest number. `types` are the oids that
    casts right behind placeholders give the parameters, 0 where there is none; not for PostgreSQL,
    which names the types itself."""

    text: str
    order: tuple[int, ...]
    most: int
    types: tuple[int, ...] = ()


def place_parameters(text: str, dialect: str, names: tuple[str | None, ...]) -> Placed:
    """The text with `$1`, `$2`, … as the dialect writes placeholders.

    `names` are the types that the client gave for its parameters: PostgreSQL gets them as casts. A
    cast of a placeholder, `$1::int8`, is left out where the dialect has no such casts, since the
    parameter comes with that type. A text that cannot be read stays as it is: the gate says what is
    wrong with it.
    """
    if "$" not in text or len(text) > MOST_READ:
        return Placed(text, (), 0)
    try:
        tokens = lex(text, _rules_with_numbers(dialect))
    except Refusal:
        return Placed(text, (), 0)
    rules = find(dialect)
    pieces: list[str] = []
    order: list[int] = []
    types: dict[int, int] = {}
    end = most = 0
    for token in tokens:
        digits = token.text[1:] if token.kind == PARAM and token.text[0] == "$" else ""
        if not digits.isdecimal() or len(digits) > 5 or int(digits) == 0:
            continue
        number = int(digits)
        most = max(most, number)
        name = names[number - 1] if number <= len(names) else None
        if rules.is_postgres and name is not None:
            mark = f"(${number}::{name})"
        elif rules.numbered_parameters:
            mark = f"${number}"
        elif rules.numbered_questions:
            mark = f"?{number}"
        else:
            mark = "?"
            order.append(number)
        pieces += text[end : token.at], mark
        end = token.at + len(token.text)
        cast = None if rules.is_postgres else _CAST.match(text, end)
        oid = 0 if cast is None else oid_of_alias(cast[1])
        if cast is not None and oid:
            types.setdefault(number, oid)
            if not rules.numbered_parameters:
                end = cast.end()
    placed = "".join([*pieces, text[end:]])
    found = tuple([types.get(number, 0) for number in range(1, most + 1)]) if types else ()
    return Placed(placed, tuple(order), most, found)


_CAST = re.compile(r"\s*::\s*([A-Za-z][A-Za-z0-9]*(?:[ ]precision\b|[ ]varying\b)?)(?![\w\[])")


@cache
def _rules_with_numbers(dialect: str) -> LexicalRules:
    """The dialect's rules, by which `$1` is a parameter as well."""
    rules = find(dialect)
    if rules.numbered_parameters:
        return rules.lexical_rules
    parameters = rf"\$\d+|{rules.lexical_rules.parameters}"
    return structs.replace(rules.lexical_rules, parameters=parameters)
