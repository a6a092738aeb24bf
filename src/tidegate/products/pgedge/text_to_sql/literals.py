"""Finds the texts that a statement compares columns with, and writes the query that tells whether
any row has such a text. Pure.

A text in wrong case or misspelt finds nothing, and the statement still gives a number. Columns that
are masked for the caller are left out: to say whether a hidden value exists would tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import msgspec

from tidegate.products.pgedge.text_to_sql.binding import Bound, BoundColumn, Scope
from tidegate.products.pgedge.text_to_sql.model import Check
from tidegate.search.shorthand import printable
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, qualified

_TEXTS = ("char", "text", "clob", "string", "enum", "name")
_COMPARES = ("EQ", "NEQ", "Like", "ILike", "In", "Glob", "NullSafeEQ")
_MOMENT = re.compile(r"\d{4}-\d\d?(-\d\d?.*)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d\d:\d\d.*|%*\d*%*")
_LONGEST = 200
_MOST_NEAR = 3
MOST_VALUES = 1_000
"""Texts of a column among which one like the missing one is searched."""


class LiteralProbe(msgspec.Struct, frozen=True):
    """`sql` gives a row if any row has `text` in the column as the statement compares it; `values`
    gives the column's texts. An alternative is one of several texts, of which some may be missing:
    a question names them, and not all need be there."""

    column: BoundColumn
    text: str
    sql: str
    values: str
    is_alternative: bool


def literal_probes(bound: Bound, dialect: str) -> Iterator[LiteralProbe]:
    """A probe for each text that is compared with a column of texts, each once."""
    seen: set[str] = set()
    for scope in bound.scopes:
        for node in scope.node.walk(prune=_inside(scope)):
            for condition, text, alternative in _compared(node):
                probe = _probe(scope, condition, text, dialect, alternative=alternative)
                if probe is not None and probe.sql not in seen:
                    seen.add(probe.sql)
                    yield probe


def missing_check(probe: LiteralProbe, near: str = "") -> Check:
    """What is said of a text that no row has. `near` are texts that rows have."""
    instead = f", but {near}" if near else ": compare it with the values that there are"
    return Check(
        "missing_value",
        f"No row that you see has {probe.column.path} like '{probe.text}'{instead}.",
    )


def near_texts(probe: LiteralProbe, rows: bytes) -> str:
    """The texts of `rows` (one column, as JSON) that differ from the probe's in case, blanks or a
    few letters, for a sentence; empty if there are none."""
    texts = [str(row[0]) for row in msgspec.json.decode(rows) if row[0] is not None]
    wanted = probe.text.strip("%").strip().casefold()
    by_fold = {text.strip().casefold(): text for text in texts}
    found = [text for fold, text in by_fold.items() if wanted and wanted in fold][:_MOST_NEAR]
    if not found:
        by_word = dict(by_fold)
        if "%" in probe.text:
            by_word |= {word: text for fold, text in by_fold.items() for word in fold.split()}
        near = get_close_matches(wanted, by_word, n=_MOST_NEAR, cutoff=0.75)
        found = list(dict.fromkeys([by_word[each] for each in near]))
    return ", ".join([f"'{printable(text[:_LONGEST])}'" for text in found])


def _compared(node: Any) -> Iterator[tuple[Any, str, bool]]:
    """The conditions of a comparison, each with one text and without NOT, and whether the text is
    one of several alternatives."""
    from sqlglot import exp

    kind = type(node).__name__
    if kind == "In":
        for each in node.expressions:
            if _is_text(each):
                single = exp.EQ(this=node.this.copy(), expression=each.copy())
                yield single, each.name, len(node.expressions) > 1
    elif kind == "Case" and node.this is not None:
        for each in node.args.get("ifs") or ():
            if _is_text(each.this):
                single = exp.EQ(this=node.this.copy(), expression=each.this.copy())
                yield single, each.this.name, False
    elif kind in _COMPARES:
        sides: tuple[Any, Any] = (node.this, node.args.get("expression"))
        for side, other in (sides, sides[::-1]):
            if other is not None and side is not None and side.find(exp.Column) is None:
                texts = [each for each in side.find_all(exp.Literal) if each.is_string]
                if len(texts) == 1:
                    copy = node.copy()
                    copy.set("negate", None)  # where NOT is a part of the comparison
                    if kind == "NEQ":
                        copy = exp.EQ(this=copy.this, expression=copy.expression)
                    yield copy, texts[0].name, type(node.parent).__name__ == "Or"


def _is_text(node: Any) -> bool:
    return type(node).__name__ == "Literal" and bool(node.is_string)


def _probe(
    scope: Scope, condition: Any, text: str, dialect: str, *, alternative: bool
) -> LiteralProbe | None:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    columns = list(condition.find_all(exp.Column))
    if len(columns) != 1 or len(text) > _LONGEST or _MOMENT.fullmatch(text):
        return None
    if any(condition.find(each) for each in (exp.Query, exp.AggFunc, exp.Window)):
        return None
    found = scope.resolve(columns[0])
    if found is None or found.column.masked is not None or not _holds_texts(found):
        return None
    try:
        columns[0].replace(exp.column(exp.to_identifier(found.column.name, quoted=True)))
        where = condition.sql(find(dialect).parser)
    except (SqlglotError, ValueError):
        return None
    place = qualified(found.table.schema, found.table.name, dialect)
    name = identifier(found.column.name, dialect)
    return LiteralProbe(
        found,
        text,
        f"SELECT 1 FROM {place} WHERE {where} LIMIT 1",
        f"SELECT DISTINCT {name} FROM {place} LIMIT {MOST_VALUES}",
        alternative,
    )


def _holds_texts(found: BoundColumn) -> bool:
    low = found.column.type.lower()
    return any(word in low for word in _TEXTS)


def _inside(scope: Scope) -> Any:
    def is_inner(node: Any) -> bool:
        return node is not scope.node and type(node).__name__ in ("Select", "Subquery", "Union")

    return is_inner
