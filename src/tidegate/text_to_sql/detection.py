"""Tells SQL from plain language. Pure, but for what `sql.judge` keeps of texts."""

from __future__ import annotations

import re

from tidegate.model.schema import Catalog
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

_FIRST = re.compile(r"\(*([A-Za-z]+)")
_ALONE = frozenset({"SHOW", "TABLE", "DESCRIBE", "DESC", "EXPLAIN", "VALUES", "PRAGMA"})
"""Words that begin statements and sentences alike."""


def is_sql(text: str, catalog: Catalog) -> bool:
    """Whether the text is a statement, rather than a question.

    A text that parses is one, unless it says nothing of a table that there is: `select customers`
    parses, as a column. A text that begins as a statement with a table's name and has a mistake is
    one too, so that its mistake is reported and no model guesses at it.
    """
    begin = _FIRST.match(text.lstrip())
    if begin is None:
        return text.lstrip().startswith(("--", "/*"))
    word = begin[1].upper()
    judgement = judge(text, catalog.dialect)
    readable = judgement.effect is not Effect.UNKNOWN
    names = {table.name.casefold() for table in catalog.tables}
    named = any(
        name.rpartition(".")[2].strip('"`').casefold() in names for name in judgement.tables
    )
    if word in _ALONE:
        return readable
    if readable:
        return named or judgement.effect is not Effect.READ or _is_complete(text)
    return _is_complete(text) and word in ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")


def _is_complete(text: str) -> bool:
    """Whether the text has signs that few sentences have."""
    return re.search(r"[*();=<>]", text) is not None
