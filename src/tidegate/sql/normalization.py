"""Writes tokens down again in a form that the parser cannot misread: no comments, every string
and odd name replaced by a plain one, every quote the dialect's simplest.

The parser therefore never lexes what a caller wrote, and long lists of literals cost it nothing.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from tidegate.errors import Code
from tidegate.sql.dialects.common import INTRODUCERS, OPERAND_FOLLOWS
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import LITERALS, NAME, NUMBER, OP, PARAM, STRING, WORD, Token

MAX_TOKENS = 6_000
"""Long lists and rows of literals not counted. The parser takes some 50 ms for so many; the longest
of 1,300 real queries, of people, tools and drivers, has 300."""
MAX_POSTFIXES = 128
MAX_STRUCTS = 6
LIST_SHOWN = 48
TEXT = "text__"
"""Replaces every string that is not plain."""

_PLAIN_TEXT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ :.,+-")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_POSTFIX = frozenset({".", "["})
_STRUCTS = frozenset({"STRUCT", "OBJECT", "UNION"})


class Normalized(NamedTuple):
    """The text for the parser, and what its placeholder names replace."""

    text: str
    names: dict[str, str]


def normalize(tokens: list[Token], dialect: Dialect, places: list[int] | None = None) -> Normalized:
    """Render the tokens. Raises: Refusal SQL_TOO_LONG, SQL_TOO_DEEP.

    `places` is filled with where each token's rendering starts; literals that are left out of a
    long list start where the one before them does.
    """
    parts: list[str] = []
    names: dict[str, str] = {}
    quote = dialect.quote_mark
    structs: list[bool] = []
    limits = [False]
    run = postfixes = 0
    previous = before = Token("", "", "", 0)
    for token in tokens:
        kind, key = token.kind, token.key
        if kind == WORD:
            limits[-1] = limits[-1] or key in ("LIMIT", "OFFSET")
            parts.append(token.text if key else _placeholder(token.text, names, quote))
        elif kind in LITERALS:
            run = run + 1 if previous.key == "," and before.kind in LITERALS else 0
            if run > LIST_SHOWN:
                parts.pop()
            elif kind == STRING and previous.key in INTRODUCERS:
                parts[-1] = _literal(token, dialect)
            else:
                parts.append(_literal(token, dialect))
        elif kind == NAME:
            if _PLAIN_TEXT.issuperset(token.text):
                parts.append(f"{quote}{token.text}{quote}")
            else:
                parts.append(_placeholder(token.text, names, quote))
        else:
            if key == "(":
                structs.append(previous.key in _STRUCTS)
            elif key == ")" and structs:
                structs.pop()
            elif key in _POSTFIX and previous.key in _CLOSING:
                postfixes += 1
            if postfixes > MAX_POSTFIXES or (len(structs) > MAX_STRUCTS < sum(structs)):
                raise Refusal(
                    Code.SQL_TOO_DEEP,
                    "text.intricate",
                    f"Too many subscripts or structures up to character {token.at + 1}",
                )
            if key in _OPENING:
                limits.append(False)
            elif key in _CLOSING and len(limits) > 1:
                limits.pop()
            if key == "%" and limits[-1] and not dialect.limit_takes_percent:
                parts.append("*")  # the parser takes it for a percentage
            else:
                parts.append(_operator(key, previous, dialect))
        if places is not None:
            places.append(len(parts) - 1)
        before, previous = previous, token
    if len(parts) > MAX_TOKENS:
        raise Refusal(
            Code.SQL_TOO_LONG,
            "text.tokens",
            f"The statement has more than {MAX_TOKENS:,} words and signs",
            "Split it, or pass long lists as parameters.",
        )
    if places is not None:
        starts = [0, *accumulate(len(part) + 1 for part in parts)]
        places[:] = [starts[place] for place in places]
    return Normalized(" ".join(parts), names)


def is_exact(number: str) -> bool:
    """Whether a number is rendered as it was written."""
    return number.isdigit() or number.count(".") == 1


def _literal(token: Token, dialect: Dialect) -> str:
    if token.kind == STRING:
        text = token.text
        # An empty string at the end the parser misreads where there are parameters before it.
        kept = 0 < len(text) <= 64 and _PLAIN_TEXT.issuperset(text)
        return f"'{text if kept else TEXT}'"
    if token.kind == NUMBER:
        return token.text if is_exact(token.text) else "1"
    return "$1" if dialect.lexical_rules.operator_runs and token.kind == PARAM else "?"


def _operator(key: str, previous: Token, dialect: Dialect) -> str:
    stand_in = dialect.stand_ins.get(key)
    if stand_in is None:
        return key
    prefix = previous.key in OPERAND_FOLLOWS or (
        previous.kind == OP and previous.key not in _CLOSING
    )
    return "-" if prefix else stand_in


def _placeholder(name: str, names: dict[str, str], quote: str) -> str:
    placeholder = f"n__{len(names)}"
    names[placeholder] = name
    return f"{quote}{placeholder}{quote}"
