"""Rewrites functions that give several rows, and the arrays of PostgreSQL, for SQLite. Pure.

`unnest`, `generate_subscripts`, `generate_series` and `_pg_expandarray` are in a SELECT list or
in FROM. In a list all of them advance together, so one table of steps gives the rows.
Source: PostgreSQL 17 documentation, "Set Returning Functions".
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

_STEPS = "tidegate_steps"
_NAMED = frozenset({"generate_subscripts", "_pg_expandarray", "generate_series"})
_TABLES = {"pg_get_keywords": "pg_keywords", "pg_listening_channels": "pg_no_rows"}
_EMPTY = frozenset(
    {"pg_partition_ancestors", "pg_partition_tree", "pg_options_to_table", "aclexplode"}
)
"""Functions of what no source here has."""


def call(name: str, *arguments: Any) -> exp.Anonymous:
    """A call of a function of the emulation, which the parser is not to know."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def rewrite_set_functions(tree: Any) -> None:
    """Change every function that gives rows. Raises: SqlglotError for one that is not known."""
    for dot in list(tree.find_all(exp.Dot)):
        inner = dot.expression
        if isinstance(inner, exp.Func):  # a function after the name of its schema
            dot.replace(inner)
        elif isinstance(inner, exp.Identifier):
            composite = dot.this.unnest() if isinstance(dot.this, exp.Paren) else dot.this
            dot.replace(call("composite_field", composite, exp.Literal.string(inner.name)))
    for table in list(tree.find_all(exp.Unnest, exp.Table, exp.Lateral)):
        if not isinstance(table.parent, exp.Lateral):
            _rewrite_source(table)
    for select in reversed(list(tree.find_all(exp.Select))):  # inner ones first: they are copied
        _rewrite_list(select)


def _of_list(select: Any) -> list[Any]:
    """The functions in a SELECT list that are its own and not those of a query in it."""
    found: list[Any] = []
    for each in select.expressions:
        for node in each.find_all(exp.Explode, exp.Anonymous, exp.GenerateSeries):
            if node.find_ancestor(exp.Select) is select and (
                not isinstance(node, exp.Anonymous) or str(node.this).lower() in _NAMED
            ):
                found.append(node)
    return found


def _rewrite_list(select: Any) -> None:
    functions = _of_list(select)
    if not functions:
        return
    steps = exp.column("value", table=_STEPS)
    arrays: list[Any] = []
    for node in functions:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.GenerateSeries):
            array: Any = _series(node)
        elif name == "generate_series":
            array = call("array_series", *[each.copy() for each in node.expressions])
        elif isinstance(node, exp.Explode):
            array = node.this.copy()
        else:
            array = node.expressions[0].copy()
        if name == "_pg_expandarray":
            array = call("array_expanded", array)
        arrays.append(array)
        reads = "array_subscript" if name == "generate_subscripts" else "array_at_step"
        found = call(reads, array.copy(), steps.copy())
        if node is select:
            raise SqlglotError("a function that is no expression")
        node.replace(found)
    rows = exp.Table(
        this=call("json_each", call("array_steps", *arrays)),
        alias=exp.TableAlias(this=exp.to_identifier(_STEPS)),
    )
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=rows))
    else:
        select.append("joins", exp.Join(this=rows, kind="CROSS"))


def _series(node: Any) -> exp.Anonymous:
    ends = node.args
    given = [ends["start"], ends["end"], ends.get("step")]
    return call("array_series", *[each.copy() for each in given if each is not None])


