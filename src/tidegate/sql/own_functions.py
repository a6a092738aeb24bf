"""Functions of users that the settings of a source let a read call: how a text names them.

Only a call that is written as the setting names the function is one of it: with its schema, or
without where the engine sees to it that no other function can be meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Finding
from tidegate.sql.lex import NAME, WORD, Token

STAND_IN = "TIDEGATE_OWN_FUNCTION"
"""What the parser sees in the place of the name of such a function."""


@lru_cache(64)
def trusting(dialect: str, functions: tuple[str, ...]) -> Dialect:
    """The dialect, with functions of users (`schema.name`) that may be called."""
    plain = find(dialect)
    keys = {key_of(name, plain): name for name in functions}
    return msgspec.structs.replace(plain, trusted=keys)


def key_of(function: str, dialect: Dialect) -> str:
    """What two names (`schema.name`) of one function have in common."""
    schema, _, bare = function.partition(".")
    return _key(schema, bare, dialect)


def own_call(tokens: Sequence[Token], index: int, dialect: Dialect) -> tuple[str, int]:
    """Which of the trusted functions is called with the bracket at `index`, as its source names it,
    and the token with which its name begins; an empty name for any other call."""
    name = _written(tokens[index - 1], dialect)
    if not name:
        return "", 0
    if index < 2 or tokens[index - 2].key != ".":
        if dialect.own_functions_by_name and name.lower() not in dialect.functions:
            for known in dialect.trusted.values():
                schema, _, bare = known.partition(".")
                if _key(schema, name, dialect) == _key(schema, bare, dialect):
                    return known, index - 1
        return "", 0
    schema = _written(tokens[index - 3], dialect) if index > 2 else ""
    if not schema or (index > 3 and tokens[index - 4].key == "."):
        return "", 0
    return dialect.trusted.get(_key(schema, name, dialect), ""), index - 3


def stand_in(tokens: list[Token], places: Sequence[tuple[int, int]]) -> list[Token]:
    """The tokens with one plain name in the place of each call's: from its first token to the one
    before the bracket, of which the parser may know a name otherwise."""
    rewritten: list[Token] = []
    done = 0
    for first, bracket in places:
        rewritten += tokens[done:first]
        rewritten.append(Token(WORD, STAND_IN, STAND_IN, tokens[first].at))
        done = bracket
    return rewritten + tokens[done:]


def refused_in_change(name: str) -> Finding:
    """The opinion on a change that calls a function which reads may call."""
    return Finding(
        Effect.UNKNOWN,
        f"function.{name}",
        f"{name} may be called by statements that only read: in a change it could change anything",
        Code.SQL_FUNCTION,
        "Read its result first, and send the change with the values.",
    )


def full_name_of(refused: str, dialect: Dialect) -> str:
    """The trusted function that a refused name may mean, as the setting names it; empty if
    there is none."""
    for known in dialect.trusted.values():
        if known.rpartition(".")[2].lower() == refused.lower():
            return known
    return ""


def _written(token: Token, dialect: Dialect) -> str:
    """The name that a token means; empty if it is not a name, or not certain."""
    if token.kind == NAME:
        return token.text
    if token.kind != WORD or not token.text.isascii():
        return ""
    return token.text.lower() if dialect.own_functions == "as written" else token.text


def _key(schema: str, name: str, dialect: Dialect) -> str:
    if dialect.own_functions == "any case":
        schema, name = schema.lower(), name.lower()
    elif dialect.own_functions == "schema as written":
        name = name.lower()
    return f"{schema}.{name}"
