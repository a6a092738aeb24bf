"""Tells of which table the rows of a query are, and which of its columns hold values as the table
has them. Pure; where that is not plain from the text, it says why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tidegate.sql.dialects import DIALECTS, find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, OP, WORD, Token
from tidegate.sql.scan import scan

_ENDS_TABLE = frozenset({"WHERE", "ORDER", "LIMIT", "OFFSET", "FETCH"})
_REFUSED = frozenset(
    {
        *("GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT", "MINUS", "QUALIFY", "WINDOW", "INTO"),
        *("CONNECT", "JOIN", "PIVOT", "UNPIVOT", "SAMPLE", "TABLESAMPLE", "LATERAL", "RETURNING"),
    }
)
_NOT_ONE = "The result is not of the rows of one table."
_NAMES = (WORD, NAME)


class PlainResult(NamedTuple):
    """A query over one table: its name as it is written, and what is selected: `*`, the name of a
    column, or None for what is computed. `exact`: names are compared with regard to case."""

    schema: str | None
    table: str
    selected: tuple[str | None, ...]
    exact: bool

    def columns_of(self, columns: Sequence[str]) -> list[str | None]:
        """For each column of the result the column of the table that it is, None if it is none."""
        by_name = {name if self.exact else name.lower(): name for name in columns}
        found: list[str | None] = []
        for each in self.selected:
            if each == "*":
                found += columns
            elif each is None:
                found.append(None)
            else:
                found.append(by_name.get(each if self.exact else each.lower()))
        return found


def plain_result(text: str, dialect: str) -> PlainResult | str:
    """The table and the columns of a query, or why they are not known, as a sentence."""
    if dialect not in DIALECTS:
        return "Only results of SQL can be edited."
    try:
        tokens = scan(text, find(dialect))
    except Refusal as refusal:
        return f"{refusal.finding.reason}."
    if tokens[0].key != "SELECT" or (len(tokens) > 1 and tokens[1].key in ("DISTINCT", "ALL")):
        return _NOT_ONE
    depths = _depths(tokens)
    top = [at for at, depth in enumerate(depths) if depth == 0]
    start = next((at for at in top if tokens[at].key == "FROM"), None)
    if start is None or any(tokens[at].key in _REFUSED for at in top):
        return _NOT_ONE
    named = _table(tokens[start + 1 :], depths[start + 1 :])
    if named is None:
        return _NOT_ONE
    names, alias = named
    commas = [at for at in top if 0 < at < start and tokens[at].key == ","]
    edges = [0, *commas, start]
    items = [tokens[one + 1 : two] for one, two in pairwise(edges)]
    postgres = find(dialect).is_postgres
    selected = [_selected(item, {*names[-1:], alias}, folds=postgres) for item in items]
    table = names[-1]
    return PlainResult(
        _folded(names[-2], postgres) if len(names) > 1 else None,
        _folded(table, postgres),
        tuple(selected),
        postgres,
    )


def _folded(name: Token, postgres: bool) -> str:
    return name.text.lower() if postgres and name.kind == WORD else name.text


def _depths(tokens: Sequence[Token]) -> list[int]:
    """How many brackets are open at each token, its own not counted."""
    found: list[int] = []
    depth = 0
    for token in tokens:
        depth -= token.key in (")", "]", "}")
        found.append(depth + (token.key in (")", "]", "}")))
        depth += token.key in ("(", "[", "{")
    return found


def _table(
    tokens: Sequence[Token], depths: Sequence[int]
) -> tuple[list[Token], Token | None] | None:
    """The parts of the name of the only table in FROM, and its alias; None if it is not plain."""
    names: list[Token] = []
    at = 0
    while at < len(tokens) and tokens[at].kind in _NAMES:
        names.append(tokens[at])
        if at + 1 < len(tokens) and tokens[at + 1].key == ".":
            at += 2
            continue
        at += 1
        break
    if not names:
        return None
    alias: Token | None = None
    rest = list(tokens[at:])
    if rest and rest[0].key == "AS":
        rest.pop(0)
        if not rest or rest[0].kind not in _NAMES:
            return None
    if rest and rest[0].kind in _NAMES and rest[0].key not in _ENDS_TABLE:
        alias = rest.pop(0)
    if rest and rest[0].key not in _ENDS_TABLE:
        return None
    return names, alias


def _selected(item: Sequence[Token], tables: set[Token | None], *, folds: bool) -> str | None:
    """What one entry of the list is."""
    tokens = list(item)
    if len(tokens) > 2 and tokens[-2].key == "AS":
        tokens = tokens[:-2]
    elif len(tokens) > 1 and all(token.kind in _NAMES for token in tokens[-2:]):
        tokens = tokens[:-1]
    while len(tokens) > 2 and tokens[1].key == ".":
        known = {each.text.lower() for each in tables if each is not None}
        if tokens[0].kind not in _NAMES or (
            len(tokens) == 3 and tokens[0].text.lower() not in known
        ):
            return None
        tokens = tokens[2:]
    if len(tokens) != 1:
        return None
    (token,) = tokens
    if token.kind == OP and token.key == "*":
        return "*"
    return _folded(token, folds) if token.kind in _NAMES else None
