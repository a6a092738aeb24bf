"""Spellings of PostgreSQL in statements for cloud providers, as SQLite, which runs them, writes
them: `x::type`, ILIKE, `now()`, and the source's own name before a resource. Pure.

The gate judges the text that results. What is not known here stays as it is, and the gate says
what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.products.pgwire.command_reader import MOST_READ
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, PARAM, STRING, WORD, Token, lex

_NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
"""As providers write a time, so that the two compare as texts."""
_CASTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("INT", "INT2", "INT4", "INT8", "INTEGER", "BIGINT", "SMALLINT", "OID"),
        ("CAST(", " AS INTEGER)"),
    ),
    **dict.fromkeys(
        ("TEXT", "VARCHAR", "CHARACTER", "CHAR", "BPCHAR", "NAME", "UUID", "JSON", "JSONB"),
        ("CAST(", " AS TEXT)"),
    ),
    **dict.fromkeys(("NUMERIC", "DECIMAL"), ("CAST(", " AS NUMERIC)")),
    **dict.fromkeys(("REAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE"), ("CAST(", " AS REAL)")),
    **dict.fromkeys(("BOOL", "BOOLEAN"), ("(lower(", ") IN ('t', 'true', 'y', 'yes', 'on', '1'))")),
    "DATE": ("date(", ")"),
    "TIMESTAMP": ("datetime(", ")"),
    "TIMESTAMPTZ": ("strftime('%Y-%m-%dT%H:%M:%SZ', ", ")"),
}
"""What precedes and follows the operand of a cast, by the first word of its type."""
_MORE_WORDS = frozenset({"VARYING", "PRECISION", "WITHOUT", "WITH", "TIME", "ZONE"})
_NO_FUNCTIONS = frozenset(
    {"SELECT", "WHERE", "AND", "OR", "NOT", "ON", "IN", "BY", "HAVING", "WHEN", "THEN", "ELSE"}
    | {"VALUES", "LIKE", "ILIKE", "BETWEEN", "FROM", "JOIN", "SET", "AS", "DISTINCT", "CASE"}
)
"""Words before a bracket that are no name of a function."""


def spell(text: str, dialect: str, database: str) -> str:
    """The text without PostgreSQL's spellings. `database` is the name of the source, which may
    precede a resource's, as its catalog."""
    if not find(dialect).path_schemas or len(text) > MOST_READ or not _may_need(text, database):
        return text
    try:
        tokens = lex(text, find(dialect).lexical_rules)
    except Refusal:
        return text
    return _Speller(text, tokens, database).written()


def _may_need(text: str, database: str) -> bool:
    upper = text.upper()
    return "::" in text or any(each in upper for each in ("ILIKE", "NOW", database.upper()))


