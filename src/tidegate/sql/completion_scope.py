"""Which tables a statement that is being written sees at a place: those of the catalog, those that
WITH names, and the queries in its FROM, each with its columns. Pure.

The text need not be finished: what cannot be read is skipped, and a bracket that is open reaches to
the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words
from tidegate.sql.token_regex import token_regex

MOST_LEVELS = 40
MOST_COLUMNS = 2_000
"""Queries within queries that are read, and columns of one: each of WITH may have twice as many as
the one before."""
_QUOTED = {"quotes": '"', "backtick": "`", "bracket": "["}
_SKIPPED = frozenset({"comment", "block", "slashes", "end"})
TABLE_WORDS = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE"})
_AFTER_TABLE = words(
    "WHERE ON JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL GROUP ORDER HAVING LIMIT OFFSET UNION"
    " EXCEPT INTERSECT SET USING VALUES SELECT RETURNING WINDOW FETCH FOR"
)
_ARMS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "INSERT", "UPDATE", "DELETE"})
_LIST_ENDS = words("FROM INTO WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW FETCH FOR")


class ScopeToken(NamedTuple):
    """A token of the text, from its first to after its last character."""

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


class NamedTable(NamedTuple):
    """A table that the statement reads, and what it is called there."""

    table: Table
    alias: str


class _Group(NamedTuple):
    """A query in brackets: what is between them, and where they are."""

    tokens: Sequence[ScopeToken]
    at: int
    end: int


_Part = ScopeToken | _Group


def visible_tables(own: Sequence[ScopeToken], at: int, catalog: Catalog) -> list[NamedTable]:
    """The tables that a statement's tokens name and that can be named at a character: first those
    of the innermost query there, then those of the queries around it."""
    return _Scope(catalog).visible(own, at, {}, 0)


def tables_of_statement(own: Sequence[ScopeToken], catalog: Catalog) -> list[NamedTable]:
    """All tables that are named anywhere in a statement."""
    return list(_Scope(catalog).everywhere(own, {}, 0))


def tables_of_with(own: Sequence[ScopeToken], at: int, catalog: Catalog) -> list[Table]:
    """What WITH names at a character."""
    return list(_Scope(catalog).named_there(own, at, {}, 0).values())


class _Scope:
    """Reads queries with the names of one catalog. `known` are the tables of WITH by their name."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._read: dict[tuple[int, int, int], tuple[Mapping[str, Table], list[ColumnInfo]]] = {}
        """The columns of each query by where it is and what it knows, which is kept with them: a
        query in brackets is read for each query around it."""

    def visible(
        self, own: Sequence[ScopeToken], at: int, known: Mapping[str, Table], level: int
    ) -> list[NamedTable]:
        known, parts = self._with(own, known, level, at)
        found = list(self._named(_arm_at(parts, at), known, level))
        place = _around(parts, at)
        if place is None or level >= MOST_LEVELS:
            return found
        inner = cast(_Group, parts[place])
        below = self.visible(inner.tokens, at, known, level + 1)
        if _is_source(parts, place):
            return below
        names = {each.alias for each in below}
        return below + [each for each in found if each.alias not in names]

    def everywhere(
        self, own: Sequence[ScopeToken], known: Mapping[str, Table], level: int
    ) -> Iterator[NamedTable]:
        known, parts = self._with(own, known, level)
        yield from self._named(parts, known, level)
        for each in parts:
            if isinstance(each, _Group) and level < MOST_LEVELS:
                yield from self.everywhere(each.tokens, known, level + 1)

    def named_there(
        self, own: Sequence[ScopeToken], at: int, known: Mapping[str, Table], level: int
    ) -> Mapping[str, Table]:
        known, parts = self._with(own, known, level, at)
        place = _around(parts, at)
        if place is None or level >= MOST_LEVELS:
            return known
        return self.named_there(cast(_Group, parts[place]).tokens, at, known, level + 1)

    def _with(
        self,
        own: Sequence[ScopeToken],
        known: Mapping[str, Table],
        level: int,
        at: int | None = None,
    ) -> tuple[Mapping[str, Table], list[_Part]]:
        """The tables of WITH at the head of a query, and the parts of all of it. One sees those
        before it: around a place in one of them those after it are not known."""
        parts = list(_parts(own))
        if not parts or not _is_word(parts[0], "WITH"):
            return known, parts
        found = dict(known)
        names_itself = len(parts) > 1 and _is_word(parts[1], "RECURSIVE")
        place = 2 if names_itself else 1
        while place < len(parts):
            name = parts[place]
            if isinstance(name, _Group) or not name.is_name:
                break
            listed, place = _column_list(parts, place + 1)
            while place < len(parts) and _is_word(parts[place], "AS", "NOT", "MATERIALIZED"):
                place += 1
            if place >= len(parts) or not isinstance(body := parts[place], _Group):
                break
            is_inside = at is not None and body.at < at <= body.end
            if names_itself or not is_inside:
                columns = _renamed(self._columns(body.tokens, found, level + 1), listed)
                found[name.name.casefold()] = Table("", name.name, "query", tuple(columns))
            if is_inside:
                break
            place += 1
            if place >= len(parts) or not _is_word(parts[place], ","):
                break
            place += 1
        return found, parts

    def _named(
        self, parts: Sequence[_Part], known: Mapping[str, Table], level: int
    ) -> Iterator[NamedTable]:
        """The tables after FROM, JOIN and the like, with their aliases."""
        place, in_list = 0, False
        while place < len(parts):
            part = parts[place]
            if _is_word(part, *TABLE_WORDS) or (in_list and _is_word(part, ",")):
                in_list = True
                place += 1
            else:
                in_list = False
                place += 1
                continue
            while place < len(parts) and _is_word(parts[place], "LATERAL", "ONLY", "("):
                place += 1
            if place < len(parts) and isinstance(query := parts[place], _Group):
                alias, place = _alias(parts, place + 1)
                listed, place = _column_list(parts, place)
                columns = self._columns(query.tokens, known, level + 1)
                table = Table("", alias, "query", tuple(_renamed(columns, listed)))
                yield NamedTable(table, alias)
                continue
            names, place = _name_path(parts, place)
            table = self._table(names, known) if names else None
            if table is None:
                continue
            alias, place = _alias(parts, place)
            yield NamedTable(table, alias or table.name)

    def _table(self, names: Sequence[str], known: Mapping[str, Table]) -> Table | None:
        wanted = names[-1].casefold()
        if len(names) == 1 and wanted in known:
            return known[wanted]
        schema = names[-2].casefold() if len(names) > 1 else None
        alike = [table for table in self._catalog.tables if table.name.casefold() == wanted]
        for table in alike:
            place = self._catalog.default_schema.casefold() if schema is None else schema
            if table.schema.casefold() == place:
                return table
        return alike[0] if alike and schema is None else None

    def _columns(
        self, own: Sequence[ScopeToken], known: Mapping[str, Table], level: int
    ) -> list[ColumnInfo]:
        """The columns of a query: those of its first arm."""
        if level >= MOST_LEVELS or not own:
            return []
        place = own[0].at, id(known), len(known)
        if place not in self._read:
            self._read[place] = known, self._read_columns(own, known, level)
        return self._read[place][1]

    def _read_columns(
        self, own: Sequence[ScopeToken], known: Mapping[str, Table], level: int
    ) -> list[ColumnInfo]:
        known, parts = self._with(own, known, level)
        arm = next(_arms(parts))
        begin = next(
            (at for at, each in enumerate(arm) if _is_word(each, "SELECT", "RETURNING")), None
        )
        if begin is None:
            return []
        named = list(self._named(arm, known, level))
        columns = (
            column for item in _items(arm, begin + 1) for column in _item_columns(item, named)
        )
        return list(islice(columns, MOST_COLUMNS))


