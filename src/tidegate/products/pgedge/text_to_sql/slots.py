"""Questions with slots: a confirmed question answers others that differ in a value alone. Pure.

A literal of the statement that is in the question too becomes a slot of both, such as
`{1:date}`: a date in ISO form, a number, or a text. A value that is in the question twice
becomes none, because it is not clear which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from tidegate.model.schema import Catalog, Table
from tidegate.products.pgedge.text_to_sql.binding import Bound
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NUMBER, STRING, lex
from tidegate.sql.quoting import literal
from tidegate.store.records import PairEntry, PairSlot, SlotKind

MOST_SLOTS = 4
_MARK = re.compile(r"\{(\d+):(text|number|date)\}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FORMS: dict[SlotKind, str] = {
    "date": r"(\d{4}-\d\d-\d\d)",
    "number": r"(-?\d{1,18}(?:\.\d{1,9})?)",
    "text": r"(\"[^\"]{1,80}\"|'[^']{1,80}'|[^\W_][\w .&'-]{0,60}?)",
}


class Pattern(NamedTuple):
    """A question and its statement with slots."""

    question: str
    sql: str
    slots: tuple[PairSlot, ...]


class Filled(NamedTuple):
    """The value of a slot in a question. `quoted`: it was in quotes."""

    slot: PairSlot
    value: str
    quoted: bool


def make_pattern(question: str, sql: str, bound: Bound | None, dialect: str) -> Pattern:
    """The question and the statement with slots in the place of the values in both."""
    plain = Pattern(question, sql, ())
    if "{" in question or "}" in question or "{" in sql:
        return plain
    try:
        tokens = lex(sql, find(dialect).lexical_rules)
    except Refusal:
        return plain
    columns = _columns_of(bound)
    slots: dict[str, PairSlot] = {}
    edits: list[tuple[int, int, str]] = []
    for token in tokens:
        if token.kind == STRING and sql[token.at] == "'":
            kind: SlotKind = "date" if _DATE.fullmatch(token.text) else "text"
        elif token.kind == NUMBER:
            kind = "number"
        else:
            continue
        value = token.text
        end = token.at + len(value) + (0 if kind == "number" else 2)
        if len(value) < 1 or sql[token.at : end] not in (value, f"'{value}'"):
            continue
        if len(_places(question, value, kind)) != 1 or (kind == "text" and len(value) < 2):
            continue
        slot = slots.get(value)
        if slot is None:
            if len(slots) >= MOST_SLOTS:
                continue
            slot = slots[value] = PairSlot(str(len(slots) + 1), kind, columns.get(value, ""))
        edits.append((token.at, end, f"{{{slot.name}:{slot.kind}}}"))
    for start, end, mark in reversed(edits):
        sql = sql[:start] + mark + sql[end:]
    places = sorted(
        (*_places(question, value, slot.kind)[0], slot) for value, slot in slots.items()
    )
    if any(one[1] > other[0] for one, other in pairwise(places)):
        return plain
    for start, end, slot in reversed(places):
        if start and question[start - 1 : start] in "'\"" and question[end : end + 1] in "'\"":
            start, end = start - 1, end + 1  # quotes around a value are part of the slot
        question = question[:start] + f"{{{slot.name}:{slot.kind}}}" + question[end:]
    return Pattern(question, sql, tuple(slots.values()))


def _places(question: str, value: str, kind: SlotKind) -> list[tuple[int, int]]:
    pattern = rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)"
    flags = re.IGNORECASE if kind == "text" else 0
    return [found.span() for found in re.finditer(pattern, question, flags)]


def _columns_of(bound: Bound | None) -> dict[str, str]:
    """The column that a text is compared with, by the text."""
    found: dict[str, str] = {}
    for scope in bound.scopes if bound is not None else ():
        for node in scope.node.walk():
            if type(node).__name__ == "EQ":
                sides = (node.left, node.right)
            elif type(node).__name__ == "In" and len(node.args.get("expressions") or ()) == 1:
                sides = (node.this, node.expressions[0])
            else:
                continue
            for column, value in (sides, sides[::-1]):
                if type(column).__name__ == "Column" and type(value).__name__ == "Literal":
                    known = scope.resolve(column)
                    if known is not None:
                        place = f"{known.table.schema}.{known.table.name}"
                        found[value.name] = f"{place}.{known.column.name}"
    return found


def match(pair: PairEntry, question: str) -> tuple[Filled, ...] | None:
    """The values of the pair's slots in a question; None if the question is another."""
    slots = {slot.name: slot for slot in pair.slots}
    order: list[PairSlot] = []
    pieces: list[str] = []
    at = 0
    wanted = plain(pair.question)
    for mark in _MARK.finditer(wanted):
        slot = slots.get(mark[1])
        if slot is None:
            return None
        pieces += [re.escape(wanted[at : mark.start()]), _FORMS[slot.kind]]
        order.append(slot)
        at = mark.end()
    pieces.append(re.escape(wanted[at:]))
    found = re.fullmatch("".join(pieces), plain(question), re.IGNORECASE)
    if found is None:
        return None
    filled = [
        Filled(slot, value.strip("\"'"), value[:1] in "\"'")
        for slot, value in zip(order, found.groups(), strict=True)
    ]
    return tuple(filled) if all(map(_is_valid, filled)) else None


def _is_valid(filled: Filled) -> bool:
    if filled.slot.kind == "date":
        try:
            date.fromisoformat(filled.value)
        except ValueError:
            return False
    return True


def plain(question: str) -> str:
    """The question with single blanks, without a mark at its end."""
    return " ".join(question.split()).rstrip("?!. ")


def fill(pair: PairEntry, values: Mapping[str, str], dialect: str) -> str:
    """The statement with the values of slots, by their names, as literals of the dialect."""
    kinds = {slot.name: slot.kind for slot in pair.slots}

    def written(mark: re.Match[str]) -> str:
        value = values[mark[1]]
        return value if kinds[mark[1]] == "number" else literal(value, dialect)

    return _MARK.sub(written, pair.sql) if pair.slots else pair.sql


def pair_id(question: str) -> str:
    """The id of a pair, the same wherever the question is confirmed."""
    return f"p-{sha256(plain(question).casefold().encode()).hexdigest()[:12]}"


def schema_digest(tables: list[Table]) -> str:
    """A digest of the names and types of the tables' columns."""
    lines = [
        f"{table.schema}.{table.name}({','.join(f'{c.name} {c.type}' for c in table.columns)})"
        for table in sorted(tables, key=lambda each: (each.schema, each.name))
    ]
    return sha256("\n".join(lines).encode()).hexdigest()


def tables_named(names: tuple[str, ...], catalog: Catalog) -> list[Table] | None:
    """The tables of a pair; None if the caller does not see one of them."""
    known = {f"{table.schema}.{table.name}": table for table in catalog.tables}
    found = [known.get(name) for name in names]
    return None if None in found else [table for table in found if table is not None]
