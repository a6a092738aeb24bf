"""The outline of a plain INSERT, UPDATE or DELETE: its table, and what tells its rows, as written.

For code that reads the rows that the statement would touch. Fails closed: a statement that is
not plain has a reason instead of an outline.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

import msgspec

from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, PARAM, WORD, Token
from tidegate.sql.scan import scan

_NOWHERE = frozenset({"SELECT", "TABLE", "VALUES", "WITH", "DEFAULT"})
_NOT_IN_QUERY = frozenset({"RETURNING", "INTO", "FOR"})
_NO_TABLES = frozenset({"ONLY", "IGNORE", "LOW_PRIORITY", "QUICK", "OR", "LATERAL"})
"""Words before a table's name that could pass for one, with the name as its alias."""

_CONFLICTS = frozenset({("ON", "CONFLICT"), ("ON", "DUPLICATE")})
_PLAIN_INSERT = "only a plain INSERT of VALUES or of a SELECT is tried."
HIDDEN_END = "its last word, or a comment after it, holds a semicolon."

Placeholder = tuple[str, int]
"""How it is written, and the place of its parameter from 0."""

_NOT_OUTSIDE = frozenset(
    {"FROM", "USING", "RETURNING", "ORDER", "GROUP", "LIMIT", "CURRENT", "INDEXED", "JOIN"}
)


class Part(msgspec.Struct, frozen=True):
    """A part of a statement that can be run alone: `params` are the places, from 0, of the
    statement's parameters that it takes. Empty if the statement has no such part."""

    text: str = ""
    params: tuple[int, ...] = ()


class DmlStatement(msgspec.Struct, frozen=True):
    """`name` has the parts of the table's name, each with whether it was quoted. `target` is the
    table with its alias and `where` the condition, as written. `calls` are the names, in lower case
    if they are not quoted, that an opening bracket follows; `parameters` counts placeholders.

    `body` is the statement without what follows it. An UPDATE sets the columns that are `assigned`,
    in lower case. An INSERT gives a value for each of `columns`, None if the columns are unknown;
    `query` is where its rows come from if it is not VALUES.
    """

    verb: Literal["insert", "update", "delete"]
    name: tuple[tuple[str, bool], ...]
    target: str
    where: Part
    calls: frozenset[str]
    qualified: bool
    """Whether one of these names follows a dot."""
    parameters: int = 0
    columns: tuple[tuple[str, bool], ...] | None = None
    query: Part = Part()
    body: str = ""
    assigned: frozenset[str] = frozenset()


def parse_dml(text: str, dialect: str) -> DmlStatement | str:
    """The outline, or why there is none."""
    try:
        tokens = scan(text, find(dialect))
    except Refusal as refusal:
        return f"{refusal.finding.reason}."
    keys = [token.key for token in tokens]
    places = placeholders_of(tokens, find(dialect))
    if places is None:
        return "its parameters are not plain placeholders."
    if ("NEXT", "VALUE", "FOR") in zip(keys, keys[1:], keys[2:], strict=False):
        return "it takes a number from a sequence."
    if keys[:2] == ["INSERT", "INTO"]:
        return _insert(text, tokens, places)
    if keys[0] == "DELETE" and keys[1:2] == ["FROM"]:
        start = 2
    elif keys[0] == "UPDATE":
        start = 1
    else:
        return "only a plain INSERT, UPDATE or DELETE is tried."
    if not _NOWHERE.isdisjoint(keys):
        return "it reads more than the table that it changes."
    name, end = name_at(tokens, start)
    outside = outside_brackets(tokens)
    conditions = [at for at in outside if tokens[at].key == "WHERE"]
    stop = outside[-1] + 1 if not conditions else conditions[0]
    deletes = start == 2
    assigned: frozenset[str] = frozenset()
    if not deletes:
        sets = [at for at in outside if tokens[at].key == "SET"]
        assigned = assigned_in(tokens[sets[0] : stop]) if sets else assigned
        stop = sets[0] if sets else end
    alias = tokens[end:stop]
    if alias and alias[0].key == "AS":
        alias = alias[1:]
    odd = not name or len(conditions) > 1 or len(alias) > 1 or any(not is_name(a) for a in alias)
    if odd or any(tokens[at].key in _NOT_OUTSIDE for at in outside if at >= start):
        return "only a plain UPDATE or DELETE of one table is tried."
    if hides_its_end(text, tokens):
        return HIDDEN_END
    close = end_of(text, tokens)
    where = Part()
    if conditions:
        where = part_of(text, tokens[conditions[0]].at + len("WHERE"), close, places)
    return DmlStatement(
        verb="delete" if deletes else "update",
        name=name,
        target=text[tokens[start].at : tokens[stop].at if stop < len(tokens) else close],
        where=where,
        calls=calls_in(tokens),
        qualified=has_qualified_call(keys),
        parameters=count_of(places),
        body=text[:close],
        assigned=assigned,
    )