class _Speller:
    """Collects what is written before tokens, and in the place of ranges of them."""

    def __init__(self, text: str, tokens: Sequence[Token], database: str) -> None:
        self._text = text
        self._tokens = tokens
        self._database = database
        self._before: dict[int, str] = {}
        self._replaced: dict[int, tuple[int, str]] = {}
        self._operands: dict[int, int] = {}
        """Where the operand of a cast begins, by the last token of its type."""

    def written(self) -> str:
        """The whole text."""
        at = 0
        while at < len(self._tokens):
            at = self._read(at)
        pieces: list[str] = []
        end = at = 0
        while at < len(self._tokens):
            begun = self._tokens[at].at
            if at in self._before:
                pieces += self._text[end:begun], self._before[at]
                end = begun
            stop, words = self._replaced.get(at, (at + 1, ""))
            if at in self._replaced:
                pieces += self._text[end:begun], words
                end = self._end(stop - 1)
            at = stop
        return "".join([*pieces, self._text[end:]])

    def _read(self, at: int) -> int:
        """Take note of what begins here; the next token to read."""
        token = self._tokens[at]
        if token.key == "::":
            return self._read_cast(at)
        if token.kind == WORD and token.key == "ILIKE":
            self._replaced[at] = (at + 1, "LIKE")
        elif self._is_now(at):
            self._replaced[at] = (at + 3, _NOW)
            return at + 3
        elif self._is_catalog(at):
            self._replaced[at] = (at + 2, "")
            return at + 2
        return at + 1

    def _key(self, at: int) -> str:
        return self._tokens[at].key if 0 <= at < len(self._tokens) else ""

    def _is_now(self, at: int) -> bool:
        words = [self._key(each) for each in (at, at + 1, at + 2)]
        return words == ["NOW", "(", ")"] and self._key(at - 1) != "."

    def _is_catalog(self, at: int) -> bool:
        """Whether the token is the source's name before a schema with a point in it."""
        token, schema = self._tokens[at], self._tokens[at + 2 : at + 3]
        return (
            token.kind in (WORD, NAME)
            and token.text.lower() == self._database.lower()
            and self._key(at - 1) != "."
            and self._key(at + 1) == "."
            and bool(schema)
            and schema[0].kind == NAME
            and "." in schema[0].text
            and self._key(at + 3) == "."
        )

    def _read_cast(self, at: int) -> int:
        stop = self._end_of_type(at + 1)
        marks = _CASTS.get(self._tokens[stop[0]].key) if stop is not None else None
        operand = self._operand(at - 1)
        if stop is None or marks is None or operand is None:
            return at + 1
        if operand == at - 1 and self._tokens[operand].kind in (STRING, NUMBER, PARAM):
            # A constant or parameter: `place_parameters` leaves the cast out, so that it still
            # binds a method's parameter.
            self._operands[stop[1]] = operand
            return stop[1] + 1
        before, behind = marks
        self._before[operand] = before + self._before.get(operand, "")
        self._replaced[at] = (stop[1] + 1, behind)
        self._operands[stop[1]] = operand
        return stop[1] + 1

    def _end_of_type(self, at: int) -> tuple[int, int] | None:
        """The first token of a type's name, without its schema, and the last of the type."""
        if self._key(at) == "PG_CATALOG" and self._key(at + 1) == ".":
            at += 2
        if at >= len(self._tokens) or self._tokens[at].kind not in (WORD, NAME):
            return None
        last = at
        while self._key(last + 1) in _MORE_WORDS:
            last += 1
        if self._key(last + 1) == "(":
            closing = next(
                (each for each in range(last + 2, len(self._tokens)) if self._key(each) == ")"),
                None,
            )
            if closing is None:
                return None
            last = closing
        return None if self._key(last + 1) == "[" else (at, last)

    def _operand(self, last: int) -> int | None:
        """The first token of what ends with the token at `last`; None if that is no operand."""
        if last in self._operands:
            return self._operands[last]
        if last < 0:
            return None
        token = self._tokens[last]
        if token.key == ")":
            first = self._opening(last, "(", ")")
            if first is None or not self._is_name(first - 1):
                return first
            return self._path(first - 1)
        if token.kind == WORD and token.key == "END":
            return self._opening(last, "CASE", "END")
        if token.kind in (STRING, NUMBER, PARAM):
            return last
        return self._path(last) if self._is_name(last) else None

    def _opening(self, last: int, opens: str, closes: str) -> int | None:
        depth = 0
        for at in range(last, -1, -1):
            depth += (self._key(at) == closes) - (self._key(at) == opens)
            if depth == 0:
                return at
        return None

    def _is_name(self, at: int) -> bool:
        if at < 0:
            return False
        token = self._tokens[at]
        return token.kind == NAME or (token.kind == WORD and token.key not in _NO_FUNCTIONS)

    def _path(self, last: int) -> int:
        """The first token of a name with points in it."""
        at = last
        while self._key(at - 1) == "." and self._is_name(at - 2):
            at -= 2
        return at

    def _end(self, at: int) -> int:
        """Where the token ends, as it is written."""
        token = self._tokens[at]
        if token.kind not in (STRING, NAME):  # whose texts are without their quotes
            return token.at + len(token.text)
        stop = self._tokens[at + 1].at if at + 1 < len(self._tokens) else len(self._text)
        return token.at + len(self._text[token.at : stop].rstrip())
