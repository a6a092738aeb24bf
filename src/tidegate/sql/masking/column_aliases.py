"""Keeps the names of result columns. Most databases call a column that has no name by the text of
its expression: with a derived table of ours in it, that text would show the filter.
"""

from __future__ import annotations

from typing import Any

from tidegate.errors import masking_refused
from tidegate.sql.lex import Token
from tidegate.sql.masking.parsed_statement import ParsedStatement, TableReference

_ENDS = frozenset({",", ")", ";", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET",
                   "UNION", "EXCEPT", "INTERSECT", "WINDOW", "QUALIFY", "INTO", "FETCH", "FOR",
                   "USING", "SAMPLE"})  # fmt: skip
_BEFORE = {"FROM": "DISTINCT", "GROUP": "WITHIN"}
"""What comes before these where they end nothing: IS DISTINCT FROM, WITHIN GROUP."""


def column_aliases(
    parsed: ParsedStatement, references: list[TableReference]
) -> list[tuple[int, int, str]]:
    """Edits that name every column whose expression holds one of the references and has no name."""
    if not parsed.dialect.labels_by_text:
        return []
    edits: dict[int, tuple[int, int, str]] = {}
    longest = parsed.dialect.longest_label
    for reference in references:
        named = _named(reference.node)
        if not named:
            continue
        items = _items(parsed.tokens, reference.first)
        if len(items) != len(named):
            raise masking_refused(
                "A column's expression cannot be located in the text", "masking.label"
            )
        for (first, last), has_name in zip(items, named, strict=True):
            if not has_name:
                end = _end(parsed, last)
                text = " ".join(parsed.text[parsed.tokens[first].at : end].split())
                label = parsed.dialect.quote(text[:longest].rstrip())
                edits[end] = (end, end, f" AS {label}")
    return list(edits.values())


def _named(node: Any) -> list[bool]:
    """For every select list around a node, from the inside out: whether its item has a name."""
    found: list[bool] = []
    while node.parent is not None:
        if type(node.parent).__name__ == "Select" and node.arg_key == "expressions":
            found.append(type(node).__name__ in ("Alias", "Aliases"))
        node = node.parent
    return found


def _items(tokens: list[Token], at: int) -> list[tuple[int, int]]:
    """First and last token of every item of a select list around a token, from the inside out."""
    items: list[tuple[int, int]] = []
    while True:
        first = _first(tokens, at)
        if first is not None:
            items.append((first, _last(tokens, at)))
        opening = _opening(tokens, at)
        if opening is None:
            return items
        at = opening


def _opening(tokens: list[Token], at: int) -> int | None:
    depth = 0
    for number in range(at - 1, -1, -1):
        key = tokens[number].key
        if key in (")", "]", "}"):
            depth += 1
        elif key in ("(", "[", "{"):
            if depth == 0:
                return number
            depth -= 1
    return None


def _first(tokens: list[Token], at: int) -> int | None:
    """Where the item around a token starts; None if it is in no select list."""
    depth = 0
    start: int | None = None
    for number in range(at - 1, -1, -1):
        key = tokens[number].key
        if key in (")", "]", "}"):
            depth += 1
        elif key in ("(", "[", "{"):
            if depth == 0:
                return None
            depth -= 1
        elif depth == 0:
            if key == "," and start is None:
                start = number + 1
            elif key == "SELECT":
                begin = number + 1
                if tokens[begin].key in ("DISTINCT", "ALL"):
                    begin += 1
                return begin if start is None else start
            elif key in _ENDS and key != "," and not _is_inner(tokens, number):
                return None
    return None


def _last(tokens: list[Token], at: int) -> int:
    depth = 0
    for number in range(at, len(tokens)):
        key = tokens[number].key
        if depth == 0 and key in _ENDS | {"]", "}"} and not _is_inner(tokens, number):
            return number - 1
        if key in ("(", "[", "{"):
            depth += 1
        elif key in (")", "]", "}"):
            depth -= 1
    return len(tokens) - 1


def _is_inner(tokens: list[Token], number: int) -> bool:
    before = _BEFORE.get(tokens[number].key)
    return before is not None and number > 0 and tokens[number - 1].key == before


def _end(parsed: ParsedStatement, number: int) -> int:
    """Where in the text a token ends that closes an expression."""
    token = parsed.tokens[number]
    if token.kind in ("word", "name"):
        return parsed.end(number)
    if token.kind in ("op", "number", "param"):
        return token.at + len(token.text)
    raise masking_refused(
        "A column without a name ends in text", "masking.label", "Give the column a name with AS."
    )
