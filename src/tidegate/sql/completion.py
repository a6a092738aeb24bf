"""Proposes how a statement goes on, from the names of a catalog. Pure.

The text is read by the lexer that judges it, without being refused for what is not finished yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from tidegate.model.schema import Catalog, Table
from tidegate.sql.completion_scope import (
    TABLE_WORDS,
    NamedTable,
    ScopeToken,
    scope_tokens,
    statement_around,
    tables_of_statement,
    tables_of_with,
    visible_tables,
)
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.quoting import shortest

MOST_ITEMS = 100
MOST_TEXT = 262_144
ItemKind = Literal["table", "column", "schema", "function", "keyword", "source", "parameter"]
_WORD = re.compile(r"[\w$]*\Z")
_REST = re.compile(r"[\w$]*")
_PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_CLAUSES = words(
    "SELECT WHERE ON HAVING BY SET VALUES AND OR NOT WHEN THEN ELSE CASE USING RETURNING LIMIT"
    " OFFSET UNION EXCEPT INTERSECT"
)
_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "NULL", "IS", "IN", "LIKE", "BETWEEN"),
    *("EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "AS"),
    *("DISTINCT", "JOIN", "LEFT JOIN", "INNER JOIN", "CROSS JOIN", "ON", "USING", "GROUP BY"),
    *("ORDER BY", "HAVING", "LIMIT", "OFFSET", "UNION", "UNION ALL", "EXCEPT", "INTERSECT"),
    *("WITH", "INSERT INTO", "VALUES", "UPDATE", "SET", "DELETE FROM", "CREATE TABLE"),
    *("ALTER TABLE", "DROP TABLE", "EXPLAIN", "ASC", "DESC", "NULLS FIRST", "NULLS LAST"),
    *("CAST", "OVER", "PARTITION BY", "RETURNING", "TRUE", "FALSE"),
)


class Item(NamedTuple):
    """A proposal: what is shown, what is written, what it is, and what is said of it."""

    label: str
    insert: str
    kind: ItemKind
    detail: str = ""


class Completion(NamedTuple):
    """Proposals in place of the text between two characters, the best first."""

    start: int
    end: int
    items: list[Item]


def complete(text: str, at: int, dialect: str, catalog: Catalog) -> Completion:
    """The proposals at a character of a text."""
    at = max(0, min(at, len(text)))
    found = _WORD.search(text[:at])
    start = found.start() if found else at
    rest = _REST.match(text, at)
    end = rest.end() if rest else at
    opened = text[start - 1 : start]
    prefix = text[start:at]
    tokens = list(scope_tokens(text, dialect))
    if any(token.at < at < token.end and token.kind not in _NAMING for token in tokens):
        return Completion(at, at, [])  # in a string, a comment or a number
    if opened and opened in find(dialect).quote_mark:
        start -= 1  # the name is written with its quotes
        end += 1 if text[end : end + 1] == opened else 0
    own = statement_around(tokens, at)
    if opened == ":" and text[start - 2 : start - 1] != ":":
        return Completion(start - 1, end, _parameters(text, prefix))
    items = list(_proposals(own, start, dialect, catalog))
    ranked = _ranked(items, prefix.casefold())
    return Completion(start, end, ranked[:MOST_ITEMS])


_NAMING = frozenset({"word", "op", "quotes", "backtick", "bracket"})


def _proposals(
    own: Sequence[ScopeToken], at: int, dialect: str, catalog: Catalog
) -> Iterator[Item]:
    before = [token for token in own if token.end <= at]
    named = visible_tables(own, at, catalog) or tables_of_statement(own, catalog)
    path = _path(before)
    if path:
        # A name that is not seen from here is of the statement all the same: it is being moved.
        found = [*named, *tables_of_statement(own, catalog)]
        yield from _within(path, found, dialect, catalog)
        return
    word = _clause(before)
    if word in TABLE_WORDS:
        for table in tables_of_with(own, at, catalog):
            yield Item(table.name, _written(table.name, dialect), "table", "of WITH")
        yield from _tables(catalog, dialect, named)
        return
    if word == "ON":
        yield from _joins(named, dialect)
    several = len(named) > 1
    for each in named:
        if each.alias and each.alias != each.table.name:
            yield Item(each.alias, _written(each.alias, dialect), "table", each.table.name)
    for each in named:
        for column in each.table.columns:
            shown = _written(column.name, dialect)
            if several and each.alias and _is_ambiguous(column.name, named):
                shown = f"{_written(each.alias, dialect)}.{shown}"
            about = ": ".join(filter(None, (each.alias, column.type)))
            yield Item(column.name, shown, "column", about)
    for text in _KEYWORDS:
        yield Item(text, text, "keyword")
    for name in sorted(find(dialect).functions):
        yield Item(name, f"{name}(", "function")
    if not named:
        yield from _tables(catalog, dialect, named)


def _within(
    path: Sequence[str], named: Sequence[NamedTable], dialect: str, catalog: Catalog
) -> Iterator[Item]:
    """What comes after a dot: columns of a table, or tables of a schema."""
    last = path[-1].casefold()
    tables = [each.table for each in named if each.alias.casefold() == last]
    if not tables:
        tables = [table for table in catalog.tables if table.name.casefold() == last][:1]
    for table in tables[:1]:
        for column in table.columns:
            yield Item(column.name, _written(column.name, dialect), "column", column.type)
    for table in catalog.tables:
        if table.schema.casefold() == last:
            yield Item(table.name, _written(table.name, dialect), "table", table.kind)


def _tables(catalog: Catalog, dialect: str, named: Sequence[NamedTable]) -> Iterator[Item]:
    """Tables, first those that a foreign key joins with what is there."""
    near = {
        (table.schema, table.name)
        for each in named
        for table in catalog.tables
        if _keys_between(each.table, table)
    }
    tables = sorted(catalog.tables, key=lambda table: (table.schema, table.name) not in near)
    for table in tables:
        shown = _written(table.name, dialect)
        if table.schema != catalog.default_schema:
            shown = f"{_schema_path(table.schema, dialect)}.{shown}"
        yield Item(table.name, shown, "table", f"{table.kind} in {table.schema}")
    for schema in catalog.schemas:
        yield Item(schema, f"{_schema_path(schema, dialect)}.", "schema", "schema")


def _joins(named: Sequence[NamedTable], dialect: str) -> Iterator[Item]:
    """Conditions by the foreign keys between the last table and those before it."""
    if len(named) < 2:
        return
    last = named[-1]
    for other in reversed(named[:-1]):
        for one, two in ((last, other), (other, last)):
            for columns, references in _keys_between(one.table, two.table, both=False):
                condition = " AND ".join(
                    f"{_written(one.alias, dialect)}.{_written(own, dialect)}"
                    f" = {_written(two.alias, dialect)}.{_written(their, dialect)}"
                    for own, their in zip(columns, references, strict=True)
                )
                yield Item(condition, condition, "column", "foreign key")


def _keys_between(
    one: Table, two: Table, *, both: bool = True
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The foreign keys of a table to another, as columns here and there; `both`: or of that."""
    keys = [
        (key.columns, key.references)
        for key in one.foreign_keys
        if key.table == two.name and (key.schema or one.schema) == two.schema
    ]
    return keys + (_keys_between(two, one, both=False) if both else [])


