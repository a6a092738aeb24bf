"""Whether rules that hide data mean the same whatever a session is set to: a filter that compares
moments, or a mask that shows a part of one, depends on the time zone of the caller. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, NUMBER, OP, STRING, WORD, lex


class KnownCatalog:
    """A catalog, by its identity: to look it up costs nothing, and a new one is another."""

    __slots__ = ("catalog",)

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __hash__(self) -> int:
        return id(self.catalog)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownCatalog) and other.catalog is self.catalog


_PLAIN = words("""
    ALL AND ANY ARRAY BETWEEN CASE ELSE END ESCAPE FALSE ILIKE IN IS LIKE NOT NULL OR SOME THEN TRUE
    UNKNOWN WHEN
    """)
_PLAIN_TYPES = re.compile(
    r"(?:text|name|uuid|boolean|smallint|integer|bigint|numeric|real|double precision|inet|citext"
    r"|character varying|character)(?:\([\d,]+\))?"
)
"""Types whose values are read and written alike in every session."""


def table_bound_to_session(rules: DataRules, catalog: Catalog, dialect: str) -> str | None:
    """The table of a rule whose meaning may depend on the time zone, the order of dates or the
    search path of a session; None if that of no rule does. What is not known to be independent
    depends."""
    return _bound(rules, KnownCatalog(catalog), dialect)


@lru_cache(maxsize=256)
def _bound(rules: DataRules, known: KnownCatalog, dialect: str) -> str | None:
    tables = known.catalog.tables
    for path, show in rules.masks:
        where, _, column = path.rpartition(".")
        columns = [each for table in _meant(where, tables) for each in table.columns]
        if show != "nothing" and not all(
            _is_plain(each) for each in columns if each.name.lower() == column.lower()
        ):
            return where
    for path, condition in rules.filters:
        columns = [each for table in _meant(path, tables) for each in table.columns]
        if not _is_independent(condition, path.lower().split("."), columns, dialect):
            return path
    return None


def _meant(path: str, tables: Sequence[Table]) -> list[Table]:
    schema, _, name = path.lower().rpartition(".")
    return [
        table
        for table in tables
        if table.name.lower() == name and schema in ("", table.schema.lower())
    ]


def _is_plain(column: ColumnInfo) -> bool:
    return _PLAIN_TYPES.fullmatch(column.type.lower()) is not None


def _is_independent(
    condition: str, names: Sequence[str], columns: Sequence[ColumnInfo], dialect: str
) -> bool:
    """Whether a condition on the table of these `names` is made of constants, operators and columns
    of plain types alone."""
    plain = dict.fromkeys(names, True)
    for column in columns:  # perhaps of several tables that are called alike
        name = column.name.lower()
        plain[name] = plain.get(name, True) and _is_plain(column)
    try:
        tokens = lex(condition, find(dialect).lexical_rules)
    except Refusal:
        return False
    for token in tokens:
        if token.kind in (NUMBER, STRING) or (token.kind == OP and token.key != "::"):
            continue
        if token.kind == WORD and token.key in _PLAIN:
            continue
        if token.kind not in (WORD, NAME) or not plain.get(token.text.strip('"').lower(), False):
            return False
    return True
