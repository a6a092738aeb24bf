"""Resolves the names of a statement against the catalog: which columns of which tables it uses.

Databases do this themselves, and their answer counts. But SQLite reads an unknown name in double
quotes as a text, every database takes a name that a subquery lacks from the query around it, and
the checks of `evidence` need to know what a name means. Names that are unclear are not reported.
Pure, except for the import of sqlglot's optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.parse import parse

_DEEPEST = 20
_TOKENS = 10_000


class BoundColumn(msgspec.Struct, frozen=True):
    """A column of a table of the catalog. `source` is what the query calls the table."""

    source: str
    table: Table
    column: ColumnInfo

    @property
    def path(self) -> str:
        return f"{self.table.name}.{self.column.name}"


class Scope:
    """One query of a statement. `sources` are the tables and subqueries of its FROM, by the name
    that they have there; a subquery is a `Scope`, and what cannot be made out is None."""

    def __init__(self, node: Any, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.sources: dict[str, Table | Scope | None] = {}
        self.columns: list[Any] = []

    def resolve(self, column: Any, depth: int = 0) -> BoundColumn | None:
        """The table's column that a column of this query shows, also through subqueries."""
        name, qualifier = column.name.casefold(), column.table.casefold()
        found = self._sources_with(name, qualifier)
        if not found and self.parent is not None and depth < _DEEPEST:
            return self.parent.resolve(column, depth + 1)
        if len(found) != 1 or depth >= _DEEPEST:
            return None
        called, source = found[0]
        if isinstance(source, Table):
            own = column_of(source, name)
            return BoundColumn(called, source, own) if own is not None else None
        if source is None:
            return None
        inner = source.output(name)
        resolved = source.resolve(inner, depth + 1) if inner is not None else None
        return None if resolved is None else msgspec.structs.replace(resolved, source=called)

    def source_of(self, column: Any) -> str | None:
        """What this query calls the table or subquery that a column is of, if that is clear."""
        found = self._sources_with(column.name.casefold(), column.table.casefold())
        return found[0][0] if len(found) == 1 else None

    def output(self, name: str) -> Any:
        """The plain column that this query gives out under a name, if it is one."""
        for each in getattr(self.node, "selects", None) or ():
            if each.alias_or_name.casefold() == name:
                inner = each.unalias()
                return inner if type(inner).__name__ == "Column" else None
        return None

    def may_have(self, name: str) -> bool:
        """Whether this query may give out a column of that name."""
        selects = getattr(self.node, "selects", None)
        if not selects:
            return True
        return any(each.is_star or each.alias_or_name.casefold() == name for each in selects)

    def lacks(self, column: Any) -> bool:
        """Whether no table or subquery here, or around this query, has such a column. False where
        that is not clear."""
        name, qualifier = column.name.casefold(), column.table.casefold()
        scope: Scope | None = self
        while scope is not None:
            if not scope.sources or None in scope.sources.values():
                return False
            if scope._sources_with(name, qualifier):
                return False
            if not qualifier and any(
                type(each).__name__ == "Alias" and each.alias.casefold() == name
                for each in getattr(scope.node, "selects", None) or ()
            ):
                return False
            if qualifier and qualifier in scope.sources:
                return True
            scope = scope.parent
        return True

    def borrows(self, column: Any) -> bool:
        """Whether an unqualified name is of no table here, and of one in the query around."""
        name = column.name.casefold()
        known = bool(self.sources) and None not in self.sources.values()
        if column.table or not known or self._sources_with(name, "") or self.parent is None:
            return False
        return self.parent.resolve(column) is not None

    def _sources_with(self, name: str, qualifier: str) -> list[tuple[str, Table | Scope | None]]:
        found: list[tuple[str, Table | Scope | None]] = []
        for called, source in self.sources.items():
            if qualifier and called != qualifier:
                continue
            if isinstance(source, Table):
                has = column_of(source, name) is not None
            else:
                has = source is None or source.may_have(name)
            if has:
                found.append((called, source))
        return found


class Bound(msgspec.Struct, frozen=True):
    """A statement whose names were looked up. `tables` are those of the catalog that it names, each
    once; `unknown` are columns that no table has, as they are written."""

    tree: Any
    scopes: tuple[Scope, ...]
    tables: tuple[Table, ...]
    unknown: tuple[str, ...]


