"""What statements have in common that differ in plain values only, so that what is put into one is
put into the others at the same places, and worked out once.

Two statements share a pattern only if all their tokens are the same except numbers and strings
that are compared with. The judge reads the value of neither (`sql/fingerprint.py`), and what
is written is in place of names or next to them, never in a value.

The result of such a pattern is kept as a frame, too: the rewritten text with gaps for the values.
Then a statement with new values is not even split into tokens.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.sql.dialects.model import words
from tidegate.sql.lex import LITERALS, NAME, NUMBER, STRING, WORD, Token
from tidegate.sql.masking.parsed_statement import end_of, replace_spans

Edit = tuple[int, int, str]
"""Where a piece of the text starts and ends, and what is there then."""

LONGEST = 4_096
"""Characters of the longest text whose pattern is kept."""

_COMPARES = words("= < > <= >= <> != LIKE")


class RewriteTemplate:
    """A statement, equal to all that have its pattern."""

    __slots__ = ("_hash", "key", "text", "tokens")

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.key = tuple(_parts(text, tokens))
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewriteTemplate) and self.key == other.key


class Anchor(NamedTuple):
    """An edit by the numbers of the names that it replaces, from the first to the last."""

    first: int
    last: int
    piece: str


def anchored(edits: list[Edit], pattern: RewriteTemplate) -> tuple[Anchor, ...] | None:
    """The edits by the tokens they are at; None if one is not in place of whole names, or could
    hold what the statement says elsewhere."""
    starts = {token.at: number for number, token in enumerate(pattern.tokens)}
    ends: dict[int, int] = {}
    for number, token in enumerate(pattern.tokens):
        if token.kind in (WORD, NAME):
            ends[end_of(pattern.text, token)] = number
    found: list[Anchor] = []
    for start, end, piece in edits:
        first, last = starts.get(start), ends.get(end)
        if last is None and not piece and end in starts:
            last = starts[end] - 1  # up to a dot, which is left out as well
        if first is None or last is None or last < first:
            return None
        found.append(Anchor(first, last, piece))
    return tuple(found)


def placed(anchors: tuple[Anchor, ...], pattern: RewriteTemplate) -> list[Edit]:
    """The edits of a statement of the same pattern."""
    text, tokens = pattern.text, pattern.tokens
    return [(tokens[first].at, _end(text, tokens, last), piece) for first, last, piece in anchors]


class SplitText:
    """A text in the pieces of `split_at_literals`, equal to all that differ in the values only.

    A number and a string in the same place differ: the quotes belong to the pieces around.
    """

    __slots__ = ("_around", "pieces", "text")

    def __init__(self, text: str, pieces: tuple[str, ...]) -> None:
        self.text = text
        self.pieces = pieces
        self._around = pieces[::2]

    def __hash__(self) -> int:
        return hash(self._around)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitText) and self._around == other._around


class Frame(NamedTuple):
    """A rewritten text in pieces, with the values of one statement at the odd places; and its
    fingerprint, which is that of all. None if its literals are uncertain. `keys` is how many of its
    parameters are the key of the hashes; then it has no others."""

    pieces: tuple[str, ...]
    fingerprint: str | None
    keys: int = 0

    def filled(self, split: SplitText) -> str:
        """The rewritten text with the values of another statement."""
        pieces = list(self.pieces)
        pieces[1::2] = split.pieces[1::2]
        return "".join(pieces)


def framed(
    split: SplitText, pattern: RewriteTemplate, edits: list[Edit], fingerprint: str | None
) -> Frame | None:
    """The frame that these edits of a text give; None if a value is not the whole of a token that
    may have any value, or if an edit touches one."""
    numbers = {token.at: number for number, token in enumerate(pattern.tokens)}
    pieces: list[str] = []
    at = 0
    for place, piece in enumerate(split.pieces):
        end = at + len(piece)
        if place % 2 == 0:
            inside = [
                (start - at, stop - at, written)
                for start, stop, written in edits
                if at <= start and stop <= end
            ]
            pieces.append(replace_spans(piece, inside))
            edits = [edit for edit in edits if edit[0] < at or edit[1] > end]
        elif _is_any_value(pattern, numbers, at, piece):
            pieces.append(piece)
        else:
            return None
        at = end
    return None if edits else Frame(tuple(pieces), fingerprint)


def _is_any_value(pattern: RewriteTemplate, numbers: dict[int, int], at: int, value: str) -> bool:
    """Whether a token has this value, and the pattern leaves open which one."""
    number = numbers.get(at)
    if number is not None:
        return pattern.key[number] == _ANY_NUMBER and pattern.tokens[number].text == value
    number = numbers.get(at - 1)  # where the quote is
    if number is None or pattern.key[number] != _ANY_STRING:
        return False
    return pattern.tokens[number].text == value.replace("''", "'")


_ANY_NUMBER = (NUMBER, "7")
_ANY_STRING = (STRING, "x")


def _end(text: str, tokens: list[Token], last: int) -> int:
    token = tokens[last]
    return end_of(text, token) if token.kind in (WORD, NAME) else tokens[last + 1].at


def _parts(text: str, tokens: list[Token]) -> list[tuple[str, str]]:
    """What of each token is part of the pattern: its kind, and its text as far as that counts. A
    name's quotes do."""
    parts: list[tuple[str, str]] = []
    before = ""
    for kind, key, written, at in tokens:
        if kind not in LITERALS:
            parts.append((kind if kind != NAME else text[at], written))
        elif kind == NUMBER and written.isdigit():
            parts.append(_ANY_NUMBER)
        elif kind == STRING and text[at] == "'" and before in _COMPARES:
            parts.append(_ANY_STRING)
        else:
            parts.append((kind, f"{text[at]}{written}"))
        before = key
    return parts
