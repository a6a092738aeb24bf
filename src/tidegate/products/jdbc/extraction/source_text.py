"""Writes a query for JDBC as the SQL of its database: markers, escaped operators, JDBC escapes.

Every `?` outside strings, quoted names and comments is a parameter. `??` is the operator `?` of
PostgreSQL, as its driver reads it. `{d ...}`, `{t ...}`, `{ts ...}`, `{fn ...}`, `{escape ...}`,
`{limit ...}` and `{oj ...}` are written out. Source: JDBC 4.3, section 13.4.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from msgspec import structs

from tidegate.errors import Code
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, LexicalRules, words
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import skip_comment
from tidegate.sql.scan import MAX_BYTES
from tidegate.sql.token_regex import token_regex

GENERIC = "generic"
"""The dialect of a text whose database is not known: what databases read differently is refused."""

BRACKETED = "generic, with names in brackets"
"""The same of a text that has names in brackets, as SQL Server writes them."""

_SIGNS = frozenset("+-*/<>=~!@#%^&|$\\`:")
_QUOTES = frozenset({"quotes", "string", "prefixed"})
_ESCAPE = re.compile(
    r"\{\s*+(?P<call>\?\s*+=\s*+call\b|call\b)|\{\s*+(?P<word>fn|ts|oj|d|t|escape|limit)\b\s*+",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*+(?P<empty>\(\s*+\))?")
_WORD_CHARACTER = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]")

_STANDARD_NAMES: Mapping[str, str] = {"ucase": "upper", "lcase": "lower"}
_WITHOUT_BRACKETS = {
    "curdate": "CURRENT_DATE",
    "current_date": "CURRENT_DATE",
    "curtime": "CURRENT_TIME",
    "current_time": "CURRENT_TIME",
    "current_timestamp": "CURRENT_TIMESTAMP",
    "now": "CURRENT_TIMESTAMP",
}


class _Piece(NamedTuple):
    """A part that is written otherwise: where it is in the source's text and in the original."""

    start: int
    end: int
    original_start: int
    original_end: int


class SourceText(NamedTuple):
    """A query as its database reads it. `markers` are the places of its parameters in `text`;
    `original` is what the client wrote."""

    text: str
    original: str
    markers: tuple[int, ...]
    pieces: tuple[_Piece, ...]

    def slice(self, start: int, end: int) -> str:
        """What the client wrote for `text[start:end]`."""
        found = self.original[self._place(start, "start") : self._place(end, "end")].strip()
        while found.endswith("}") and found.count("{") < found.count("}"):
            found = found[:-1].rstrip()  # of an escape that began before
        return found

    def _place(self, at: int, edge: str) -> int:
        """The place in the original: an end takes in what was left out directly after it."""
        index = bisect_right(self.pieces, at, key=_start) - 1
        if index < 0:
            return at
        piece = self.pieces[index]
        if at >= piece.end and not (edge == "start" and piece.start == at == piece.end):
            return piece.original_end + at - piece.end
        if edge == "start" or at == piece.start:
            return piece.original_start
        return piece.original_end


def _start(piece: _Piece) -> int:
    return piece.start


@cache
def dialect_of(name: str) -> Dialect:
    """The tables of a dialect, or of `GENERIC`."""
    if name not in (GENERIC, BRACKETED):
        return find(name)
    postgres = find("postgres")
    known = postgres.lexical_rules.operators.union(
        *(find(other).lexical_rules.operators for other in ("mysql", "sqlite", "duckdb"))
    )
    rules = structs.replace(
        postgres.lexical_rules,
        operators=known - words("// :="),
        comments="ambiguous",
        executable_comments=True,
        backslashes="ambiguous",
        backticks=True,
        bracketed_names=name == BRACKETED,
    )
    return structs.replace(
        postgres,
        name=GENERIC,
        lexical_rules=rules,
        stand_ins=postgres.stand_ins | dict.fromkeys(known - postgres.lexical_rules.operators, "="),
    )


def to_source_text(text: str, dialect: str) -> SourceText:
    """Write a query for JDBC as the dialect reads it. A text that cannot be read up to its end is
    left as it is from there on: the lexer says what is wrong.

    Raises: Refusal SQL_TOO_LONG, SQL_UNREADABLE, SQL_UNKNOWN for a procedure call.
    """
    if len(text) > MAX_BYTES:
        raise Refusal(
            Code.SQL_TOO_LONG,
            "text.size",
            f"The query is longer than {MAX_BYTES:,} bytes",
            "Pass long values as parameters.",
        )
    return _Writer(text, dialect_of(dialect)).write()


