"""The outline of a change whose rows are kept: its table, and a query that finds the same rows.

It admits more than `dml_parser`, which is for showing what a statement would do: queries within the
statement, FROM and USING, WITH, RETURNING. Fails closed: a form that is not known here has a reason
instead of an outline, and so has one that may change rows that no query finds beforehand.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import (
    HIDDEN_END,
    Part,
    Placeholder,
    assigned_in,
    calls_in,
    count_of,
    end_of,
    has_qualified_call,
    hides_its_end,
    is_name,
    name_at,
    outside_brackets,
    piece_of,
    placeholders_of,
)
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, Token
from tidegate.sql.scan import scan

COLUMNS = "\0"
"""Replaced in `ChangeOutline.rows` by the columns to read."""

Verb = Literal["insert", "update", "delete", "merge"]

_CHANGING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"})
_VERBS: dict[str, Verb] = {
    "INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "MERGE": "merge",
}  # fmt: skip
_CLAUSES = ("SET", "FROM", "USING", "WHERE", "RETURNING")
REASONS = {
    "LIMIT": "which rows its LIMIT leaves out is not known before it runs",
    "ORDER": "it has ORDER BY, which is for a LIMIT",
    "FETCH": "which rows it leaves out is not known before it runs",
    "CURRENT": "it is about the row of a cursor",
    "TABLESAMPLE": "it reads a sample, which is another one each time",
    "IGNORE": "IGNORE leaves out rows that are not known before it runs",
    "DUPLICATE": "ON DUPLICATE KEY UPDATE changes rows that are not known before it runs",
    "PORTION": "FOR PORTION OF cuts rows in parts",
    "PARTITION": "it names partitions",
    "REPLACE": "REPLACE removes rows that are not known before it runs",
}
"""Words outside brackets, each with what it says of the statement."""
_AFTER_NAMES = frozenset({"LOW_PRIORITY", "QUICK", "DELAYED", "HIGH_PRIORITY", "OR", "ONLY"})


class ChangeOutline(msgspec.Struct, frozen=True):
    """`name` has the parts of the table's name, each with whether it was quoted; `alias` is what
    its columns are named with. `rows` reads the rows of an UPDATE or DELETE before it runs, with
    `COLUMNS` in the place of what is read. `calls` are the names that an opening bracket follows,
    `row_calls` those in what `rows` reads; `qualified`: one of them follows a dot.

    `assigned` are the columns that are set, in lower case. `body` is the statement up to its
    RETURNING, and `returning` what that shows. `upserts`: an INSERT that may change rows.
    """

    verb: Verb
    name: tuple[tuple[str, bool], ...]
    alias: str
    rows: Part
    calls: frozenset[str]
    row_calls: frozenset[str]
    qualified: bool
    parameters: int
    assigned: frozenset[str]
    body: str
    returning: str = ""
    upserts: bool = False


def outline_change(text: str, dialect: str) -> ChangeOutline | str:
    """The outline, or why there is none, as a clause."""
    try:
        tokens = scan(text, find(dialect))
    except Refusal as refusal:
        return refusal.finding.reason.rstrip(".")
    places = placeholders_of(tokens, find(dialect))
    if places is None:
        return "its parameters are not plain placeholders"
    if hides_its_end(text, tokens):
        return HIDDEN_END.rstrip(".")
    return _Statement(text, tokens, places, dialect).outline()


class _Statement:
    """One statement, cut at the words that are in no brackets."""

    def __init__(
        self, text: str, tokens: list[Token], places: dict[int, Placeholder], dialect: str
    ) -> None:
        self._quote = find(dialect).quote
        self._several = find(dialect).changes_joins
        self._text = text
        self._tokens = tokens
        self._places = places
        self._close = end_of(text, tokens)
        self._outside = outside_brackets(tokens)

    def outline(self) -> ChangeOutline | str:
        tokens = self._tokens
        starts = [at for at in self._outside if tokens[at].key in _CHANGING]
        if not starts or (tokens[0].key != "WITH" and starts[0] != 0):
            return "it is not a plain INSERT, UPDATE, DELETE or MERGE"
        start = starts[0]
        verb = _VERBS.get(tokens[start].key)
        if verb is None:
            return REASONS["REPLACE"]
        outside = set(self._outside)
        if any(_changes(tokens, at) for at in range(len(tokens)) if at not in outside):
            return "a query within it changes rows as well"
        behind = [at for at in self._outside if at > start]
        opening = {"insert": "INTO", "delete": "FROM", "merge": "INTO"}.get(verb)
        first = start + 1
        if opening is not None:
            if tokens[first : first + 1] and tokens[first].key != opening:
                return self._odd(tokens[first], verb)
            first += 1
        if first >= len(tokens) or tokens[first].key in _AFTER_NAMES:
            return self._odd(tokens[min(first, len(tokens) - 1)], verb)
        name, after = name_at(tokens, first)
        if not name:
            return self._odd(tokens[first], verb)
        with_names = {tokens[at].text.lower() for at in self._outside if at < start}
        if name[-1][0].lower() in with_names:
            return "a query within it is called like its table"
        if verb in ("insert", "merge"):
            return self._adding(verb, name, first, after, behind)
        return self._finding(verb, name, start, first, after, behind)

    def _odd(self, token: Token, verb: Verb) -> str:
        found = REASONS.get(token.key)
        return found or f"it is no plain {verb.upper()} of one table"

    def _adding(
        self,
        verb: Verb,
        name: tuple[tuple[str, bool], ...],
        first: int,
        after: int,
        behind: list[int],
    ) -> ChangeOutline | str:
        """The outline of an INSERT or MERGE: the database says which rows it was about."""
        tokens = self._tokens
        keys = [tokens[at].key for at in behind]
        for word in ("DUPLICATE", "IGNORE", "PARTITION"):
            if word in keys:
                return REASONS[word]
        upserts = verb == "merge" or ("CONFLICT" in keys and "NOTHING" not in keys)
        shown = [at for at in behind if tokens[at].key == "RETURNING"]
        end = tokens[shown[0]].at if shown else self._close
        returning = self._text[end + len("RETURNING") : self._close] if shown else ""
        sets = [at for at in behind if tokens[at].key == "SET"] if upserts else []
        assigned: frozenset[str] = frozenset()
        for at in sets:
            stops = [each for each in behind if each > at and tokens[each].key in _ENDS_SET]
            assigned |= assigned_in(tokens[at : stops[0] if stops else len(tokens)])
        return ChangeOutline(
            verb=verb,
            name=name,
            alias=self._alias(after),
            rows=Part(),
            calls=calls_in(tokens[after + 1 :]),
            row_calls=frozenset(),
            qualified=has_qualified_call([token.key for token in tokens[after:]]),
            parameters=count_of(self._places),
            assigned=assigned,
            body=self._text[:end],
            returning=returning,
            upserts=upserts,
        )

    def _finding(
        self,
        verb: Verb,
        name: tuple[tuple[str, bool], ...],
        start: int,
        first: int,
        after: int,
        behind: list[int],
    ) -> ChangeOutline | str:
        """The outline of an UPDATE or DELETE, with the query that finds its rows."""
        tokens = self._tokens
        behind = [at for at in behind if at >= after]
        for at in behind:
            key = tokens[at].key
            if key in REASONS and key != "REPLACE":  # which is a function here
                return REASONS[key]
        clauses = self._clauses(behind)
        if clauses is None or ("SET" in clauses) != (verb == "update"):
            return f"it is no plain {verb.upper()} of one table"
        bounds = [*sorted(clauses.values()), len(tokens)]
        alias = tokens[after : bounds[0]]
        if alias and alias[0].key == "AS":
            alias = alias[1:]
        if len(alias) > 1 or any(not is_name(each) for each in alias):
            return "it is about several tables"
        ends = {word: self._at(bounds[bounds.index(place) + 1]) for word, place in clauses.items()}

        def clause(word: str) -> tuple[int, int]:
            return tokens[clauses[word]].at + len(word), ends[word]

        spans: list[tuple[int, int] | str] = []
        if start:
            spans.append((0, tokens[start].at))
        spans += [f"SELECT {COLUMNS} FROM ", (tokens[first].at, self._at(bounds[0]))]
        others = "FROM" if verb == "update" else "USING"
        if others in clauses and self._several:
            return "it is about several tables"
        if others in clauses:
            spans += [", ", clause(others)]
        if "WHERE" in clauses:
            spans += ["\nWHERE (", clause("WHERE"), "\n)"]
        returning = clause("RETURNING") if "RETURNING" in clauses else None
        read = [each for each in spans if not isinstance(each, str)]
        within = [each for each in tokens if any(one <= each.at < two for one, two in read)]
        stop = tokens[clauses["RETURNING"]].at if returning else self._close
        sets = tokens[clauses["SET"] : _next(bounds, clauses["SET"])] if "SET" in clauses else []
        return ChangeOutline(
            verb=verb,
            name=name,
            alias=self._written(alias[0] if alias else tokens[after - 1]),
            rows=self._joined(spans),
            calls=calls_in(tokens),
            row_calls=calls_in(within),
            qualified=has_qualified_call([token.key for token in tokens]),
            parameters=count_of(self._places),
            assigned=assigned_in(sets) if sets else frozenset(),
            body=self._text[:stop],
            returning=self._text[returning[0] : returning[1]] if returning else "",
        )

    def _clauses(self, behind: list[int]) -> dict[str, int] | None:
        """Where each clause begins; None if they are not those of one plain change."""
        tokens = self._tokens
        found: dict[str, int] = {}
        for at in behind:
            key = tokens[at].key
            if key not in _CLAUSES or (key == "FROM" and tokens[at - 1].key == "DISTINCT"):
                continue
            if key in found or (key == "USING" and "FROM" in found):
                return None
            found[key] = at
        places = list(found.values())
        expected = [word for word in _CLAUSES if word in found]
        return found if places == sorted(places) and list(found) == expected else None

    def _alias(self, after: int) -> str:
        """What the columns of the table that ends before a token are named with."""
        named = self._tokens[after : after + 1]
        has_as = bool(named) and named[0].key == "AS"
        return self._written(self._tokens[after + 1 if has_as else after - 1])

    def _written(self, token: Token) -> str:
        """A name as it is written, with quotes if it has some."""
        return self._quote(token.text) if token.kind == NAME else token.text

    def _at(self, place: int) -> int:
        return self._tokens[place].at if place < len(self._tokens) else self._close

    def _joined(self, spans: list[tuple[int, int] | str]) -> Part:
        """A text of pieces of the statement, with the parameters that it takes."""
        text = ""
        params: list[int] = []
        for span in spans:
            if isinstance(span, str):
                text += span
            else:
                text += piece_of(self._text, *span, self._places, params)
        return Part(text, tuple(params))


_ENDS_SET = frozenset({"WHERE", "RETURNING", "WHEN"})


def _changes(tokens: list[Token], at: int) -> bool:
    """Whether a word in brackets begins a change, and is no lock or function."""
    return (
        tokens[at].key in _VERBS
        and tokens[at - 1].key not in ("FOR", "KEY")
        and [token.key for token in tokens[at + 1 : at + 2]] != ["("]
    )


def _next(bounds: list[int], place: int) -> int:
    return bounds[bounds.index(place) + 1]