def bind(sql: str, catalog: Catalog) -> Bound | None:
    """Look up the names of a statement; None if it cannot be read so."""
    try:
        tree: Any = parse(sql, find(catalog.dialect).parser, _TOKENS)
    except Refusal:
        return None
    if type(tree).__name__ not in ("Select", "Union", "Intersect", "Except", "Subquery"):
        return None
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        found: list[Any] = list(traverse_scope(tree))
    except (SqlglotError, RecursionError, AttributeError, ValueError):
        return None
    made: dict[int, Scope] = {id(each): Scope(each.expression, None) for each in found}
    tables: dict[tuple[str, str], Table] = {}
    for each in found:
        scope = made[id(each)]
        if each.parent is not None and not (each.is_derived_table or each.is_cte):
            scope.parent = made.get(id(each.parent))
        for name, source in each.selected_sources.items():
            _, inner = source
            known: Table | Scope | None
            if type(inner).__name__ == "Table":
                known = table_named(inner, catalog)
                if known is not None:
                    tables[known.schema, known.name] = known
                if inner.args.get("alias") is not None and inner.args["alias"].args.get("columns"):
                    known = None
            else:
                known = made.get(id(inner))
            scope.sources[name.casefold()] = known
        scope.columns = [column for column in _own_columns(each.expression) if column.name]
    unknown = [
        column.sql(find(catalog.dialect).parser)
        for scope in made.values()
        for column in scope.columns
        if type(column.this).__name__ == "Identifier" and scope.lacks(column)
    ]
    return Bound(tree, tuple(made.values()), tuple(tables.values()), tuple(dict.fromkeys(unknown)))


def _own_columns(query: Any) -> Iterator[Any]:
    """The columns that a query itself names, outside the queries in it. sqlglot's own list has
    those of inner queries that it cannot place, by the case of letters for instance."""

    def is_inner(node: Any) -> bool:
        return node is not query and type(node).__name__ in ("Select", "Union", "Subquery")

    for node in query.walk(prune=is_inner):
        if type(node).__name__ == "Column":
            yield node


def column_of(table: Table, name: str) -> ColumnInfo | None:
    """The table's column of that name, in any case of letters."""
    for column in table.columns:
        if column.name.casefold() == name.casefold():
            return column
    return None


def table_named(node: Any, catalog: Catalog) -> Table | None:
    """The table that a FROM names: in the schema that it names, or the default one first."""
    name, schema = node.name.casefold(), node.db.casefold()
    found = [table for table in catalog.tables if table.name.casefold() == name]
    if schema:
        found = [table for table in found if table.schema.casefold() == schema]
    own = [table for table in found if table.schema == catalog.default_schema]
    chosen = own or found
    return chosen[0] if len(chosen) == 1 else None


def equalities(scope: Scope) -> Iterator[tuple[Any, Any]]:
    """The pairs of terms that a query holds equal: in its joins and its WHERE, where these are
    combined with AND."""
    node = scope.node
    conditions: list[Any] = []
    for join in node.args.get("joins") or ():
        if join.args.get("on") is not None:
            conditions.append(join.args["on"])
    where = node.args.get("where")
    if where is not None:
        conditions.append(where.this)
    while conditions:
        condition = conditions.pop()
        kind = type(condition).__name__
        if kind == "And":
            conditions += [condition.left, condition.right]
        elif kind == "Paren":
            conditions.append(condition.this)
        elif kind == "EQ":
            yield condition.left, condition.right
    for join in node.args.get("joins") or ():
        for name in join.args.get("using") or ():
            yield from _of_using(name, join, scope)


def _of_using(name: Any, join: Any, scope: Scope) -> Iterator[tuple[Any, Any]]:
    """`USING (x)` as an equality of the joined table's column with that of one before it."""
    from sqlglot import exp

    joined = join.this.alias_or_name
    for called in scope.sources:
        if called == joined.casefold():
            return
        source = scope.sources[called]
        if isinstance(source, Table) and column_of(source, name.name) is not None:
            yield exp.column(name.name, called), exp.column(name.name, joined)
            return