def _ranked(items: Sequence[Item], prefix: str) -> list[Item]:
    """The items that fit what was begun: what starts so, then what has a word that does, then what
    holds it. Their own order counts within."""
    ranks: list[tuple[int, Item]] = []
    seen: set[tuple[str, ItemKind]] = set()
    for item in items:
        label = item.label.casefold()
        if (item.insert, item.kind) in seen:
            continue
        if label.startswith(prefix):
            rank = 0
        elif f"_{prefix}" in label or f" {prefix}" in label:
            rank = 1
        elif prefix in label and item.kind not in ("function", "keyword"):
            rank = 2
        else:
            continue
        seen.add((item.insert, item.kind))
        ranks.append((rank, item))
    ranks.sort(key=lambda pair: pair[0])
    return [item for _, item in ranks]


def _path(before: Sequence[ScopeToken]) -> list[str]:
    """The names with dots before the place, outermost first."""
    names: list[str] = []
    place = len(before) - 1
    while place >= 1 and before[place].text == "." and before[place - 1].is_name:
        if names and before[place].end != before[place + 1].at:
            break
        names.insert(0, before[place - 1].name)
        place -= 2
    return names


def _clause(before: Sequence[ScopeToken]) -> str:
    """The word that says what may come at the place."""
    depth = 0
    for token in reversed(before):
        if token.text == ")":
            depth += 1
        elif token.text == "(":
            if depth == 0:
                return ""
            depth -= 1
        elif depth == 0 and token.kind == "word":
            if token.key in TABLE_WORDS:
                return token.key if _wants_table(before, token) else "SELECT"
            if token.key in _CLAUSES:
                return token.key
    return ""


def _wants_table(before: Sequence[ScopeToken], word: ScopeToken) -> bool:
    """Whether a table is still to come after the word: only the tables of a list are
    there, and a comma last."""
    after = [token for token in before if token.at > word.at]
    return not after or after[-1].text in (",", "(")


def _is_ambiguous(column: str, named: Sequence[NamedTable]) -> bool:
    wanted = column.casefold()
    return (
        sum(any(each.name.casefold() == wanted for each in one.table.columns) for one in named) > 1
    )


def _parameters(text: str, prefix: str) -> list[Item]:
    names = dict.fromkeys(_PARAMETER.findall(text))
    return [
        Item(f":{name}", f":{name}", "parameter")
        for name in names
        if name.startswith(prefix) and name != prefix
    ]


def _schema_path(schema: str, dialect: str) -> str:
    """A schema's name as a statement takes it before a table's."""
    names = schema.split(".") if find(dialect).path_schemas else [schema]
    return ".".join([_written(name, dialect) for name in names])


def _written(name: str, dialect: str) -> str:
    return shortest(name, dialect) if name else ""
