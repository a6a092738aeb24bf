"""Pages of Activity over the records of several gates: how they are merged, and continued.

Each record has its own numbers, so a cursor has one for each gate. In the page of a gate its lines
come in the order of its numbers, which is that of time, except for what several processes wrote at
once. The newest of the heads comes next. Where the page of a gate ends and there is more of it, the
merged page ends, too: what comes next there may be newer than what others have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tidegate.audit.activity import MOST_COUNTED
from tidegate.audit.activity_lines import Found, Line
from tidegate.errors import Code, TidegateError

MOST_GATES = 64
"""Gates in a cursor."""
_MOST_FACETS = 50
_Item = TypeVar("_Item")

Cursor = dict[str, int | None]
"""By gate the number below which its next lines are; None for the newest. A gate that is not in it
has no more."""
MergedLines = Iterator[tuple[str, Line]]
"""Lines, newest first, each with the id of its gate, empty where gates do not share the state."""


class LeftOut(msgspec.Struct, frozen=True):
    """How many of the console's own reads match besides what is shown, with `more` after it."""

    left_out: int = 0
    more: bool = False


class LinePage(msgspec.Struct, frozen=True):
    """A page of the lines of one record, what is `left` out, how much of the record is `read`, and
    with the first page the `newest` line that the operator may see, whether it matches or not."""

    found: Found
    left: LeftOut
    read: float
    newest: int = 0


class Piece(NamedTuple, Generic[_Item]):
    """What one gate has for a page: items with their numbers and times, newest first; `next` as in
    a page."""

    items: Sequence[tuple[int, float, _Item]]
    next: int | None


def merge_pieces(
    pieces: Mapping[str, Piece[_Item]], limit: int
) -> tuple[list[tuple[str, _Item]], Cursor]:
    """The newest items of all gates, each with its gate, at most `limit`, and where each goes
    on."""
    places = dict.fromkeys(pieces, 0)
    merged: list[tuple[str, _Item]] = []

    def is_cut() -> bool:
        return any(
            places[gate] == len(piece.items) and piece.next is not None
            for gate, piece in pieces.items()
        )

    while len(merged) < limit and not is_cut():
        heads = [
            (piece.items[places[gate]][1], gate)
            for gate, piece in pieces.items()
            if places[gate] < len(piece.items)
        ]
        if not heads:
            break
        _, gate = max(heads)
        merged.append((gate, pieces[gate].items[places[gate]][2]))
        places[gate] += 1
    cursor: Cursor = {}
    for gate, piece in pieces.items():
        if places[gate] < len(piece.items):
            cursor[gate] = piece.items[places[gate]][0] + 1
        elif piece.next is not None:
            cursor[gate] = piece.next
    return merged, cursor


def cut_lines(page: LinePage, most_bytes: int) -> LinePage:
    """As many lines of a page as take so many bytes, and one at least."""
    size = 0
    for place, line in enumerate(page.found.lines):
        size += len(msgspec.json.encode(line))
        if size > most_bytes and place:
            kept = page.found.lines[:place]
            found = msgspec.structs.replace(page.found, lines=kept, next=kept[-1].n)
            return msgspec.structs.replace(page, found=found)
    return page


def add_counts(pages: Sequence[LinePage]) -> dict[str, Any]:
    """What is counted of all records, as the page has it."""
    total = sum(page.found.total for page in pages)
    left = sum(page.left.left_out for page in pages)
    return {
        "total": min(total, MOST_COUNTED),
        "more": total > MOST_COUNTED or any(page.found.more for page in pages),
        "most": MOST_COUNTED,
        "own": {
            "left_out": min(left, MOST_COUNTED),
            "more": left > MOST_COUNTED or any(page.left.more for page in pages),
        },
    }


def add_facets(pages: Sequence[LinePage]) -> dict[str, list[tuple[str, int]]]:
    """The facets of all records, under the names that filters have."""
    sums: dict[str, dict[str, int]] = {}
    for page in pages:
        for name, facet in page.found.facets.items():
            counts = sums.setdefault("actor" if name == "actor_name" else name, {})
            for value, count in facet:
                counts[value] = counts.get(value, 0) + count
    return {
        name: sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_FACETS]
        for name, counts in sums.items()
    }


def write_cursor(cursor: Cursor) -> str | None:
    """A cursor as text; None at the end."""
    parts = [f"{gate}.{'' if n is None else n}" for gate, n in cursor.items()]
    return "_".join(parts) or None


def read_cursor(text: str, own: str) -> Cursor | None:
    """The cursor of a text; None at the beginning. A number alone is one of this gate, `own`.
    Raises: TidegateError ARGUMENT_INVALID."""
    if not text:
        return None
    cursor: Cursor = {}
    for part in text.split("_"):
        gate, point, n = part.rpartition(".")
        if not (n.isascii() and (n.isdigit() or (point and not n)) and len(n) < 16):
            raise TidegateError(Code.ARGUMENT_INVALID, f"`before` is no place: {text[:40]!r}")
        cursor[gate if point else own] = int(n) if n else None
    if len(cursor) > MOST_GATES:
        raise TidegateError(Code.ARGUMENT_INVALID, "`before` has too many gates")
    return cursor