def _item_columns(item: Sequence[_Part], named: Sequence[NamedTable]) -> Iterable[ColumnInfo]:
    """The columns that one entry of a SELECT list makes; none where it has no name of its own."""
    last = item[-1]
    if isinstance(last, _Group):
        return []
    path = [each.name for each in item if isinstance(each, ScopeToken) and each.is_name]
    is_path = len(item) == 2 * len(path) - 1 and all(_is_word(each, ".") for each in item[1::2])
    if last.text == "*" and len(item) in (1, 3):
        of = path[-1].casefold() if len(item) == 3 and path else None
        return (
            column
            for each in named
            if of is None or each.alias.casefold() == of
            for column in each.table.columns
        )
    if not last.is_name:
        return []
    if is_path:
        found = _column(path, named)
        return [ColumnInfo(last.name, found.type if found else "")]
    if len(item) > 1 and not _is_word(item[-2], "."):
        aliased = item[:-2] if _is_word(item[-2], "AS") else item[:-1]
        before = [each.name for each in aliased if isinstance(each, ScopeToken) and each.is_name]
        found = _column(before, named) if len(aliased) == 2 * len(before) - 1 else None
        return [ColumnInfo(last.name, found.type if found else "")]
    return []


def _column(path: Sequence[str], named: Sequence[NamedTable]) -> ColumnInfo | None:
    if not path:
        return None
    wanted = path[-1].casefold()
    for each in named:
        if len(path) > 1 and each.alias.casefold() != path[-2].casefold():
            continue
        for column in each.table.columns:
            if column.name.casefold() == wanted:
                return column
    return None


