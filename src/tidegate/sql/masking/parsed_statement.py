"""Reads a statement for rewriting: its tree, and the place of each table's name in the text.

The tree is made from the rendering of `normalize`; positions lead from there to the tokens, and the
tokens to the text as it was written. What has no position is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.errors import masking_refused
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.lex import NAME, WORD, Token
from tidegate.sql.normalization import normalize
from tidegate.sql.parse import parse
from tidegate.sql.tree_checks import is_table_with_arguments

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expression

_CLOSES = {"[": "]"}
_NAMES = (WORD, NAME)


class Part(NamedTuple):
    """One part of a dotted name."""

    text: str
    quoted: bool


class TableReference(NamedTuple):
    """A table's name in a statement: its parts, the numbers of its first and last token."""

    node: Any
    parts: tuple[Part, ...]
    first: int
    last: int


class ParsedStatement:
    """A statement's text, tokens and tree."""

    def __init__(self, text: str, tokens: list[Token], dialect: Dialect) -> None:
        """Raises: Refusal."""
        self.text = text
        self.tokens = tokens
        self.dialect = dialect
        places: list[int] = []
        written, self._names = normalize(tokens, dialect, places)
        self.tree: Expression = parse(written, dialect.parser, len(tokens))
        self._token_at: dict[int, int] = {}
        for number, place in enumerate(places):
            self._token_at.setdefault(place, number)

    def references(self) -> Iterator[TableReference]:
        """The places where tables are named, in no particular order.

        Functions in the place of tables are left out. Raises: TidegateError POLICY_MASKED.
        """
        for node in self.tree.walk():
            if type(node).__name__ == "Table":
                reference = self._reference(node)
                if reference is not None:
                    yield reference

    def _reference(self, node: Any) -> TableReference | None:
        if type(node.this).__name__ != "Identifier":
            if node.this is None or type(node.this).__name__ in ("Parameter", "Placeholder", "Dot"):
                raise masking_refused(
                    "A table is named in a way that cannot be followed", "masking.name"
                )
            if is_table_with_arguments(node, self.dialect, self._names):
                raise masking_refused(
                    "Something of this source is hidden from this caller, and a table that is read"
                    " with arguments could show it",
                    "masking.arguments",
                    "Name the table alone, and give the words as a condition: t MATCH 'words'.",
                )
            return None
        return TableReference(node, *self.chain(list(node.parts)))

    def chain(self, identifiers: list[Any]) -> tuple[tuple[Part, ...], int, int]:
        """The parts of a dotted name, and its first and last token."""
        numbers = [self.number(identifier) for identifier in identifiers]
        first, last = numbers[0], numbers[-1]
        dots = [self.tokens[number].key for number in range(first + 1, last, 2)]
        if numbers != list(range(first, last + 1, 2)) or any(dot != "." for dot in dots):
            raise masking_refused("A table's name cannot be located in the text", "masking.place")
        return tuple([self.part(number) for number in numbers]), first, last

    def number(self, identifier: Any) -> int:
        """The number of the token that an identifier was read from."""
        meta: dict[str, int] = getattr(identifier, "meta", None) or {}
        number = self._token_at.get(meta.get("start", -1))
        if number is None or self.tokens[number].kind not in _NAMES:
            raise masking_refused("A name cannot be located in the text", "masking.place")
        return number

    def written_at(self, place: int) -> Token | None:
        """The token that was rendered from that place on, if any was."""
        number = self._token_at.get(place)
        return None if number is None else self.tokens[number]

    def part(self, number: int) -> Part:
        token = self.tokens[number]
        return Part(token.text, token.kind == NAME)

    def key(self, number: int) -> str:
        """What the token of that number is compared by; empty beyond the ends."""
        return self.tokens[number].key if 0 <= number < len(self.tokens) else ""

    def end(self, number: int) -> int:
        """Where in the text the name of that number ends."""
        return end_of(self.text, self.tokens[number])


def end_of(text: str, token: Token) -> int:
    """Where in the text a word or a quoted name ends."""
    if token.kind == WORD:
        return token.at + len(token.text)
    quote = text[token.at]
    quote = _CLOSES.get(quote, quote)
    at = token.at + 1
    while True:
        at = text.index(quote, at) + 1
        if quote == "]" or text[at : at + 1] != quote:
            return at
        at += 1


def replace_spans(text: str, edits: list[tuple[int, int, str]]) -> str:
    """The text with pieces replaced: (start, end, what is there then), none overlapping."""
    parts: list[str] = []
    at = 0
    for start, end, piece in sorted(edits, key=lambda edit: edit[:2]):
        if start < at:
            raise masking_refused("The statement's names overlap", "masking.place")
        parts += (text[at:start], piece)
        at = end
    parts.append(text[at:])
    return "".join(parts)
