"""Looks for tables of a query that no condition connects, and for joins by columns that nothing
says belong together. Pure.

A JOIN without its condition pairs every row with every row, and a join by a wrong column pairs rows
that have nothing to do with each other. Both run, and both give numbers that look like others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidegate.model.profiles import Place, TableProfile
from tidegate.model.schema import Table
from tidegate.products.pgedge.text_to_sql.binding import BoundColumn, Scope, column_of, equalities
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge
from tidegate.products.pgedge.text_to_sql.model import Check
from tidegate.search.joins import Joins
from tidegate.search.words import split
from tidegate.sql.quoting import identifier, qualified

_QUERIES = ("Select", "Subquery", "Union", "Intersect", "Except")
_FEWEST_COLUMNS = 3
_OUTER = ""
"""The query around, as one end of a condition."""
_LAST_WORDS = frozenset({"id", "key", "code", "no", "nr", "number", "num", "name", "cd", "ref"})


def unconnected(scope: Scope) -> Iterator[Check]:
    """The tables of one query that no condition connects with the others."""
    if type(scope.node).__name__ != "Select" or len(scope.sources) < 2:
        return
    if None in scope.sources.values():
        return  # a function or a list of values: what it gives is not known
    group = {name: name for name in scope.sources}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    def connect(names: set[str]) -> None:
        first, *others = sorted(names)
        for other in others:
            group[root(other)] = root(first)

    for condition in _conditions(scope):
        names = _sources_in(condition, scope)
        if _OUTER in names and _OUTER not in group:
            group[_OUTER] = _OUTER
        if names:
            connect(names)
    for names in _joined_by_name(scope):
        connect(names)
    single = {name for name, known in scope.sources.items() if _has_one_row(known, name, scope)}
    apart: dict[str, list[str]] = {}
    for name in scope.sources:
        if name not in single:
            apart.setdefault(root(name), []).append(name)
    if len(apart) > 1 and not _counts_each(scope):
        parts = [" with ".join(names) for names in apart.values()]
        yield Check(
            "unconnected",
            f"No condition connects {' and '.join(parts)}: each row of one is joined to every row"
            " of the other. Add the condition of the join.",
        )


def _conditions(scope: Scope) -> Iterator[Any]:
    """The parts of ON, WHERE, HAVING and QUALIFY that are combined with AND."""
    node = scope.node
    waiting: list[Any] = [join.args.get("on") for join in node.args.get("joins") or ()]
    for name in ("where", "having", "qualify"):
        clause = node.args.get(name)
        waiting.append(clause.this if clause is not None else None)
    while waiting:
        condition = waiting.pop()
        kind = type(condition).__name__
        if kind == "And":
            waiting += [condition.left, condition.right]
        elif kind == "Paren":
            waiting.append(condition.this)
        elif condition is not None:
            yield condition


def _sources_in(condition: Any, scope: Scope) -> set[str]:
    """The tables whose columns a condition names, also in subqueries. A name that is not clear may
    be of any."""
    names: set[str] = set()
    given = {each.alias_or_name.casefold() for each in getattr(scope.node, "selects", None) or ()}
    for column in condition.find_all(_column_type()):
        source = scope.source_of(column)
        if _is_inside(column, scope.node):
            if column.table and source is not None:
                names.add(source)
        elif source is not None:
            names.add(source)
        elif scope.parent is not None and scope.parent.resolve(column) is not None:
            names.add(_OUTER)
        elif column.table or column.name.casefold() not in given:
            names |= set(scope.sources)
    return names


def _is_inside(node: Any, query: Any) -> bool:
    """Whether a node is in a query inside this one."""
    around = node.parent
    while around is not None and around is not query:
        if type(around).__name__ in _QUERIES:
            return True
        around = around.parent
    return False


def _joined_by_name(scope: Scope) -> Iterator[set[str]]:
    """The tables that USING or NATURAL join."""
    before: list[str] = [_called(scope.node.args.get("from_") or scope.node.args.get("from"))]
    for join in scope.node.args.get("joins") or ():
        called = _called(join)
        if called not in scope.sources:
            continue
        earlier = [name for name in before if name in scope.sources]
        if join.args.get("using"):
            using = {each.name.casefold() for each in join.args["using"]}
            yield {called, *[name for name in earlier if _may_have(scope, name, using)]}
        elif join.args.get("method") == "NATURAL":
            mine = _names_of(scope.sources[called])
            shared = [name for name in earlier if mine & _names_of(scope.sources[name])]
            yield {called, *shared}
        before.append(called)


def _called(clause: Any) -> str:
    return clause.this.alias_or_name.casefold() if clause is not None else ""


def _may_have(scope: Scope, name: str, columns: set[str]) -> bool:
    source = scope.sources[name]
    if isinstance(source, Scope):
        return any(source.may_have(column) for column in columns)
    return bool(columns & _names_of(source))


def _names_of(source: Table | Scope | None) -> set[str]:
    if isinstance(source, Scope):
        return {
            each.alias_or_name.casefold() for each in getattr(source.node, "selects", None) or ()
        }
    return {column.name.casefold() for column in source.columns} if source is not None else set()


def _has_one_row(source: Table | Scope | None, called: str, scope: Scope) -> bool:
    """Whether a table or subquery gives one row at most: to be combined with each other one is then
    what is wanted."""
    if isinstance(source, Table):
        key = {column.name.casefold() for column in source.columns if column.key}
        fixed = {
            side.name.casefold()
            for pair in equalities(scope)
            for side, other in (pair, pair[::-1])
            if type(side).__name__ == "Column"
            and scope.source_of(side) == called
            and other.find(_column_type()) is None
        }
        return bool(key) and key <= fixed
    if source is None:
        return True
    node = source.node
    if type(node).__name__ != "Select":
        return False
    limit = node.args.get("limit")
    if limit is not None and getattr(limit.expression, "name", "") == "1":
        return True
    if any(_gives_rows(each) for each in node.selects):
        return False
    if not node.args.get("from") and not node.args.get("from_"):
        return True
    if node.args.get("group") is not None:
        return False
    if len(source.sources) == 1 and _picks(source):
        return True
    return bool(node.selects) and all(_is_aggregate(each.unalias(), node) for each in node.selects)


def _gives_rows(node: Any) -> bool:
    """Whether a column may give several rows itself, as `generate_series` does."""
    from sqlglot import exp

    kinds = (exp.UDTF, exp.GenerateSeries, exp.Explode, exp.Anonymous)
    return node.find(*kinds) is not None


def _picks(scope: Scope) -> bool:
    """Whether a query takes the rows of its table that have one value: one thing by its name."""
    return any(
        type(side).__name__ == "Column" and other.find(_column_type()) is None
        for pair in equalities(scope)
        for side, other in (pair, pair[::-1])
    )


def _counts_each(scope: Scope) -> bool:
    """Whether a query gives only figures that repeated rows do not change, of each of its tables:
    `SELECT count(DISTINCT a.id), count(DISTINCT b.id) FROM a, b`."""
    from sqlglot import exp

    of: set[str | None] = set()
    for each in scope.node.selects:
        calls = [call for call in each.find_all(exp.AggFunc) if not _is_inside(call, scope.node)]
        columns = [column for call in calls for column in call.find_all(exp.Column)]
        if not calls or len(columns) < len(list(each.find_all(exp.Column))):
            return False
        if not all(isinstance(call, exp.Max | exp.Min) or _is_distinct(call) for call in calls):
            return False
        of |= {scope.source_of(column) for column in columns}
    return of >= set(scope.sources)


def _is_distinct(call: Any) -> bool:
    return type(call.this).__name__ == "Distinct"


def _is_aggregate(node: Any, query: Any) -> bool:
    from sqlglot import exp

    return any(
        type(call.parent).__name__ != "Window" and not _is_inside(call, query)
        for call in node.find_all(exp.AggFunc)
    )


def _column_type() -> Any:
    from sqlglot import exp

    return exp.Column


# Joins by columns that nothing says belong together.


class DoubtfulJoin(msgspec.Struct, frozen=True):
    """A join by columns that no key and no name says belong together. `against` is what speaks
    against it, such as another key between the tables; where it is empty, values may say that they
    do belong together."""

    one: BoundColumn
    other: BoundColumn
    against: str

    def check(self) -> Check:
        """What is said of it."""
        said = f"Nothing says that {self.one.path} and {self.other.path} belong together"
        if self.against:
            return Check("doubtful_join", f"{said}: {self.against}.")
        return Check(
            "doubtful_join", f"{said}: neither a key, nor their names, nor the values of both."
        )

    def probes(self, dialect: str) -> list[str]:
        """Queries of which one gives no row if all values of one column are in the other."""
        return [
            _orphans(one, other, dialect)
            for one, other in ((self.one, self.other), (self.other, self.one))
        ]


def _orphans(one: BoundColumn, other: BoundColumn, dialect: str) -> str:
    places = [qualified(each.table.schema, each.table.name, dialect) for each in (one, other)]
    mine, its = [identifier(each.column.name, dialect) for each in (one, other)]
    return (
        f"SELECT 1 FROM {places[0]} AS a WHERE a.{mine} IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM {places[1]} AS b WHERE b.{its} = a.{mine}) LIMIT 1"
    )


def doubtful_joins(
    scope: Scope,
    joins: Joins,
    knowledge: Knowledge,
    profiles: Mapping[Place, TableProfile],
) -> Iterator[DoubtfulJoin]:
    """Joins of two tables by columns that no key and no name says belong together."""
    pairs: dict[frozenset[str], list[tuple[BoundColumn, BoundColumn]]] = {}
    for left, right in equalities(scope):
        if type(left).__name__ != "Column" or type(right).__name__ != "Column":
            continue
        one, other = scope.resolve(left), scope.resolve(right)
        if one is None or other is None or one.source == other.source:
            continue
        pairs.setdefault(frozenset((one.source, other.source)), []).append((one, other))
    known = {(each.left, each.to) for each in knowledge.joins}
    for ends in pairs.values():
        if any(_belongs(one, other, joins, known, profiles) for one, other in ends):
            continue
        one, other = ends[0]
        key = _better(one.table, other.table, joins, profiles)
        yield DoubtfulJoin(
            one,
            other,
            f"what joins their tables is {key}"
            if key and one.table is not other.table
            else _elsewhere(one, other, joins, profiles),
        )


def _belongs(
    one: BoundColumn,
    other: BoundColumn,
    joins: Joins,
    known: set[tuple[str, str]],
    profiles: Mapping[Place, TableProfile],
) -> bool:
    if one.table is other.table and one.column.name == other.column.name:
        return True
    if (one.path, other.path) in known or (other.path, one.path) in known:
        return True
    if _target(one, joins, profiles) & _ends(other, joins, profiles):
        return True
    if _target(other, joins, profiles) & _ends(one, joins, profiles):
        return True
    words = split(one.column.name)
    if words == split(other.column.name) and not _LAST_WORDS.issuperset(words):
        return True
    between = _better(one.table, other.table, joins, profiles)
    if between and one.table is not other.table:
        return False  # there is a key between these tables, and it is another one
    if _elsewhere(one, other, joins, profiles):
        return False
    return _alike(one, other)


def _elsewhere(
    one: BoundColumn,
    other: BoundColumn,
    joins: Joins,
    profiles: Mapping[Place, TableProfile],
) -> str:
    """What two columns refer to, or are the keys of, where these are different things."""
    shown: list[str] = []
    for end in (one, other):
        targets = sorted(_target(end, joins, profiles))
        if targets:
            shown.append(f"{end.path} refers to {targets[0][1]}.{targets[0][2]}")
        elif end.column.key and sum(bool(each.key) for each in end.table.columns) == 1:
            shown.append(f"{end.path} is the key of {end.table.name}")
    return " and ".join(shown) if len(shown) == 2 else ""


_End = tuple[str, str, str]


def _target(end: BoundColumn, joins: Joins, profiles: Mapping[Place, TableProfile]) -> set[_End]:
    """What a column refers to."""
    table, name = end.table, end.column.name
    found: set[_End] = {
        (key.schema or table.schema, key.table.casefold(), to.casefold())
        for key in table.foreign_keys
        for own, to in zip(key.columns, key.references, strict=False)
        if own.casefold() == name.casefold()
    }
    profile = profiles.get((table.schema, table.name), {}).get(name)
    if profile is not None and profile.joins is not None:
        guessed = list(profile.joins)
    else:
        guessed = [join for own, join in joins.of(table).items() if own == name]
    return found | {(join.schema, join.table.casefold(), join.key.casefold()) for join in guessed}


def _ends(end: BoundColumn, joins: Joins, profiles: Mapping[Place, TableProfile]) -> set[_End]:
    """The column itself, and what it refers to: two that refer to the same belong together."""
    table = end.table
    own = table.schema, table.name.casefold(), end.column.name.casefold()
    return {own, *_target(end, joins, profiles)}


def _better(one: Table, other: Table, joins: Joins, profiles: Mapping[Place, TableProfile]) -> str:
    """A key between two tables, as `table.column = table.column`; empty if none is known."""
    for table, to in ((one, other), (other, one)):
        for column in table.columns:
            end = BoundColumn("", table, column)
            for schema, name, key in sorted(_target(end, joins, profiles)):
                if (schema, name) == (to.schema, to.name.casefold()):
                    found = column_of(to, key)
                    if found is not None:
                        return f"{table.name}.{column.name} = {to.name}.{found.name}"
    for table, to in ((one, other), (other, one)):
        # No key is known: what a table begins with is often one, and has its name elsewhere.
        first = table.columns[0].name if table.columns else ""
        same = column_of(to, first)
        if same is not None and not _LAST_WORDS.issuperset(split(first)):
            return f"{to.name}.{same.name} = {table.name}.{first}"
    for column in one.columns:
        # So is what both call an id of something.
        name = column.name.casefold()
        same = column_of(other, name) if name.endswith("id") else None
        if same is not None and not _LAST_WORDS.issuperset(split(name)):
            return f"{one.name}.{column.name} = {other.name}.{same.name}"
    return ""


def _alike(one: BoundColumn, other: BoundColumn) -> bool:
    """Whether two columns have a telling word in common, or one is called after the table of which
    the other is a key."""
    mine, its = split(one.column.name), split(other.column.name)
    if mine == its:
        return True
    common = _in_each(one.table) | _in_each(other.table)
    if (set(mine) & set(its)) - _LAST_WORDS - common:
        return True
    return any(
        (set(words) & set(split(end.table.name))) - common
        for words, end in ((mine, other), (its, one))
    )


def _in_each(table: Table) -> set[str]:
    """The words that all columns of a table have in their names, which tell nothing."""
    if len(table.columns) < _FEWEST_COLUMNS:
        return set()
    first, *others = [set(split(column.name)) for column in table.columns]
    return first.intersection(*others)
