"""Proposes how a statement goes on, from the names of a catalog. Pure.

The text is read by the lexer that judges it, without being refused for what is not finished yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from tidegate.model.schema import Catalog, Table
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.quoting import shortest
from tidegate.sql.token_regex import token_regex

MOST_ITEMS = 100
MOST_TEXT = 262_144
ItemKind = Literal["table", "column", "schema", "function", "keyword", "source", "parameter"]
_WORD = re.compile(r"[\w$]*\Z")
_REST = re.compile(r"[\w$]*")
_PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_QUOTED = {"quotes": '"', "backtick": "`", "bracket": "["}
_SKIPPED = frozenset({"comment", "block", "slashes", "end"})
_TABLE_WORDS = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE"})
_CLAUSES = words(
    "SELECT WHERE ON HAVING BY SET VALUES AND OR NOT WHEN THEN ELSE CASE USING RETURNING LIMIT"
    " OFFSET UNION EXCEPT INTERSECT"
)
_AFTER_TABLE = words(
    "WHERE ON JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL GROUP ORDER HAVING LIMIT OFFSET UNION"
    " EXCEPT INTERSECT SET USING VALUES SELECT RETURNING WINDOW FETCH FOR"
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


class _Token(NamedTuple):
    kind: str
    text: str
    at: int
    end: int

    @property
    def key(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quotes", "backtick", "bracket")

    @property
    def name(self) -> str:
        mark = _QUOTED.get(self.kind)
        if mark is None:
            return self.text
        return self.text[1:-1].replace(mark * 2, mark)


class _Named(NamedTuple):
    """A table that the statement reads, and what it is called there."""

    table: Table
    alias: str


def complete(text: str, at: int, dialect: str, catalog: Catalog) -> Completion:
    """The proposals at a character of a text."""
    at = max(0, min(at, len(text)))
    found = _WORD.search(text[:at])
    start = found.start() if found else at
    rest = _REST.match(text, at)
    end = rest.end() if rest else at
    opened = text[start - 1 : start]
    prefix = text[start:at]
    tokens = list(_tokens(text, dialect))
    if any(token.at < at < token.end and token.kind not in _NAMING for token in tokens):
        return Completion(at, at, [])  # in a string, a comment or a number
    if opened and opened in find(dialect).quote_mark:
        start -= 1  # the name is written with its quotes
        end += 1 if text[end : end + 1] == opened else 0
    own = _statement(tokens, at)
    if opened == ":" and text[start - 2 : start - 1] != ":":
        return Completion(start - 1, end, _parameters(text, prefix))
    before = [token for token in own if token.end <= start]
    items = list(_proposals(own, before, dialect, catalog))
    ranked = _ranked(items, prefix.casefold())
    return Completion(start, end, ranked[:MOST_ITEMS])


_NAMING = frozenset({"word", "op", "quotes", "backtick", "bracket"})


def _proposals(
    own: Sequence[_Token], before: Sequence[_Token], dialect: str, catalog: Catalog
) -> Iterator[Item]:
    named = _named_tables(own, catalog)
    path = _path(before)
    if path:
        yield from _within(path, named, dialect, catalog)
        return
    word = _clause(before)
    if word in _TABLE_WORDS:
        yield from _tables(catalog, dialect, named)
        return
    if word == "ON":
        yield from _joins(named, dialect)
    several = len(named) > 1
    for each in named:
        if each.alias != each.table.name:
            yield Item(each.alias, _written(each.alias, dialect), "table", each.table.name)
    for each in named:
        for column in each.table.columns:
            shown = _written(column.name, dialect)
            if several and _is_ambiguous(column.name, named):
                shown = f"{_written(each.alias, dialect)}.{shown}"
            yield Item(column.name, shown, "column", f"{each.alias}: {column.type}")
    for text in _KEYWORDS:
        yield Item(text, text, "keyword")
    for name in sorted(find(dialect).functions):
        yield Item(name, f"{name}(", "function")
    if not named:
        yield from _tables(catalog, dialect, named)


def _within(
    path: Sequence[str], named: Sequence[_Named], dialect: str, catalog: Catalog
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


def _tables(catalog: Catalog, dialect: str, named: Sequence[_Named]) -> Iterator[Item]:
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


def _joins(named: Sequence[_Named], dialect: str) -> Iterator[Item]:
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


def _tokens(text: str, dialect: str) -> Iterator[_Token]:
    """The tokens of a text that need not be finished: what cannot be read is skipped."""
    rules = find(dialect).lexical_rules
    match = token_regex(rules).match
    position = 0
    while position < len(text):
        found = match(text, position)
        if found is None:
            opened = text[position:].lstrip()[:1]
            if opened == "'" or (opened == '"' and rules.double_quoted == "string"):
                yield _Token("string", "", text.index(opened, position), len(text) + 1)
                return
            position += 1
            continue
        kind, begin, end = found.lastgroup or "end", found.start(found.lastgroup or 0), found.end()
        if kind == "block":
            closing = text.find("*/", begin + 2)
            end = len(text) + 1 if closing < 0 else closing + 2
            yield _Token("string", "", begin, end)
        elif kind == "dollar":
            closing = text.find(found["dollar"], end)
            end = len(text) + 1 if closing < 0 else closing + len(found["dollar"])
            yield _Token("string", "", begin, end)
        elif kind == "comment":
            yield _Token("string", "", begin, end + 1)  # what is written at its end is part of it
        elif kind not in _SKIPPED:
            yield _Token(kind, text[begin:end], begin, end)
        position = max(end, position + 1)


def _statement(tokens: Sequence[_Token], at: int) -> list[_Token]:
    """The tokens of the statement around a character."""
    own: list[_Token] = []
    for token in tokens:
        if token.kind == "op" and token.text == ";":
            if token.at >= at:
                break
            own = []
        elif token.text:
            own.append(token)
    return own


def _path(before: Sequence[_Token]) -> list[str]:
    """The names with dots before the place, outermost first."""
    names: list[str] = []
    place = len(before) - 1
    while place >= 1 and before[place].text == "." and before[place - 1].is_name:
        if names and before[place].end != before[place + 1].at:
            break
        names.insert(0, before[place - 1].name)
        place -= 2
    return names


def _clause(before: Sequence[_Token]) -> str:
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
            if token.key in _TABLE_WORDS:
                return token.key if _wants_table(before, token) else "SELECT"
            if token.key in _CLAUSES:
                return token.key
    return ""


def _wants_table(before: Sequence[_Token], word: _Token) -> bool:
    """Whether a table is still to come after the word: only the tables of a list are
    there, and a comma last."""
    after = [token for token in before if token.at > word.at]
    return not after or after[-1].text in (",", "(")


def _named_tables(own: Sequence[_Token], catalog: Catalog) -> list[_Named]:
    """The tables of the statement that the catalog knows, with their aliases."""
    found: list[_Named] = []
    place = 0
    in_list = False
    while place < len(own):
        token = own[place]
        if token.kind == "word" and token.key in _TABLE_WORDS:
            in_list = True
            place += 1
        elif in_list and token.text == ",":
            place += 1
        else:
            in_list = False
            place += 1
            continue
        names, place = _name_path(own, place)
        table = _table(names, catalog) if names else None
        if table is None:
            continue
        alias, place = _alias(own, place)
        found.append(_Named(table, alias or table.name))
    return found


def _name_path(own: Sequence[_Token], place: int) -> tuple[list[str], int]:
    names: list[str] = []
    while place < len(own) and own[place].is_name and own[place].key not in _AFTER_TABLE:
        names.append(own[place].name)
        place += 1
        if place >= len(own) or own[place].text != ".":
            break
        place += 1
    return names, place


def _alias(own: Sequence[_Token], place: int) -> tuple[str, int]:
    if place < len(own) and own[place].key == "AS":
        place += 1
    if place < len(own) and own[place].is_name and own[place].key not in _AFTER_TABLE:
        return own[place].name, place + 1
    return "", place


def _table(names: Sequence[str], catalog: Catalog) -> Table | None:
    wanted = names[-1].casefold()
    schema = names[-2].casefold() if len(names) > 1 else None
    alike = [table for table in catalog.tables if table.name.casefold() == wanted]
    for table in alike:
        place = catalog.default_schema.casefold() if schema is None else schema
        if table.schema.casefold() == place:
            return table
    return alike[0] if alike and schema is None else None


def _is_ambiguous(column: str, named: Sequence[_Named]) -> bool:
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
