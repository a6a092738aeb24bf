"""Places in the text of a statement, by its tree, and what is put there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlglot import exp

from tidegate.sql.finding import Refusal
from tidegate.sql.parse import parse


class TextChange(NamedTuple):
    """What takes the place of `text[start:stop]`."""

    start: int
    stop: int
    text: str


def parsed(text: str) -> exp.Expr:
    """The tree of a statement. Raises: TidegateError SQL_UNREADABLE, ..."""
    try:
        tree: Any = parse(text, "sqlite", len(text))
    except Refusal as refusal:
        raise refusal.error() from None
    return tree


def path_of(table: exp.Table) -> tuple[str, ...]:
    """The names of a table with points between them; none for what is no name."""
    parts = table.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return ()
    return tuple([part.name for part in parts])


def span(parts: Iterable[exp.Expr]) -> tuple[int, int]:
    """Where names are in the text: from the first character to after the last."""
    metas = [part.meta for part in parts]
    return metas[0]["start"], metas[-1]["end"] + 1


def changed(text: str, changes: Iterable[TextChange]) -> str:
    """The text with the changes; one inside of another is not made."""
    parts: list[str] = []
    at = 0
    order = sorted(changes, key=lambda each: (each.start, each.stop > each.start, -each.stop))
    for change in order:
        if change.start < at:
            continue
        parts += [text[at : change.start], change.text]
        at = change.stop
    return "".join([*parts, text[at:]])