def _insert(text: str, tokens: list[Token], places: dict[int, Placeholder]) -> DmlStatement | str:
    """The outline of an INSERT of VALUES, or of a query that is at its end."""
    keys = [token.key for token in tokens]
    name, at = name_at(tokens, 2)
    columns: tuple[tuple[str, bool], ...] | None = None
    if name and keys[at : at + 1] == ["("]:
        close = keys.index(")", at) if ")" in keys[at:] else at
        listed = tokens[at + 1 : close : 2]
        commas = {token.key for token in tokens[at + 2 : close : 2]}
        if not listed or not all(map(is_name, listed)) or not commas <= {","}:
            return _PLAIN_INSERT
        columns = tuple([(token.text, token.kind == NAME) for token in listed])
        at = close + 1
    outside = [tokens[place].key for place in outside_brackets(tokens) if place > at]
    if not name or keys[at : at + 1] not in (["VALUES"], ["SELECT"]):
        return _PLAIN_INSERT
    if keys[at] == "VALUES":
        plain = set(outside) <= {","} and {"SELECT", "TABLE", "WITH"}.isdisjoint(keys[at:])
    else:
        pairs = set(pairwise(outside))
        plain = _NOT_IN_QUERY.isdisjoint(outside) and pairs.isdisjoint(_CONFLICTS)
    if not plain:
        return _PLAIN_INSERT
    if hides_its_end(text, tokens):
        return HIDDEN_END
    close = end_of(text, tokens)
    start = tokens[at].at
    return DmlStatement(
        verb="insert",
        name=name,
        target=text[tokens[2].at : start],
        where=Part(),
        calls=calls_in(tokens[at + (keys[at] == "VALUES") :]),
        qualified=has_qualified_call(keys[at:]),
        parameters=count_of(places),
        columns=None if "DEFAULT" in keys else columns,
        query=part_of(text, start, close, places) if keys[at] == "SELECT" else Part(),
        body=text[:close],
    )


def assigned_in(tokens: list[Token]) -> frozenset[str]:
    """The names before the signs of equality that are in no brackets: in a list of columns all
    names, of a dotted one each part."""
    found: set[str] = set()
    depth, target = 0, True
    for token in tokens[1:]:
        depth += (token.key == "(") - (token.key == ")")
        if not depth and token.key in ("=", ","):
            target = token.key == ","
        elif target and is_name(token):
            found.add(token.text.lower())
    return frozenset(found)


def calls_in(tokens: list[Token]) -> frozenset[str]:
    return frozenset(
        token.text if token.kind == NAME else token.text.lower()
        for token, after in pairwise(tokens)
        if after.key == "(" and is_name(token)
    )


def has_qualified_call(keys: list[str]) -> bool:
    return any(
        before == "." and after == "(" for before, after in zip(keys, keys[2:], strict=False)
    )


def placeholders_of(tokens: list[Token], dialect: Dialect) -> dict[int, Placeholder] | None:
    """The placeholders by where they are; None if one is neither `?` nor, where the dialect numbers
    them so, `$1`."""
    found: dict[int, Placeholder] = {}
    for place, token in enumerate(tokens):
        mark = token.kind == OP and token.text == "?" and dialect.no_question_operator
        if token.kind != PARAM and not mark:
            continue
        if mark and _is_numbered(tokens, place):
            return None
        if token.text == "?":
            found[token.at] = ("?", len(found))
        elif dialect.numbered_parameters and re.fullmatch(r"\$[1-9]\d{0,4}", token.text):
            found[token.at] = (token.text, int(token.text[1:]) - 1)
        else:
            return None
    return None if len({text == "?" for text, _ in found.values()}) > 1 else found


def _is_numbered(tokens: list[Token], place: int) -> bool:
    """Whether a number follows a sign at once, as in `?2`."""
    after = tokens[place + 1 : place + 2]
    return bool(after) and after[0].kind == NUMBER and after[0].at == tokens[place].at + 1


def count_of(places: dict[int, Placeholder]) -> int:
    return max([number + 1 for _, number in places.values()], default=0)


def part_of(text: str, start: int, end: int, places: dict[int, Placeholder]) -> Part:
    """The part from `start` to `end`, with its numbered placeholders renumbered."""
    params: list[int] = []
    return Part(piece_of(text, start, end, places, params), tuple(params))


def piece_of(
    text: str, start: int, end: int, places: dict[int, Placeholder], params: list[int]
) -> str:
    """A piece of a part that takes the `params`, to which those of the piece are added."""
    pieces: list[str] = []
    for at, (written, number) in places.items():
        if start <= at < end:
            pieces.append(text[start:at])
            start = at + len(written)
            if written == "?":
                params.append(number)
                pieces.append("?")
            else:
                if number not in params:
                    params.append(number)
                pieces.append(f"${params.index(number) + 1}")
    return "".join([*pieces, text[start:end]])


def hides_its_end(text: str, tokens: list[Token]) -> bool:
    """Whether a semicolon could be the last word's or a comment's: cut there, a comment would take
    what is written after it."""
    last = tokens[-1]
    comment, end = text.find("/*", last.at + 1), text.find(";", last.at + 1)
    return -1 < comment < end or (last.kind not in (WORD, NUMBER, OP) and ";" in last.text)


def is_name(token: Token) -> bool:
    return token.kind in (WORD, NAME)


def name_at(tokens: list[Token], start: int) -> tuple[tuple[tuple[str, bool], ...], int]:
    """The parts of the name that starts there, and where it ends."""
    parts: list[tuple[str, bool]] = []
    at = start
    if at < len(tokens) and tokens[at].key in _NO_TABLES:
        return (), at
    while at < len(tokens) and is_name(tokens[at]):
        parts.append((tokens[at].text, tokens[at].kind == NAME))
        at += 1
        if at >= len(tokens) or tokens[at].key != ".":
            return tuple(parts), at
        at += 1
    return (), at


def outside_brackets(tokens: list[Token]) -> list[int]:
    """The places of the tokens that are in no brackets."""
    places: list[int] = []
    depth = 0
    for at, token in enumerate(tokens):
        if token.key in ("(", "[", "{"):
            depth += 1
        elif token.key in (")", "]", "}"):
            depth -= 1
        elif depth == 0:
            places.append(at)
    return places


def end_of(text: str, tokens: list[Token]) -> int:
    """Where the statement ends: before the semicolons after it, wherever there are comments."""
    last = tokens[-1].at + 1
    # What follows is the rest of the last token, then comments and semicolons.
    rest = text[last:]
    return last + rest.index(";") if ";" in rest else len(text)
