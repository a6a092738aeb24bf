"""Simplifies the arguments of some functions of the SQL standard: they hold words and clauses that
the parser does not take for arguments, `JSON_VALUE(a, '$.b' RETURNING int NULL ON ERROR)`.

Every expression stays, so that the tables of nested queries are found. What is left out holds no
query, and all words and calls in it were checked before.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.sql.dialects.model import words
from tidegate.sql.lex import LITERALS, NAME, NUMBER, OP, WORD, Token

DEEPEST = 12
LONGEST = 20_000
"""Tokens of the longest statement that is checked."""

_NAMES = (WORD, NAME)
_QUERIES = words("FROM SELECT TABLE VALUES")
_GIVEN = words("ABSENT EMPTY ERROR FALSE NULL TRUE UNKNOWN")
_TYPED = words(". [ ] ( )")
_ENDS_TYPE = _GIVEN | words("COLUMNS DEFAULT FORMAT INDENT KEEP NO OMIT WITH WITHOUT")
_WRAPPING = words("ARRAY CONDITIONAL KEYS UNCONDITIONAL UNIQUE WRAPPER")
_OPENS = frozenset("([{")
_CLOSES = frozenset(")]}")


def simplify(tokens: list[Token], calls: Mapping[str, str], depth: int = 0) -> list[Token]:
    """The tokens with the calls of these names made plain ones of the functions they map to. What
    is long or nested beyond all use stays as it is, and the parser may refuse it."""
    if depth > DEEPEST or len(tokens) > LONGEST or not any(token.key in calls for token in tokens):
        return tokens
    rewritten: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        stand_in = calls.get(token.key)
        end = _closing(tokens, at + 1) if stand_in and _key(tokens, at + 1) == "(" else 0
        if stand_in is None or not end or (at and tokens[at - 1].key in (".", "INTO")):
            rewritten.append(token)
            at += 1
            continue
        inner = tokens[at + 2 : end]
        if _key(inner, 0) in ("SELECT", "WITH"):
            stand_in = "ARRAY"
        rewritten += (token._replace(key=stand_in, text=stand_in), tokens[at + 1])
        rewritten += simplify(_listed(inner, token.key), calls, depth + 1)
        rewritten.append(tokens[end])
        at = end + 1
    return rewritten


def _listed(inner: list[Token], name: str) -> list[Token]:
    """What is between the brackets, as a list of expressions."""
    rewritten: list[Token] = []
    at = 0
    while at < len(inner):
        token = inner[at]
        if token.key in _OPENS:
            end = _closing(inner, at)
            rewritten += inner[at : end + 1]
            at = end + 1
            continue
        end, comma = _clause(inner, at, rewritten[-1] if rewritten else None, name)
        if end == at:
            rewritten.append(token)
            end += 1
        elif not _QUERIES.isdisjoint(left.key for left in inner[at:end]):
            return inner  # the parser must see it, and will refuse it
        elif comma and rewritten and rewritten[-1].key != ",":
            rewritten.append(Token(OP, ",", ",", token.at))
        at = end
    return rewritten


def _clause(inner: list[Token], at: int, before: Token | None, name: str) -> tuple[int, bool]:
    """Where the clause ends that begins there, `at` itself if none does, and whether an expression
    follows that it parts from the one before it."""
    key = inner[at].key
    following = _key(inner, at + 1)
    starts = before is None or before.key == ","
    end, comma = at, False
    if key == "COLUMNS" and not starts:
        end = len(inner) if name == "XMLTABLE" else _after_columns(inner, at)
    elif key == "RETURNING" and not starts:
        end = _type_end(inner, at + 1)
    elif key == "PASSING" and not starts:
        end, comma = (at + 3 if following == "BY" else at + 1), True
    elif key == "BY" and following in ("VALUE", "REF"):
        end = at + 2
    elif key == "AS" and len(inner) > at + 1 and inner[at + 1].kind in _NAMES:
        end = len(inner) if name == "XMLSERIALIZE" else at + 2
    elif key == "DEFAULT":
        end, comma = at + 1, True
    elif key == "ON" and following in ("EMPTY", "ERROR", "NULL", "SCALAR"):
        end = at + 2 + (following == "SCALAR")
    elif key in _GIVEN and not starts and _is_given(inner, at):
        end = at + (2 if following == "ON" else 3)
        end += _key(inner, end - 1) == "ON"
    elif key == "FORMAT" and following == "JSON":
        end = at + (4 if _key(inner, at + 2) == "ENCODING" else 2)
    elif key in ("KEEP", "OMIT") and following == "QUOTES":
        end = at + 2
    elif key in ("WITH", "WITHOUT") and following in _WRAPPING:
        end = at + 1
        while _key(inner, end) in _WRAPPING:
            end += 1
    elif key == ":" or (
        key == "VALUE" and before is not None and _is_whole(before) and following != ","
    ):
        end, comma = at + 1, True
    elif _leads(key, starts, inner, at, name):
        end = at + 1
    elif name == "XMLROOT" and key in ("VERSION", "STANDALONE"):
        end = at + 1 + (following in ("NO", "YES")) + (_key(inner, at + 2) == "VALUE")
    return end, comma


def _leads(key: str, starts: bool, inner: list[Token], at: int, name: str) -> bool:
    """True for a word before an expression that says what it is: `KEY 'a'`, `CONTENT a`."""
    if not starts or at + 1 >= len(inner):
        return False
    if key in ("CONTENT", "DOCUMENT"):
        return name in ("XMLPARSE", "XMLSERIALIZE") and inner[at + 1].key != ","
    if key == "NAME":
        return name == "XMLPI" and inner[at + 1].kind in _NAMES
    return key == "KEY" and inner[at + 1].kind in (*_NAMES, *LITERALS) and (
        inner[at + 1].key != "VALUE"
    )  # fmt: skip


def _is_given(inner: list[Token], at: int) -> bool:
    """True for `NULL ON EMPTY` and the like, with ARRAY or OBJECT after EMPTY."""
    if inner[at].key == "EMPTY" and _key(inner, at + 1) in ("ARRAY", "OBJECT"):
        at += 1
    return _key(inner, at + 1) == "ON" and _key(inner, at + 2) in ("EMPTY", "ERROR", "NULL")


def _is_whole(token: Token) -> bool:
    """True if an expression can end with the token."""
    return token.kind != OP or token.key in _CLOSES


def _after_columns(inner: list[Token], at: int) -> int:
    return _closing(inner, at + 1) + 1 if _key(inner, at + 1) == "(" else at


def _type_end(inner: list[Token], at: int) -> int:
    """Where the name of a type ends: words, and its length in brackets."""
    while at < len(inner):
        token = inner[at]
        if token.key in _ENDS_TYPE:
            break
        if token.kind not in (*_NAMES, NUMBER) and token.key not in _TYPED and (
            token.key != "," or inner[at - 1].kind != NUMBER
        ):  # fmt: skip
            break
        at += 1
    return at


def _closing(tokens: list[Token], at: int) -> int:
    """The number of the bracket that closes the one at `at`; 0 if none does."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].key in _OPENS) - (tokens[number].key in _CLOSES)
        if not depth:
            return number
    return 0


def _key(tokens: list[Token], at: int) -> str:
    return tokens[at].key if at < len(tokens) else ""
