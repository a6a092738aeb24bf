"""How many terms a query has once its nested queries are written out in the one around them.

Databases merge a nested query into its parent, and put its expressions wherever the parent names
its columns. Twenty queries of which each doubles the one inside become a million terms, before
anything runs and before any time limit holds. This module computes an upper bound of the growth in
one walk of the tree. Names that cannot be resolved count as plain columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.finding import Finding
from tidegate.sql.lex import Token

MOST_TERMS = 20_000
"""Preparing this many takes SQLite some 20 ms and 3 MB. Ordinary reports stay below a thousand."""

SHORT = 400
"""Tokens of which one query alone cannot make more: a quarter of them may each repeat a quarter."""

_SET_OPERATIONS = frozenset({"Union", "Intersect", "Except"})
_QUERIES = _SET_OPERATIONS | {"Select", "Subquery"}
_POSITIONED = frozenset({"Order", "Group"})


class _Shape(NamedTuple):
    """A query: the terms of each column by name, in order, and of all of it."""

    columns: dict[str, int]
    terms: int

    def renamed(self, names: Sequence[str]) -> _Shape:
        """With the column names of an alias, where it gives any."""
        if not names:
            return self
        costs = list(self.columns.values())
        costs += [max(costs, default=1)] * (len(names) - len(costs))
        return _Shape(dict(zip(names, costs, strict=False)), self.terms)


_UNKNOWN = _Shape({}, 1)
"""A table of the database, or a query that refers to itself."""


class _Scope:
    """What a name may mean in one SELECT."""

    def __init__(self, queries: dict[str, _Shape], outer: _Scope | None) -> None:
        self.queries = queries
        self.outer = outer
        self.sources: dict[str, _Shape] = {}
        self.aliases: dict[str, int] = {}
        self.windows = 0
        self.largest = 1

    def column(self, table: str, name: str) -> int:
        """The terms of a column, from the nearest scope that knows it."""
        scope: _Scope | None = self
        while scope is not None:
            if table:
                found = scope.sources.get(table)
                if found is not None:
                    return found.columns.get(name, 1)
            else:
                costs = [shape.columns.get(name, 0) for shape in scope.sources.values()]
                cost = max([*costs, scope.aliases.get(name, 0)])
                if cost:
                    return cost
            scope = scope.outer
        return 1


def can_grow(tokens: list[Token]) -> bool:
    """Whether it is worth the walk: what is short, and nests nothing, cannot become large."""
    return len(tokens) > SHORT or sum(token.key == "SELECT" for token in tokens) > 1


def stays_small(tokens: list[Token]) -> bool:
    """Whether the bound holds for any statement with so many tokens and queries.

    A query cannot repeat the terms of the queries inside it more often than it has tokens, so the
    product of the tokens of all queries is an upper bound, largest when all are equally long.
    """
    queries = max(1, sum(token.key == "SELECT" for token in tokens))
    return len(tokens) <= SHORT and (len(tokens) / queries) ** queries <= MOST_TERMS


def exceeds_limit(tree: Any, names: dict[str, str]) -> list[Finding]:
    """The opinion on a tree with too many terms, none on any other. `names` maps placeholders
    back to the names that they replace."""
    terms = _Walk(names).terms(tree, _Scope({}, None))
    if terms <= MOST_TERMS:
        return []
    return [
        Finding(
            Effect.UNKNOWN,
            "text.growth",
            f"Written out, the queries inside the statement make more than {MOST_TERMS:,} terms",
            Code.SQL_TOO_DEEP,
            "Repeat the columns of nested queries less often, or split the statement.",
        )
    ]


class _Walk:
    """One walk over a tree."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def terms(self, node: Any, scope: _Scope) -> int:
        """The terms of an expression or a clause."""
        total = 0
        waiting = [node]
        while waiting and total <= MOST_TERMS:
            node = waiting.pop()
            kind = type(node).__name__
            if kind in _QUERIES:
                total += self._query(node, scope).terms
            elif kind == "Column":
                total += scope.column(self._fold(node.table), self._fold(node.name))
            else:
                total += scope.windows if kind == "Window" and node.args.get("alias") else 1
                waiting.extend(node.iter_expressions())
                if kind in _POSITIONED:
                    total += scope.largest * sum(map(_is_position, node.expressions))
        return total

    def _query(self, node: Any, outer: _Scope) -> _Shape:
        scope = _Scope(self._named(node, outer), outer)
        kind = type(node).__name__
        if kind == "Select":
            return self._select(node, scope)
        if kind in _SET_OPERATIONS:
            return self._arms(node, scope)
        if kind != "Subquery":
            return _Shape({}, self._terms_of(node, ("with_",), scope))
        inner = self._query(node.this, scope)
        beside = self._terms_of(node, ("this", "with_", "alias"), scope)
        return _Shape(inner.columns, inner.terms + beside)

    def _named(self, node: Any, outer: _Scope) -> dict[str, _Shape]:
        """The queries that may be referred to by name, with those that the node itself names."""
        with_ = node.args.get("with_")
        if with_ is None:
            return outer.queries
        queries = dict(outer.queries)
        for cte in with_.expressions:
            name = self._fold(cte.alias)
            queries[name] = _UNKNOWN  # while it is read it can only mean its own rows
            shape = self._query(cte.this, _Scope(queries, outer))
            queries[name] = shape.renamed(self._columns_of(cte))
        return queries

    def _arms(self, node: Any, scope: _Scope) -> _Shape:
        """A chain of UNIONs and the like, however long: it leans to the left."""
        arms: list[_Shape] = []
        more = 0
        while type(node).__name__ in _SET_OPERATIONS:
            arms.append(self._query(node.expression, scope))
            more += self._terms_of(node, ("this", "expression", "with_"), scope)
            node = node.this
        first = self._query(node, scope)
        columns = first.columns
        for arm in arms:
            columns = _wider(columns, arm.columns)
        return _Shape(columns, first.terms + more + sum(arm.terms for arm in arms))

    def _select(self, node: Any, scope: _Scope) -> _Shape:
        from_ = node.args.get("from_")
        joins = node.args.get("joins") or ()
        total = 0 if from_ is None else self._add(from_.this, scope)
        total += sum(self._add(join.this, scope) for join in joins)
        scope.windows = sum(self.terms(window, scope) for window in node.args.get("windows") or ())
        columns: dict[str, int] = {}
        for expression in node.expressions:
            if expression.is_star:
                for shape in scope.sources.values():
                    columns.update(shape.columns)
                    total += sum(shape.columns.values())
                continue
            cost = self.terms(expression, scope)
            total += cost
            columns[self._fold(expression.alias_or_name) or f" {len(columns)}"] = cost
        scope.aliases = columns
        scope.largest = max(columns.values(), default=1)
        for join in joins:
            total += self._terms_of(join, ("this",), scope)
        total += self._terms_of(node, ("expressions", "from_", "joins", "with_"), scope)
        return _Shape(columns, total)

    def _add(self, node: Any, scope: _Scope) -> int:
        """Make the columns of a FROM's table, query or bracket known; the terms of it."""
        kind = type(node).__name__
        before = set(scope.sources)
        if kind == "Subquery" and type(node.this).__name__ in ("Table", "Subquery"):
            terms = self._add(node.this, scope)
            columns = {
                column: cost
                for name, shape in scope.sources.items()
                if name not in before
                for column, cost in shape.columns.items()
            }
            shape = _Shape(columns, terms)
        elif kind in _QUERIES:
            shape = self._query(node, scope)
        elif kind == "Table" and not node.db and type(node.this).__name__ == "Identifier":
            shape = scope.queries.get(self._fold(node.name), _UNKNOWN)
        else:
            shape = _Shape({}, self._terms_of(node, ("joins", "alias"), scope))
        name = self._fold(node.alias_or_name) or f" {len(before)}"
        scope.sources[name] = shape.renamed(self._columns_of(node))
        inside = 0
        for join in node.args.get("joins") or ():
            inside += self._add(join.this, scope)
            inside += self._terms_of(join, ("this",), scope)
        return shape.terms + inside

    def _terms_of(self, node: Any, without: tuple[str, ...], scope: _Scope) -> int:
        """The terms of a node's parts, except those named."""
        return sum(
            self.terms(part, scope)
            for name, value in node.args.items()
            if name not in without
            for part in _nodes(value)
        )

    def _columns_of(self, node: Any) -> list[str]:
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if hasattr(alias, "args") else None
        return [self._fold(column.name) for column in columns or ()]

    def _fold(self, name: str) -> str:
        return self._names.get(name, name).lower()


def _nodes(value: Any) -> list[Any]:
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [part for part in parts if hasattr(part, "iter_expressions")]


def _is_position(node: Any) -> bool:
    while type(node).__name__ == "Ordered":
        node = node.this
    return type(node).__name__ == "Literal"


def _wider(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """The names of the first, each with the larger cost; by place where both tell all columns."""
    costs = list(other.values())
    most = max(costs, default=0)
    return {
        name: max(cost, costs[place] if place < len(costs) else most)
        for place, (name, cost) in enumerate(one.items())
    } or dict(other)