class _Writer:
    """Writes one text."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._numbered = dialect.numbered_parameters
        self._parts: list[str] = []
        self._length = 0
        self._copied = 0
        self._markers: list[int] = []
        self._pieces: list[_Piece] = []
        self._open: list[str] = []
        """What ends each escape that is open, and "}" for other braces."""

    def write(self) -> SourceText:
        text = self._text
        match = token_regex(_marking(self._dialect.lexical_rules)).match
        position = 0
        while True:
            found = match(text, position)
            if found is None or found.lastgroup == "end":
                break
            kind = found.lastgroup or ""
            position, at = found.end(), found.start(kind)
            if kind == "param":
                self._mark(found[kind], at)
            elif kind == "block":
                position = skip_comment(text, at, self._dialect.lexical_rules)
            elif kind == "dollar":
                closing = text.find(found[kind], position)
                if closing < 0:
                    break
                position = closing + len(found[kind])
            elif kind in _QUOTES:
                self._check_quotation(found[kind])
            elif kind == "op":
                position = self._operator(found[kind], at, position)
        self._copy(len(text))
        return SourceText("".join(self._parts), text, tuple(self._markers), tuple(self._pieces))

    def _mark(self, raw: str, at: int) -> None:
        if raw == "??":
            self._check_operator(at)
            self._replace(at, at + 2, "?")
            return
        if raw != "?":
            raise Refusal(
                Code.SQL_UNREADABLE,
                "jdbc.numbered",
                f"The marker {raw[:12]} at character {at + 1} has a number",
                "Write ? for each parameter; they are counted from the left.",
            )
        self._copy(at)
        if not self._numbered:
            self._markers.append(self._length)
            return
        before, after = self._text[max(0, at - 1) : at], self._text[at + 1 : at + 2]
        lead = " " if _WORD_CHARACTER.match(before) else ""
        tail = " " if _WORD_CHARACTER.match(after) else ""
        self._markers.append(self._length + len(lead))
        self._replace(at, at + 1, f"{lead}${len(self._markers)}{tail}")

    def _check_operator(self, at: int) -> None:
        if "?" not in self._dialect.lexical_rules.operators:
            title = self._dialect.title or self._dialect.name
            raise Refusal(
                Code.SQL_UNREADABLE,
                "jdbc.operator",
                f"The ?? at character {at + 1} means an operator that {title} does not have",
                "Write one ? for a parameter.",
            )

    def _check_quotation(self, raw: str) -> None:
        ambiguous = self._dialect.lexical_rules.backslashes == "ambiguous"
        if ambiguous and re.search(r"\\[\"']", raw):
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.backslash",
                f"Databases read the backslash before a quote, in {raw[:20]}, differently",
                "Name the connection with connectionId, or double the quote.",
            )

    def _operator(self, raw: str, at: int, position: int) -> int:
        """Read a brace or a bracket; returns where to read on."""
        if raw == "{":
            return self._open_brace(at, position)
        if raw == "}" and self._open:
            closing = self._open.pop()
            if closing != "}":
                self._replace(at, at + 1, closing)
        elif raw == "[" and self._dialect.name == GENERIC:
            inner = re.match(r"\s*[A-Za-z_][^\[\]]*\?", self._text[position : position + 200])
            if inner is not None:
                raise Refusal(
                    Code.SQL_UNREADABLE,
                    "jdbc.bracket",
                    f"The [ at character {at + 1} begins a name or a subscript, by the database",
                    "Name the connection with connectionId.",
                )
        return position

    def _open_brace(self, at: int, position: int) -> int:
        found = _ESCAPE.match(self._text, at)
        if found is None:
            self._open.append("}")
            return position
        if found["call"]:
            raise Refusal(
                Code.SQL_UNKNOWN,
                "jdbc.call",
                "The escape {call} runs a procedure, and only queries are run here",
                "Send a SELECT.",
            )
        word, end = found["word"].lower(), found.end()
        if word == "fn":
            return self._open_function(at, end)
        replacement = {"escape": "ESCAPE ", "limit": "LIMIT ", "oj": ""}.get(word)
        if replacement is None:
            kind = {"d": "DATE", "t": "TIME", "ts": "TIMESTAMP"}[word]
            calls = self._dialect.literals_are_calls
            replacement = f"{kind}{'(' if calls else ' '}" if self._dialect.typed_literals else ""
            self._open.append(")" if calls else "")
        else:
            self._open.append("")
        self._replace(at, end, replacement)
        return end

    def _open_function(self, at: int, end: int) -> int:
        self._open.append("")
        found = _NAME.match(self._text, end)
        if found is None:
            self._replace(at, end, "")
            return end
        name = found["name"].lower()
        if found["empty"] and name in _WITHOUT_BRACKETS:
            self._replace(at, found.end(), _WITHOUT_BRACKETS[name])
            return found.end()
        own = {**_STANDARD_NAMES, **self._dialect.escape_functions}.get(name)
        if own is None:
            self._replace(at, end, "")
            return end
        self._replace(at, found.end("name"), own)
        return found.end("name")

    def _copy(self, until: int) -> None:
        self._parts.append(self._text[self._copied : until])
        self._length += until - self._copied
        self._copied = until

    def _replace(self, start: int, end: int, replacement: str) -> None:
        self._copy(start)
        self._pieces.append(_Piece(self._length, self._length + len(replacement), start, end))
        self._parts.append(replacement)
        self._length += len(replacement)
        self._copied = end


@cache
def _marking(rules: LexicalRules) -> LexicalRules:
    """The rules with JDBC's markers as the only parameters, and every other sign on its own."""
    return structs.replace(
        rules,
        operators=_SIGNS,
        operator_runs=False,
        parameters=r"\?\?|\?[0-9]*+",
        slash_comments=False,
    )