def _renamed(columns: Sequence[ColumnInfo], listed: Sequence[str]) -> list[ColumnInfo]:
    """Columns by the names of a list, which may name fewer; all of it where none are known."""
    known = list(columns) + [ColumnInfo("", "")] * (len(listed) - len(columns))
    return [
        ColumnInfo(listed[at], each.type) if at < len(listed) else each
        for at, each in enumerate(known)
    ]


def _items(arm: Sequence[_Part], place: int) -> Iterator[list[_Part]]:
    """The entries of a SELECT list that begins there."""
    if place < len(arm) and _is_word(arm[place], "DISTINCT", "ALL"):
        place += 1
    if place < len(arm) and _is_word(arm[place], "ON"):
        place = _after_brackets(arm, place + 1)
    item: list[_Part] = []
    depth = 0
    for each in arm[place:]:
        if depth == 0 and _is_word(each, *_LIST_ENDS):
            break
        if depth == 0 and _is_word(each, ","):
            if item:
                yield item
            item = []
            continue
        depth += _is_word(each, "(") - _is_word(each, ")")
        item.append(each)
    if item:
        yield item


def _arms(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """The queries between UNION and its kin."""
    arm: list[_Part] = []
    for each in parts:
        if _is_word(each, *_ARMS):
            yield arm
            arm = []
        arm.append(each)
    yield arm


def _arm_at(parts: Sequence[_Part], at: int) -> list[_Part]:
    """The query between UNION and its kin that a place is in."""
    arms = list(_arms(parts))
    begun = [each for each in arms if each and each[0].at < at]
    return begun[-1] if begun else arms[0]


def _around(parts: Sequence[_Part], at: int) -> int | None:
    """Where the query in brackets is that a place is in."""
    for place, each in enumerate(parts):
        if isinstance(each, _Group) and each.at < at <= each.end:
            return place
    return None


def _is_source(parts: Sequence[_Part], place: int) -> bool:
    """Whether a query in brackets is one of FROM or of WITH, which sees no table beside it."""
    for each in reversed(parts[:place]):
        if _is_word(each, "LATERAL"):
            return False
        if _is_word(each, "FROM", "JOIN", "AS", "MATERIALIZED"):
            return True
        if _is_word(each, *_AFTER_TABLE, "IN", "EXISTS", "ANY", "ALL", "AND", "OR", "NOT", "="):
            return False
    return False


def _parts(own: Sequence[ScopeToken]) -> Iterator[_Part]:
    """Tokens, with each query in brackets as one part. Other brackets are tokens as they are."""
    place = 0
    while place < len(own):
        token = own[place]
        after = own[place + 1] if place + 1 < len(own) else None
        if token.text != "(" or token.kind != "op" or after is None or after.key not in _QUERIES:
            yield token
            place += 1
            continue
        depth, end = 1, place + 1
        while end < len(own) and depth:
            depth += _is_word(own[end], "(") - _is_word(own[end], ")")
            end += 1
        closed = depth == 0
        inside = own[place + 1 : end - 1 if closed else end]
        yield _Group(inside, token.at, own[end - 1].at if closed else _FAR)
        place = end


_FAR = 1 << 60


def _is_word(part: _Part, *keys: str) -> bool:
    """Whether it is one of these words or signs, and not a quoted name."""
    return isinstance(part, ScopeToken) and part.kind in ("word", "op") and part.key in keys


def _after_brackets(parts: Sequence[_Part], place: int) -> int:
    depth = 0
    while place < len(parts):
        depth += _is_word(parts[place], "(") - _is_word(parts[place], ")")
        place += 1
        if depth <= 0:
            break
    return place


def _column_list(parts: Sequence[_Part], place: int) -> tuple[list[str], int]:
    """The names in brackets at a place, or none."""
    if place >= len(parts) or not _is_word(parts[place], "("):
        return [], place
    end = _after_brackets(parts, place)
    inside = parts[place + 1 : end]
    return [each.name for each in inside if isinstance(each, ScopeToken) and each.is_name], end


def _name_path(parts: Sequence[_Part], place: int) -> tuple[list[str], int]:
    names: list[str] = []
    while place < len(parts):
        part = parts[place]
        if isinstance(part, _Group) or not part.is_name or part.key in _AFTER_TABLE:
            break
        names.append(part.name)
        place += 1
        if place >= len(parts) or not _is_word(parts[place], "."):
            break
        place += 1
    return names, place


def _alias(parts: Sequence[_Part], place: int) -> tuple[str, int]:
    if place < len(parts) and _is_word(parts[place], "AS"):
        place += 1
    if place < len(parts):
        part = parts[place]
        if isinstance(part, ScopeToken) and part.is_name and part.key not in _AFTER_TABLE:
            return part.name, place + 1
    return "", place


def scope_tokens(text: str, dialect: str) -> Iterator[ScopeToken]:
    """The tokens of a text that need not be finished: what cannot be read is skipped."""
    rules = find(dialect).lexical_rules
    match = token_regex(rules).match
    position = 0
    while position < len(text):
        found = match(text, position)
        if found is None:
            opened = text[position:].lstrip()[:1]
            if opened == "'" or (opened == '"' and rules.double_quoted == "string"):
                yield ScopeToken("string", "", text.index(opened, position), len(text) + 1)
                return
            position += 1
            continue
        kind, begin, end = found.lastgroup or "end", found.start(found.lastgroup or 0), found.end()
        if kind == "block":
            closing = text.find("*/", begin + 2)
            end = len(text) + 1 if closing < 0 else closing + 2
            yield ScopeToken("string", "", begin, end)
        elif kind == "dollar":
            closing = text.find(found["dollar"], end)
            end = len(text) + 1 if closing < 0 else closing + len(found["dollar"])
            yield ScopeToken("string", "", begin, end)
        elif kind == "comment":
            # What is written at its end is part of it.
            yield ScopeToken("string", "", begin, end + 1)
        elif kind not in _SKIPPED:
            yield ScopeToken(kind, text[begin:end], begin, end)
        position = max(end, position + 1)


def statement_around(tokens: Sequence[ScopeToken], at: int) -> list[ScopeToken]:
    """The tokens of the statement around a character."""
    own: list[ScopeToken] = []
    for token in tokens:
        if token.kind == "op" and token.text == ";":
            if token.at >= at:
                break
            own = []
        elif token.text:
            own.append(token)
    return own
