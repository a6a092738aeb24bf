"""Numbered placeholders of PostgreSQL's protocol, `$1`, as a source's dialect writes them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from msgspec import structs

from tidegate.products.pgwire.command_reader import MOST_READ
from tidegate.products.pgwire.values import oid_of_alias
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, LexicalRules
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, PARAM, STRING, WORD, Token, lex


class Placed(NamedTuple):
    """A text with placeholders of its dialect. `order` gives the number of the parameter at each
    of them, empty where they are numbered; `most` is the highest number. `types` are the oids that
    casts right after placeholders give the parameters, 0 where there is none; not for PostgreSQL,
    which names the types itself."""

    text: str
    order: tuple[int, ...]
    most: int
    types: tuple[int, ...] = ()


def place_parameters(text: str, dialect: str, names: tuple[str | None, ...]) -> Placed:
    """The text with `$1`, `$2`, … as the dialect writes placeholders.

    `names` are the types that the client gave for its parameters: PostgreSQL gets them as casts. A
    cast of a placeholder, `$1::int8`, is left out where the dialect numbers no placeholders so,
    since the parameter has that type; that of a constant where it has no such casts:
    postgres_fdw writes one after each. Where a schema is a path, `"a.b".c` becomes `a.b.c`. A text
    that cannot be read stays as it is: the gate says what is wrong with it.
    """
    rules = find(dialect)
    has_cast = not rules.colon_casts and "::" in text
    has_path = rules.path_schemas and '".' in text
    if not ("$" in text or has_cast or has_path) or len(text) > MOST_READ:
        return Placed(text, (), 0)
    try:
        tokens = lex(text, _rules_with_numbers(dialect))
    except Refusal:
        return Placed(text, (), 0)
    pieces: list[str] = []
    order: list[int] = []
    types: dict[int, int] = {}
    end = most = 0
    for at, token in enumerate(tokens):
        digits = token.text[1:] if token.kind == PARAM and token.text[0] == "$" else ""
        number = int(digits) if digits.isdecimal() and len(digits) <= 5 else 0
        stop = _behind_cast(tokens, at) if has_cast or number else at + 1
        mark: str | None = None
        if number:
            oid = 0 if rules.is_postgres else _cast_oid(text, tokens, at, stop)
            if oid:
                types.setdefault(number, oid)
            if not oid or rules.numbered_parameters:
                stop = at + 1
            most = max(most, number)
            mark = _mark(rules, number, names)
            if mark == "?":
                order.append(number)
        elif stop > at + 1:
            mark = _constant(text, tokens, at)
        elif has_path and token.kind == NAME and _is_path(tokens, at):
            mark = ".".join(map(_part, token.text.split(".")))
        if mark is not None:
            pieces += text[end : token.at], mark
            end = _end(text, tokens, at if stop == at + 1 else stop - 1)
    placed = "".join([*pieces, text[end:]])
    found = tuple([types.get(number, 0) for number in range(1, most + 1)]) if types else ()
    return Placed(placed, tuple(order), most, found)


def _cast_oid(text: str, tokens: Sequence[Token], at: int, stop: int) -> int:
    """The type that the cast after a parameter names, 0 for none that is known."""
    if stop == at + 1:
        return 0
    words = text[tokens[at + 2].at : _end(text, tokens, stop - 1)]
    return oid_of_alias(_SIZE.sub("", words))


def _mark(rules: Dialect, number: int, names: tuple[str | None, ...]) -> str:
    name = names[number - 1] if number <= len(names) else None
    if rules.is_postgres and name is not None:
        return f"(${number}::{name})"
    if rules.numbered_parameters:
        return f"${number}"
    return f"?{number}" if rules.numbered_questions else "?"


def _behind_cast(tokens: Sequence[Token], at: int) -> int:
    """The place of the token after the constant or parameter at `at`, and after its cast."""
    stop = at + 1
    if tokens[at].kind not in (STRING, NUMBER, PARAM) or _key(tokens, stop) != "::":
        return stop
    if stop + 1 >= len(tokens) or tokens[stop + 1].kind not in (WORD, NAME):
        return stop
    stop += 2
    while _key(tokens, stop) in _MORE_WORDS:
        stop += 1
    if _key(tokens, stop) == "(":
        while stop < len(tokens) and tokens[stop].key != ")":
            stop += 1
        stop += 1
    return stop


def _constant(text: str, tokens: Sequence[Token], at: int) -> str:
    """A constant as it is without its cast: one that is cast to a number is a number."""
    token = tokens[at]
    kind = tokens[at + 2].key
    if token.kind == STRING and kind in _NUMBERS and _NUMBER.fullmatch(token.text):
        return token.text
    return text[token.at : _end(text, tokens, at)]


def _end(text: str, tokens: Sequence[Token], at: int) -> int:
    """Where the token ends, as it is written."""
    if tokens[at].kind not in (STRING, NAME):  # whose texts are without their quotes
        return tokens[at].at + len(tokens[at].text)
    stop = tokens[at + 1].at if at + 1 < len(tokens) else len(text)
    return tokens[at].at + len(text[tokens[at].at : stop].rstrip())


def _key(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].key if at < len(tokens) else ""


def _is_path(tokens: Sequence[Token], at: int) -> bool:
    return "." in tokens[at].text and _key(tokens, at + 1) == "."


def _part(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


_MORE_WORDS = frozenset({"VARYING", "PRECISION", "WITHOUT", "WITH", "TIME", "ZONE"})
_NUMBERS = frozenset(
    {"INTEGER", "INT", "INT4", "INT8", "BIGINT", "SMALLINT", "INT2", "NUMERIC", "DECIMAL", "REAL"}
    | {"DOUBLE", "FLOAT4", "FLOAT8"}
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
_SIZE = re.compile(r"\s*\([^)]*\)")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


@cache
def _rules_with_numbers(dialect: str) -> LexicalRules:
    """The dialect's rules, by which `$1` is a parameter as well."""
    rules = find(dialect)
    if rules.numbered_parameters:
        return rules.lexical_rules
    parameters = rf"\$\d+|{rules.lexical_rules.parameters}"
    return structs.replace(rules.lexical_rules, parameters=parameters)
