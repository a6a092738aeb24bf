"""Finds the names of a statement that nothing in its text explains: where functions are called
without brackets, as in Oracle, such a name is a column, a function or a variable of a package.

Each name is resolved as the database does it: among what the query's own sources give, then in
the queries around it. What a subquery, a common table expression or an alias defines is known here;
for the rest the tables are named among whose columns the name must be. What this module does not
understand explains nothing, so that it is refused. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tidegate.errors import Code
from tidegate.sql.dialect_shims import apply_shims, shorten
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.function_syntax import simplify
from tidegate.sql.lex import Token
from tidegate.sql.normalization import normalize
from tidegate.sql.parse import parse
from tidegate.sql.scan import scan

_ORACLE = frozenset(
    {"CONNECT_BY_ISCYCLE", "CONNECT_BY_ISLEAF", "DBTIMEZONE", "DEFAULT", "LEVEL", "LOCALTIMESTAMP"}
    | {"CURRENT_DATE", "CURRENT_TIMESTAMP", "ORA_ROWSCN", "ROWID", "ROWNUM", "SESSIONTIMEZONE"}
    | {"SYSDATE", "SYSTIMESTAMP", "UID", "USER"}
)
"""What Oracle gives without a table, and no function of a user replaces."""

_ELSEWHERE = frozenset(
    {"CURRENT", "CURRENT_CATALOG", "CURRENT_PATH", "CURRENT_ROLE", "CURRENT_SCHEMA", "CURRENT_TIME"}
    | {"CURRENT_TIMEZONE", "CURRENT_USER", "LOCALTIME", "SESSION_USER", "SYSTEM_USER"}
)
"""The like of other databases. Oracle has no such words: there they are names as any other."""

_SPECIAL = ("Current", "Local", "Session", "Utc")
_LISTED_NODES = frozenset({"CurrentDate", "CurrentTimestamp", "Localtimestamp"})
_OF_ROWS = frozenset({"ORA_ROWSCN", "ROWID"})
_QUERIES = frozenset({"Select", "Union", "Intersect", "Except", "Subquery"})
_NAMED = frozenset({"Alias", "Aliases", "PivotAlias"})
_DECLARED = frozenset({"ColumnDef", "JSONColumnDef"})
_VALUELESS = frozenset({"DataType", "Placeholder", "Parameter", "TableAlias", "Table", "Schema"})


class TableName(NamedTuple):
    """A table as the statement names it; `schema` is empty if it names none. Names without quotes
    are in upper case."""

    schema: str
    name: str


class BareName(NamedTuple):
    """A name that must be a column of one of `tables`, or else may be a call. `shown` is how the
    statement has it; `name` is in upper case unless it is `quoted`."""

    shown: str
    name: str
    quoted: bool
    tables: tuple[TableName, ...]


class _Source(NamedTuple):
    """What a table or query in FROM gives: names that the text defines, and columns of tables.
    `without` are columns that a PIVOT has used up."""

    names: frozenset[str] = frozenset()
    tables: tuple[TableName, ...] = ()
    without: frozenset[str] = frozenset()


class _Scope(NamedTuple):
    """The sources of one query by how they are called, and the query around it."""

    sources: Mapping[str, _Source]
    outer: _Scope | None = None


_Queries = Mapping[str, _Source]
"""Common table expressions by name."""


@lru_cache(maxsize=256)
def bare_names(text: str, dialect: str) -> tuple[BareName, ...]:
    """The names that the text itself does not explain, each once. Raises: Refusal for a text that
    cannot be read."""
    rules = find(dialect)
    tokens = _query_of(scan(text, rules))
    if not tokens:
        return ()
    shorter = simplify(shorten(tokens), rules.worded)
    plain, names = normalize(apply_shims(shorter, rules), rules)
    finder = _Finder(names, is_oracle=dialect == "oracle")
    try:
        finder.statement(parse(plain, rules.parser, len(tokens)))
    except RecursionError:
        raise Refusal(
            Code.SQL_TOO_DEEP, "tree.depth", "The statement nests too deep to be read"
        ) from None
    return tuple(finder.found)


def _query_of(tokens: list[Token]) -> list[Token]:
    """The tokens that hold values: of a definition its query, if it has one."""
    if tokens[0].key not in ("CREATE", "ALTER", "DROP", "EXPLAIN"):
        return tokens
    for at, token in enumerate(tokens):
        if token.key not in ("SELECT", "WITH"):
            continue
        first = at
        while tokens[first - 1].key == "(":
            first -= 1
        if tokens[first - 1].key == "AS":
            return tokens[first:]
    return []


class _Finder:
    """Goes over one tree."""

    def __init__(self, placeholders: Mapping[str, str], *, is_oracle: bool) -> None:
        self._placeholders = placeholders
        self._is_oracle = is_oracle
        self._listed = _ORACLE if is_oracle else _ORACLE | _ELSEWHERE
        self.found: dict[BareName, None] = {}

    def statement(self, tree: Any) -> None:
        kind = type(tree).__name__
        if kind in _QUERIES:
            self._query(tree, None, {})
            return
        queries = self._with(tree, None, {})
        if kind == "Insert":
            self._insert(tree, queries)
        elif kind in ("Update", "Delete", "Merge"):
            self._change(tree, queries)
        else:
            self._walk(tree, _Scope({}), queries)

    def _insert(self, tree: Any, queries: _Queries) -> None:
        target = tree.this.this if type(tree.this).__name__ == "Schema" else tree.this
        values = tree.args.get("expression")
        if values is not None:
            self._walk(values, _Scope({}), queries)
        rows: dict[str, _Source] = {}
        self._add(target, rows, None, {})
        for name in ("returning", "conflict", "settings", "where"):
            self._walk(tree.args.get(name), _Scope(rows), queries)

    def _change(self, tree: Any, queries: _Queries) -> None:
        """UPDATE, DELETE and MERGE."""
        sources: dict[str, _Source] = {}
        self._add(tree.this, sources, None, {})
        from_ = tree.args.get("from_")
        using = tree.args.get("using")
        for source in (using,) if hasattr(using, "args") else using or ():
            self._add(source, sources, None, queries)
        if from_ is not None:
            self._add(from_.this, sources, None, queries)
        scope = _Scope(sources)
        for name, value in tree.args.items():
            if name == "expressions":
                self._assignments(value, scope, queries)
            elif name == "whens":
                for when in value.expressions:
                    self._walk(when.args.get("condition"), scope, queries)
                    self._then(when.args.get("then"), scope, queries)
            elif name not in ("this", "using", "from_", "with_"):
                self._walk(value, scope, queries)

    def _then(self, then: Any, scope: _Scope, queries: _Queries) -> None:
        kind = type(then).__name__
        if kind == "Update":
            self._assignments(then.expressions, scope, queries)
            self._walk(then.args.get("where"), scope, queries)
        elif kind == "Insert":
            self._walk(then.args.get("expression"), scope, queries)
            self._walk(then.args.get("where"), scope, queries)
        elif kind != "Var":
            self._walk(then, scope, queries)

    def _assignments(self, values: Sequence[Any], scope: _Scope, queries: _Queries) -> None:
        for each in values:
            # The left side can only be a column.
            value = each.expression if type(each).__name__ == "EQ" else each
            self._walk(value, scope, queries)

    def _query(self, node: Any, outer: _Scope | None, queries: _Queries) -> _Source:
        """Read a query; returns what it gives."""
        queries = self._with(node, outer, queries)
        kind = type(node).__name__
        if kind == "Select":
            return self._select(node, outer, queries)
        if kind == "Subquery":
            given = self._query(node.this, outer, queries)
        else:
            given = self._query(node.left, outer, queries)
            self._query(node.right, outer, queries)
        rows = _Scope({"": given}, outer)
        for name, value in node.args.items():
            if name not in ("this", "expression", "with_", "alias", "pivots"):
                self._walk(value, rows, queries)
        return given

    def _with(self, node: Any, outer: _Scope | None, queries: _Queries) -> _Queries:
        with_ = node.args.get("with_")
        if with_ is None:
            return queries
        known = dict(queries)
        for each in with_.expressions:
            name = self._text(each.args["alias"].this)
            columns = self._columns(each)
            # It may name itself, and then must list its columns.
            known[name] = _Source(columns)
            given = _Source()
            if type(each.this).__name__ in _QUERIES:
                given = self._query(each.this, None, known)
            else:
                self._walk(each.this, _Scope({}), known)
            known[name] = _Source(columns) if columns else given
        return known

    _given = _Source()
    """What the query gives that `_walk` read last."""

    def _select(self, node: Any, outer: _Scope | None, queries: _Queries) -> _Source:
        sources: dict[str, _Source] = {}
        joined: dict[str, _Source] = {}
        from_ = node.args.get("from_")
        if from_ is not None:
            self._add(from_.this, joined, outer, queries)
            sources |= joined
        for join in node.args.get("joins") or ():
            if not any(join.args.get(each) for each in ("on", "using", "kind", "side", "method")):
                joined = {}  # after a comma: its conditions see nothing of what was before
            self._join(join, joined, outer, queries)
            sources |= joined
        for lateral in node.args.get("laterals") or ():
            self._add(lateral, sources, outer, queries)
        scope = _Scope(sources, outer)
        given: set[str] = set()
        tables: list[TableName] = []
        without: set[str] = set()
        for each in node.expressions:
            self._walk(each, scope, queries)
            kind = type(each).__name__
            starred = kind == "Star" or (kind == "Column" and type(each.this).__name__ == "Star")
            if starred:
                named = each.args.get("table")
                own = [sources[key]] if named and (key := self._text(named)) in sources else []
                for source in own if named else sources.values():
                    given |= source.names
                    tables += source.tables
                    without |= source.without
            elif kind == "Alias":
                given.add(self._text(each.args["alias"]))
            elif kind == "Column":
                given.add(self._text(each.this))
        aliases = {
            self._text(each.args["alias"])
            for each in node.expressions
            if type(each).__name__ == "Alias"
        }
        ordered = _Scope({**sources, "": _Source(frozenset(aliases))}, outer)
        for name, value in node.args.items():
            if name == "order":
                self._walk(value, ordered, queries)
            elif name not in ("with_", "from_", "joins", "laterals", "expressions", "into"):
                self._walk(value, scope, queries)
        return _Source(frozenset(given), tuple(dict.fromkeys(tables)), frozenset(without))

    def _join(
        self, join: Any, joined: dict[str, _Source], outer: _Scope | None, queries: _Queries
    ) -> None:
        self._add(join.this, joined, outer, queries)
        self._walk(join.args.get("on"), _Scope(dict(joined), outer), queries)

    def _add(
        self, node: Any, sources: dict[str, _Source], outer: _Scope | None, queries: _Queries
    ) -> None:
        """Add what is in FROM to the sources beside it."""
        kind = type(node).__name__
        inner = node.this
        own: str | None = None
        if kind == "Table" and type(inner).__name__ == "Identifier":
            schema = node.args.get("db")
            own = self._text(inner)
            if schema is None and own in queries:
                given = queries[own]
            else:
                given = _Source(tables=(TableName(self._text(schema) if schema else "", own),))
            if node.args.get("catalog") is not None:
                given = _Source()
        elif kind in _QUERIES and type(inner).__name__ in _QUERIES | {"Values"}:
            given = self._query(inner, None, self._with(node, None, queries))
        elif kind in ("Subquery", "Paren") and inner is not None:
            self._add(inner, sources, outer, queries)  # brackets around a join
            for join in node.args.get("joins") or ():
                self._join(join, sources, outer, queries)
            return
        else:
            # A function, LATERAL and the like: they see what precedes them.
            here = _Scope(dict(sources), outer)
            self._walk(inner, here, queries)
            declared = {
                self._text(each.this)
                for each in node.walk()
                if type(each).__name__ in _DECLARED and each.this is not None
            }
            given = self._given if type(inner).__name__ in _QUERIES else _Source()
            given = given._replace(names=given.names | declared | {"COLUMN_VALUE"})
        columns = self._columns(node)
        if columns:
            given = _Source(columns)
        for pivot in node.args.get("pivots") or ():
            given = self._pivot(pivot, given, outer, queries)
        alias = node.args.get("alias")
        called = alias.this if alias is not None else None
        key = self._text(called) if called is not None else own
        # Without a name nothing can be taken from it by one.
        sources[key if key is not None else f"\0{len(sources)}"] = given
        for join in node.args.get("joins") or ():
            self._join(join, sources, outer, queries)

    def _pivot(
        self, pivot: Any, given: _Source, outer: _Scope | None, queries: _Queries
    ) -> _Source:
        used = {self._text(each.this) for each in pivot.walk() if type(each).__name__ == "Column"}
        names = {
            self._text(each.args["alias"])
            for each in pivot.walk()
            if type(each).__name__ in _NAMED and each.args.get("alias") is not None
        }
        scope = _Scope({"": given}, outer)
        if pivot.args.get("unpivot"):
            made = self._unpivoted(pivot)
            return _Source((given.names - used) | made, given.tables, given.without | used)
        for name in ("expressions", "fields"):
            self._walk(pivot.args.get(name), scope, queries)
        return _Source((given.names - used) | names, given.tables, given.without | used)

    def _unpivoted(self, pivot: Any) -> set[str]:
        """The columns that UNPIVOT makes, of values and of their names; not its alias."""
        heads = [*pivot.args["expressions"], *(each.this for each in pivot.args["fields"])]
        return {
            self._text(each)
            for head in heads
            for each in (head.expressions if type(head).__name__ == "Tuple" else [head])
            if type(each).__name__ == "Identifier"
        }

    def _walk(self, node: Any, scope: _Scope, queries: _Queries) -> None:
        """Read an expression."""
        if isinstance(node, list):
            for each in node:  # pyright: ignore[reportUnknownVariableType]
                self._walk(each, scope, queries)
            return
        kind = type(node).__name__
        if node is None or not hasattr(node, "args") or kind in _VALUELESS:
            return
        if kind in _QUERIES and (kind != "Subquery" or type(node.this).__name__ in _QUERIES):
            self._given = self._query(node, scope, queries)
        elif kind == "Column":
            self._column(node, scope)
        elif self._is_oracle and kind.startswith(_SPECIAL) and kind not in _LISTED_NODES:
            name = node.sql()
            self.found[BareName(name, name.upper(), False, ())] = None
        elif kind == "Identifier":
            self._note(self._text(node), node, (), self._shown([node]))
        elif kind == "Dot":
            self._walk(node.this, scope, queries)
            if type(node.expression).__name__ != "Identifier":
                self._walk(node.expression, scope, queries)
        elif kind in ("Kwarg", "PropertyEQ"):
            self._walk(node.expression, scope, queries)
        elif kind in _NAMED:
            self._walk(node.this, scope, queries)
        else:
            declares = kind in _DECLARED
            for name, value in node.args.items():
                if name != "alias" and not (declares and name == "this"):
                    self._walk(value, scope, queries)

    def _column(self, node: Any, scope: _Scope) -> None:
        parts = [
            node.args[each] for each in ("catalog", "db", "table", "this") if node.args.get(each)
        ]
        if type(parts[-1]).__name__ == "Star":
            return
        shown = self._shown(parts)
        if len(parts) == 1:
            self._unqualified(parts[0], scope, shown)
            return
        first, second = self._text(parts[0]), self._text(parts[1])
        place: _Scope | None = scope
        while place is not None:
            source = place.sources.get(first) if first else None
            if source is not None:
                # After a column come attributes of its value.
                self._of(source, parts[1], shown)
                return
            if len(parts) > 2:
                table = TableName(first, second)
                source = place.sources.get(second)
                if source is not None and source.tables == (table,):
                    self._of(source, parts[2], shown)
                    return
            place = place.outer
        self._note(second, parts[-1], (), shown)

    def _of(self, source: _Source, part: Any, shown: str) -> None:
        name = self._text(part)
        if name in source.names or (name in _OF_ROWS and not part.args.get("quoted")):
            return
        self._note(name, part, () if name in source.without else source.tables, shown)

    def _unqualified(self, part: Any, scope: _Scope, shown: str) -> None:
        name = self._text(part)
        if name in self._listed and not part.args.get("quoted"):
            return
        tables: dict[TableName, None] = {}
        place: _Scope | None = scope
        while place is not None:
            for source in place.sources.values():
                if name in source.names:
                    return
                if name not in source.without:
                    tables |= dict.fromkeys(source.tables)
            place = place.outer
        self._note(name, part, tuple(tables), shown)

    def _note(self, name: str, part: Any, tables: tuple[TableName, ...], shown: str) -> None:
        self.found[BareName(shown, name, bool(part.args.get("quoted")), tables)] = None

    def _columns(self, node: Any) -> frozenset[str]:
        """The column names of an alias: `t (a, b)`."""
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if hasattr(alias, "args") else None
        return frozenset(
            [
                self._text(getattr(each, "this", each))
                if type(each).__name__ == "ColumnDef"
                else self._text(each)
                for each in columns or ()
            ]
        )

    def _text(self, part: Any) -> str:
        """A name as the database keeps it: in upper case unless it was quoted."""
        while hasattr(part, "args") and type(part).__name__ != "Identifier":
            part = part.this
        text = str(part.this if hasattr(part, "args") else part)
        text = self._placeholders.get(text, text)
        quoted = hasattr(part, "args") and part.args.get("quoted")
        return text if quoted else text.upper()

    def _shown(self, parts: Sequence[Any]) -> str:
        return ".".join([self._placeholders.get(str(each.name), str(each.name)) for each in parts])
