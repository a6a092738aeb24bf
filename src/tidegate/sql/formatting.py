"""Puts each clause of a statement on a line of its own. Only spaces and line ends change: tokens
and comments are the same, in the same order, and that is checked.

Where a space has a meaning it stays as it is: MySQL reads `count (` as another thing than `count(`,
and PostgreSQL joins two strings only across a line end. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.highlighting import Part, highlight
from tidegate.sql.lex import lex

WIDTH = 100
INDENT = "  "
MOST_INDENTS = 40
"""How far a line begins at most: deeper queries would be indented by more than their text."""
_CLAUSES = words(
    "SELECT FROM WHERE HAVING WINDOW QUALIFY LIMIT OFFSET FETCH RETURNING SET VALUES UNION"
    " INTERSECT EXCEPT MINUS"
)
_TWO_WORDS = {"GROUP": "BY", "ORDER": "BY", "INSERT": "INTO", "DELETE": "FROM", "ON": "CONFLICT"}
"""Words that begin a clause together with the next one."""
_JOINS = words("JOIN LEFT RIGHT FULL INNER CROSS NATURAL ASOF STRAIGHT_JOIN")
_JOINED = words("LEFT RIGHT FULL INNER CROSS NATURAL ASOF OUTER ANTI SEMI POSITIONAL")
"""Words after which JOIN goes on in the same line."""
_HEADS = words("SELECT WITH VALUES INSERT UPDATE DELETE MERGE")
_CONDITIONS = words("AND OR")


class _Piece(NamedTuple):
    """A token or a comment as it is written, and the blank text before it."""

    kind: str
    text: str
    before: str

    @property
    def word(self) -> str:
        """The word in upper case, empty for anything but a bare word."""
        return self.text.upper() if self.kind in ("keyword", "name") else ""


def format_text(text: str, dialect: str) -> str:
    """The text in lines of clauses. One that cannot be read as tokens, or whose tokens would be
    others, is returned as it is."""
    parts = highlight(text, dialect)
    if any(kind == "plain" for kind, _ in parts):
        return text
    formatted = _Layout(_pieces(parts)).text()
    return formatted if _is_same(text, parts, formatted, dialect) else text


def _is_same(text: str, parts: list[Part], formatted: str, dialect: str) -> bool:
    rules = find(dialect).lexical_rules
    before, after = lex(text, rules), lex(formatted, rules)
    if [token[:3] for token in before] != [token[:3] for token in after]:
        return False
    return _written(parts) == _written(highlight(formatted, dialect))


def _written(parts: list[Part]) -> list[Part]:
    """The parts but the blank ones; the lines of a comment have no blank ends."""
    return [(kind, part.rstrip()) for kind, part in parts if kind != "space"]


def _pieces(parts: list[Part]) -> list[_Piece]:
    pieces: list[_Piece] = []
    before = ""
    for kind, text in parts:
        if kind == "space":
            before += text
            continue
        if kind == "comment":
            for comment, blank in _comments(text):
                pieces.append(_Piece(kind, comment, before))
                before = blank
            continue
        pieces.append(_Piece(kind, text, before))
        before = ""
    return pieces


def _comments(text: str) -> list[tuple[str, str]]:
    """The comments of a part, each with the blank text after it: one that ends with its line ends
    there."""
    found: list[tuple[str, str]] = []
    rest = text
    while rest:
        if rest.startswith("/*"):
            at = _block_end(rest)
        else:
            at = rest.find("\n")
            at = len(rest) if at < 0 else at
        tail = rest[at:]
        blank = tail[: len(tail) - len(tail.lstrip())]
        found.append((rest[:at], blank))
        rest = tail[len(blank) :]
    return found


def _block_end(text: str) -> int:
    """Where a comment ends; comments inside count, as databases that nest them read it. What this
    gets wrong changes the tokens, and then nothing is formatted."""
    depth, at = 0, 0
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if not depth:
                return at
        else:
            at += 1
    return len(text)


class _Layout:
    """The lines of a text, made piece by piece."""

    def __init__(self, pieces: list[_Piece]) -> None:
        self._pieces = pieces
        self._befores = _neighbors(pieces)
        self._nexts = _neighbors(reversed(pieces))[::-1]
        self._lines: list[str] = []
        self._line = ""
        self._blocks: list[bool] = []
        """The open brackets: whether each holds a statement, with lines of its own."""
        self._deep = 0
        self._between = 0
        self._cases = 0
        self._ends_line = False

    def text(self) -> str:
        for at, piece in enumerate(self._pieces):
            self._add(at, piece)
        self._break()
        return "\n".join(self._lines).strip("\n")

    def _add(self, at: int, piece: _Piece) -> None:
        last = self._pieces[at - 1] if at else None
        if piece.kind == "comment":
            self._add_comment(piece)
            return
        if self._closes(piece):
            block = self._blocks.pop() if self._blocks else False
            self._deep -= block
            if block:
                self._break()
        elif self._begins_line(at, piece):
            self._break()
        self._write(self._gap(last, piece), piece.text)
        word = piece.word
        if piece.text in ("(", "["):
            following = self._next(at)
            self._blocks.append(following is not None and following.word in _HEADS)
            self._deep += self._blocks[-1]
            if self._blocks[-1]:
                self._break()
        elif word == "BETWEEN":
            self._between += 1
        elif word == "CASE":
            self._cases += 1
        elif word == "END" and self._cases:
            self._cases -= 1
        elif word == "AND" and self._between:
            self._between -= 1
        elif piece.text == ";":
            self._break()
            self._blocks.clear()
            self._deep = 0
            self._between = self._cases = 0
            if self._next(at) is not None:
                self._lines.append("")

    def _add_comment(self, piece: _Piece) -> None:
        alone = "\n" in piece.before or not self._line
        if alone:
            self._break()
        self._write("" if not self._line else " ", piece.text)
        if not piece.text.startswith("/*"):
            self._ends_line = True

    def _closes(self, piece: _Piece) -> bool:
        return piece.text in (")", "]") and piece.kind == "operator"

    def _begins_line(self, at: int, piece: _Piece) -> bool:
        word = piece.word
        if not word or not self._line or self._cases or (self._blocks and not self._blocks[-1]):
            return False
        last, following = self._before(at), self._next(at)
        if last is not None and last.text == ".":
            return False
        if word in _CONDITIONS:
            return not (word == "AND" and self._between)
        if word in _JOINS:
            named = word != "JOIN" and following is not None and following.text == "("
            return not named and not (last is not None and last.word in _JOINED)
        after = _TWO_WORDS.get(word)
        if after is not None:
            return following is not None and following.word == after and bool(self._line.strip())
        if last is not None and (last.word, word) in (("DELETE", "FROM"), ("UPDATE", "SET")):
            return False
        return word in _CLAUSES and not self._calls(following)

    @staticmethod
    def _calls(following: _Piece | None) -> bool:
        """Whether the word is the name of a function: `left(`."""
        return following is not None and following.text == "(" and not following.before

    def _gap(self, last: _Piece | None, piece: _Piece) -> str:
        """The space between two pieces of one line."""
        if last is None or not self._line.strip():
            return ""
        if last.kind == "string" and piece.kind == "string":
            return piece.before
        if last.text == ",":
            return " "
        if not piece.before:
            return ""
        tight = piece.text in (",", ";", ")", "]") or last.text in ("(", "[")
        return "" if (tight and piece.kind == "operator") or last.text in ("(", "[") else " "

    def _write(self, gap: str, text: str) -> None:
        if self._ends_line:
            self._break()
            gap = ""
        if not self._line:
            self._line = INDENT * self._depth(text) + text
            return
        if gap == " " and len(self._line) + 1 + len(text) > WIDTH and self._line.endswith(","):
            self._break()
            self._line = INDENT * (self._depth(text) + 1) + text
            return
        self._line += gap + text

    def _depth(self, text: str) -> int:
        deep = min(self._deep, MOST_INDENTS)
        return deep + (1 if text.upper() in _CONDITIONS else 0)

    def _break(self) -> None:
        if self._line.strip():
            self._lines.append(self._line.rstrip(" \t"))
        self._line = ""
        self._ends_line = False

    def _before(self, at: int) -> _Piece | None:
        return self._befores[at]

    def _next(self, at: int) -> _Piece | None:
        return self._nexts[at]


def _neighbors(pieces: Iterable[_Piece]) -> list[_Piece | None]:
    """Of each piece the one before it that is no comment."""
    found: list[_Piece | None] = []
    last: _Piece | None = None
    for piece in pieces:
        found.append(last)
        last = last if piece.kind == "comment" else piece
    return found