def _rewrite_source(table: Any) -> None:
    """A function in FROM as the rows of `json_each`; its columns are `value` and `key`."""
    source = table.this if isinstance(table, (exp.Table, exp.Lateral)) else table
    if isinstance(source, (exp.Select, exp.Subquery)):
        raise SqlglotError("a query that is evaluated for each row")
    offset = _offset(table, source)
    if isinstance(source, exp.Unnest):
        array: Any = source.expressions[0].copy()
        if len(source.expressions) > 1:
            raise SqlglotError("several arrays in FROM")
    elif isinstance(source, exp.GenerateSeries):
        array = _series(source)
    elif isinstance(source, exp.Func):
        name = str(source.this).lower() if isinstance(source, exp.Anonymous) else ""
        alias = table.alias_or_name or name
        if name in _TABLES:
            table.replace(exp.alias_(exp.to_table(_TABLES[name]), alias, table=True))
            return
        if name in _EMPTY:
            table.replace(_no_rows(table, alias))
            return
        if name == "_pg_expandarray":
            _rewrite_expanded(table, source, alias)
            return
        if name not in ("generate_series", "generate_subscripts", "unnest", "current_schemas"):
            raise SqlglotError(f"the function {name or source.sql_name()} in FROM")
        array = _array_of(name, source)
    else:
        return
    _place(table, array, offset)


def _array_of(name: str, source: Any) -> Any:
    given = [each.copy() for each in source.expressions]
    if name == "generate_series":
        return call("array_series", *given)
    if name == "generate_subscripts":
        ends = call("array_lower", given[0]), call("array_upper", given[0].copy())
        return call("array_series", *ends)
    return source.copy() if name == "current_schemas" else given[0]


def _offset(table: Any, source: Any) -> str | None:
    """The name of the column that WITH ORDINALITY adds; None without it."""
    offset = source.args.get("offset")
    if isinstance(offset, exp.Identifier):
        return offset.name
    return "ordinality" if offset or table.args.get("ordinality") else None


def _place(table: Any, array: Any, offset: str | None) -> None:
    alias = table.alias_or_name
    if not alias and isinstance(table, exp.Unnest):
        alias = "unnest"
    select = table.find_ancestor(exp.Select)
    if not alias or select is None:
        raise SqlglotError("a function without a name in FROM")
    given = table.args.get("alias")
    columns = [each.name for each in (given.args.get("columns") or ())] if given else []
    if len(columns) > 1:
        offset = columns[1]
    value = columns[0] if columns else alias
    rows = exp.Table(this=call("json_each", call("array_as_json", array)))
    if isinstance(table.parent, exp.From):  # so that a star means its columns
        shown: list[Any] = [exp.alias_(exp.column("value"), value, quoted=True)]
        if offset is not None:
            shown.append(exp.alias_(_number_of(""), offset, quoted=True))
        table.replace(exp.select(*shown).from_(rows).subquery(alias))
        return
    for column in list(select.find_all(exp.Column)):
        if column.table not in ("", alias):
            continue
        if column.name == value:
            _replace(column, exp.column("value", table=alias))
        elif column.name == offset:
            _replace(column, _number_of(alias))
    rows.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    table.replace(rows)


def _number_of(alias: str) -> exp.Paren:
    """The number of a row of `json_each`, from 1."""
    key = exp.column("key", table=alias) if alias else exp.column("key")
    return exp.Paren(this=exp.Add(this=key, expression=exp.Literal.number(1)))


def _replace(column: Any, found: Any) -> None:
    """Put another expression in the place of a column, which keeps its name in a SELECT list."""
    if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
        found = exp.alias_(found, column.name, quoted=True)
    column.replace(found)


def _rewrite_expanded(table: Any, source: Any, alias: str) -> None:
    """`_pg_expandarray(array) AS x`: its columns are x and n, or those of the alias."""
    select = table.find_ancestor(exp.Select)
    given = table.args.get("alias")
    columns = [each.name for each in (given.args.get("columns") or ())] if given else []
    value, number = columns if len(columns) == 2 else ("x", "n")
    for column in list(select.find_all(exp.Column)):
        if column.table in ("", alias) and column.name in (value, number):
            field = "x" if column.name == value else "n"
            inner = exp.column("value", table=alias)
            _replace(column, call("composite_field", inner, exp.Literal.string(field)))
    rows = call("json_each", call("array_expanded", source.expressions[0].copy()))
    table.replace(exp.Table(this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias))))


def _no_rows(table: Any, alias: str) -> Any:
    """A table of no rows with the columns of a function's alias."""
    given = table.args.get("alias")
    names = [each.name for each in (given.args.get("columns") or ())] if given else []
    columns = [exp.alias_(exp.null(), name) for name in names or [alias]]
    return exp.select(*columns).where(exp.false()).subquery(alias)
