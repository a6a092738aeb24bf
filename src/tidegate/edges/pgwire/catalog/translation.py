"""Translates a query on PostgreSQL's catalogs to SQLite, which holds their emulation. Pure.

What is not known is refused: the client gets SQLSTATE 0A000, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tidegate.edges.pgwire.catalog.tables import COLUMNS, kinds
from tidegate.edges.pgwire.errors import not_emulated
from tidegate.model.results import ColumnKind
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, OP, WORD, Token, lex

FUNCTIONS: Mapping[str, ColumnKind] = {
    "array_to_string": "text",
    "array_upper": "integer",
    "col_description": "text",
    "current_catalog": "text",
    "current_database": "text",
    "current_role": "text",
    "current_schema": "text",
    "current_schemas": "text",
    "current_setting": "text",
    "current_user": "text",
    "format_type": "text",
    "has_any_column_privilege": "boolean",
    "has_database_privilege": "boolean",
    "has_schema_privilege": "boolean",
    "has_table_privilege": "boolean",
    "obj_description": "text",
    "pg_backend_pid": "integer",
    "pg_collation_is_visible": "boolean",
    "pg_encoding_to_char": "text",
    "pg_function_is_visible": "boolean",
    "pg_get_constraintdef": "text",
    "pg_get_expr": "text",
    "pg_get_function_arguments": "text",
    "pg_get_function_result": "text",
    "pg_get_indexdef": "text",
    "pg_get_partkeydef": "text",
    "pg_get_serial_sequence": "text",
    "pg_get_statisticsobjdef_columns": "text",
    "pg_get_userbyid": "text",
    "pg_get_viewdef": "text",
    "pg_is_in_recovery": "boolean",
    "pg_my_temp_schema": "integer",
    "pg_get_triggerdef": "text",
    "pg_partition_ancestors": "integer",
    "pg_relation_is_publishable": "boolean",
    "pg_relation_size": "integer",
    "pg_size_pretty": "text",
    "pg_table_is_visible": "boolean",
    "pg_table_size": "integer",
    "pg_total_relation_size": "integer",
    "pg_type_is_visible": "boolean",
    "quote_ident": "text",
    "session_user": "text",
    "shobj_description": "text",
    "to_regclass": "text",
    "to_regtype": "integer",
    "txid_current": "integer",
    "user": "text",
    "version": "text",
}
"""What may stand in a query without a table, or with those of the catalogs, and what it gives."""

_BARE = frozenset(
    ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"]
)
_AGGREGATES = frozenset(
    {
        *("count", "max", "min", "sum", "avg", "coalesce", "nullif", "lower", "upper", "length"),
        *("substr", "substring", "replace", "concat", "trim", "string_agg", "array_agg"),
        *("greatest", "least", "abs", "round", "any_value", "bool_or", "bool_and"),
        *("generate_series", "unnest", "array", "regexp_replace", "regexp_match", "position"),
        *("starts_with", "strpos", "split_part"),
    }
)
MOST_ASKED = 20_000
"""Characters of a query on the catalogs: those of tools have a tenth of it."""
_LONGEST_OPERATOR = 100
_OPERATOR = re.compile(r'OPERATOR\s*\(\s*(?:"?pg_catalog"?\s*\.\s*)?\Z', re.IGNORECASE)
_OID = re.compile(r"(?:oid|relid|typid|id|namespace|class|parent|owner)$")
_OTHER: ColumnKind = "other"
_JSON = {"json_build_object": "json_object", "jsonb_build_object": "json_object"}
_NAMING_TYPES = {"REGCLASS": "class", "REGTYPE": "type", "REGNAMESPACE": "namespace"}
_TEXT_TYPES = {"NAME", "TEXT", "VARCHAR", "CHAR", "BPCHAR"}


class CatalogQuery(NamedTuple):
    """The query for SQLite, and the kind of each column where it is known."""

    text: str
    kinds: tuple[ColumnKind, ...]


@cache
def _boolean_columns() -> frozenset[str]:
    return frozenset(name for name, kind in kinds() if kind == "boolean")


def reads_catalogs(text: str, *, has_information_schema: bool) -> bool:
    """Whether a text is about PostgreSQL's catalogs and nothing else: it names one of their tables
    behind FROM or JOIN, or has no table and calls a function of the session.

    With `has_information_schema` the source has one of its own.
    """
    if len(text) > MOST_ASKED or "SELECT" not in text[:4_000].upper():
        return False
    try:
        tokens = lex(text, find("postgres").lexical_rules)
    except Refusal:
        return False
    if not tokens or tokens[0].key not in ("SELECT", "WITH"):
        return False
    from_table = False
    for at, token in enumerate(tokens):
        if token.key not in ("FROM", "JOIN") or at + 1 >= len(tokens):
            continue
        from_table = True
        name = _name(tokens[at + 1])
        if name == "pg_catalog" or (name == "information_schema" and not has_information_schema):
            return True
        if name in COLUMNS and not _is_qualifier(tokens, at + 1):
            return True
    if from_table:
        return False
    called = [
        _name(token)
        for at, token in enumerate(tokens)
        if token.kind in (WORD, NAME) and (_is_call(tokens, at) or _name(token) in _BARE)
    ]
    return any(name in FUNCTIONS for name in called) and all(
        name in FUNCTIONS or name in _AGGREGATES for name in called
    )


def _name(token: Token) -> str:
    return token.text.lower() if token.kind == WORD else token.text if token.kind == NAME else ""


def _is_qualifier(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].key == "."


def _is_call(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].key == "("


def translate(text: str) -> CatalogQuery:
    """The query on the emulation. Raises: TidegateError with SQLSTATE 0A000 or 42601."""
    try:
        tree: Any = parse_one(_without_schema(text), dialect="postgres")
    except (SqlglotError, Refusal, RecursionError):
        raise not_emulated("42601", "This query on PostgreSQL's catalogs cannot be read.") from None
    if not isinstance(tree, exp.Query):
        raise not_emulated("0A000", "PostgreSQL's catalogs are only read here.")
    found: tuple[ColumnKind, ...] = tuple([_kind(each) for each in tree.selects])
    try:
        _label(tree)
        _unnest(tree)
        # From the leaves up: what is replaced holds parts that were.
        for node in reversed(list(tree.dfs())):
            rewritten = _rewrite(node)
            if rewritten is not node:
                node.replace(rewritten)
        written = tree.sql(dialect="sqlite")
    except (SqlglotError, RecursionError):
        raise not_emulated(
            "0A000", "This query on PostgreSQL's catalogs is not emulated."
        ) from None
    return CatalogQuery(written, found)


def _without_schema(text: str) -> str:
    """The text without `pg_catalog.`, `OPERATOR(…)` and collations, which SQLite does not know."""
    tokens = lex(text, find("postgres").lexical_rules)
    pieces: list[str] = []
    end = at = 0
    while at < len(tokens):
        keys = [token.key for token in tokens[at : at + 6]]
        skip = 0
        first = tokens[at]
        begun = max(end, first.at - _LONGEST_OPERATOR)
        named = _OPERATOR.search(text, begun, first.at) if first.kind == OP else None
        if named is not None:
            closing = text.index(")", first.at)
            pieces += text[end : named.start()], f" {first.text} "
            end, at = closing + 1, at + 1
            continue
        if keys[:1] == ["COLLATE"]:
            skip = 4 if keys[2:3] == ["."] else 2
        elif keys[:2] == ["PG_CATALOG", "."]:
            skip = 2
        if not skip:
            at += 1
            continue
        stop = len(text) if at + skip >= len(tokens) else tokens[at + skip].at
        pieces += text[end : tokens[at].at], " "
        end, at = stop, at + skip
    return "".join([*pieces, text[end:]])


_RENAMED: tuple[tuple[type[Any], str], ...] = ((exp.CurrentVersion, "version"),)


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    """A call of a function of the emulation, which the parser is not to know."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _label(tree: Any) -> None:
    """Name the columns as PostgreSQL does: by the column or function, else `?column?`."""
    if not isinstance(tree, exp.Select):
        return
    named: list[Any] = []
    for each in tree.expressions:
        inner: Any = each
        while isinstance(inner, (exp.Cast, exp.Paren)):
            inner = inner.this
        if isinstance(each, (exp.Alias, exp.Star)) or inner.is_star:
            named.append(each)
            continue
        label = "?column?"
        if isinstance(inner, exp.Column):
            label = inner.name
        elif isinstance(inner, exp.Anonymous):
            label = str(inner.this).lower()
        elif isinstance(inner, exp.Func) and not isinstance(inner, (exp.Case, exp.Binary)):
            label = inner.sql_name().lower()
        elif isinstance(inner, exp.Case):
            label = "case"
        named.append(exp.alias_(each, label, quoted=True))
    tree.set("expressions", named)


def _rewrite(node: Any) -> Any:
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in _JSON:
        return _call(_JSON[str(node.this).lower()], *node.expressions)
    if isinstance(node, exp.Parameter):
        return exp.var(f"?{node.name}")
    if isinstance(node, exp.RegexpLike):
        return _call("regexp_like", node.this, node.expression)
    if isinstance(node, exp.RegexpILike):
        return _call("regexp_ilike", node.this, node.expression)
    if isinstance(node, (exp.EQ, exp.NEQ)) and isinstance(node.expression, exp.Any):
        return _any(node)
    if isinstance(node, exp.Array):
        return _array(node)
    if isinstance(node, (exp.ArrayAgg, exp.GroupConcat)) and node.args.get("order"):
        return node
    if isinstance(node, exp.Literal) and node.is_string and node.this.isdecimal():
        return _number(node)
    if isinstance(node, exp.Bracket):
        return _call("array_item", node.this, *node.expressions)
    if isinstance(node, (exp.Lateral, exp.GenerateSeries, exp.Unnest)):
        raise SqlglotError(type(node).__name__)
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in _BARE:
        return exp.Anonymous(this=node.name.lower(), expressions=[])
    if isinstance(node, (exp.CurrentUser, exp.SessionUser)):
        return exp.Anonymous(this="current_user", expressions=[])
    if isinstance(node, (exp.ByteString, exp.RawString)):
        return exp.Literal.string(node.name.encode().decode("unicode_escape"))
    for kind, name in _RENAMED:
        if isinstance(node, kind):
            return _call(name)
    if isinstance(node, exp.CurrentDatabase):
        return exp.Anonymous(this="current_database", expressions=[])
    if isinstance(node, exp.CurrentSchema):
        return exp.Anonymous(this="current_schema", expressions=[])
    return node


def _number(node: Any) -> Any:
    """An oid that is written as a text, as a number: columns here have no types."""
    around = node.parent
    if isinstance(around, (exp.EQ, exp.NEQ, exp.In)):
        other = around.this if around.this is not node else around.expression
        if isinstance(other, exp.Column) and _OID.search(other.name.lower()):
            return exp.Literal.number(node.this)
    return node


def _unnest(tree: Any) -> None:
    """`FROM unnest(array) AS x` as the values of an array in JSON, and `generate_series(a, b) AS x`
    as the values of its module: x is a column there, and a table in SQLite."""
    for table in list(tree.find_all(exp.Unnest, exp.Table)):
        series = table.this if isinstance(table, exp.Table) else None
        if isinstance(series, exp.Anonymous) and table.args.get("ordinality"):
            table.replace(_no_rows(table))  # of partitions, which no source here has
            continue
        if isinstance(table, exp.Table) and not isinstance(series, exp.GenerateSeries):
            continue
        alias = table.alias_or_name
        select = table.find_ancestor(exp.Select)
        if not alias or select is None:
            raise SqlglotError("a function without a name behind FROM")
        for column in list(select.find_all(exp.Column)):
            if column.name == alias and not column.table:
                column.replace(exp.column("value", table=alias))
        if series is None:
            call = _call("json_each", _first(table).copy())
        else:
            ends = series.args
            call = _call("generate_series", ends["start"].copy(), ends["end"].copy())
        name = exp.TableAlias(this=exp.to_identifier(alias))
        table.replace(exp.Table(this=call, alias=name))


def _no_rows(table: Any) -> Any:
    """A table of no rows with the columns of a function's alias."""
    names = [column.name for column in table.args["alias"].args.get("columns") or ()]
    columns = [exp.alias_(exp.null(), name) for name in names]
    return exp.select(*columns).where(exp.false()).subquery(table.alias_or_name)


def _first(node: Any) -> Any:
    return node.expressions[0]


def _cast(node: Any) -> Any:
    kind = node.to
    word = kind.this if isinstance(kind, exp.ObjectIdentifier) else kind.sql("postgres")
    word = str(word).upper()
    inner = node.this
    if word in _NAMING_TYPES:
        to_oid = isinstance(inner, exp.Literal) and inner.is_string
        return _call(f"{'oid' if to_oid else 'name'}_of_{_NAMING_TYPES[word]}", inner)
    if word in ("OID", "REGPROC", "REGPROCEDURE", "XID"):
        return inner if not isinstance(inner, exp.Literal) else exp.cast(inner, "INTEGER")
    if word.strip('"') in _TEXT_TYPES or word == '"CHAR"' or word.startswith("VARCHAR"):
        if isinstance(inner, exp.Anonymous):
            return inner
        return exp.cast(inner, "TEXT")
    if word in ("BOOLEAN", "BOOL"):
        return _call("to_boolean", inner)
    if word.endswith("[]"):
        return inner
    if word in ("INT", "BIGINT", "SMALLINT", "INT4", "INT8", "INT2"):
        return exp.cast(inner, "INTEGER")
    return node


def _any(node: Any) -> Any:
    """`x = ANY (ARRAY[…])` as IN; `x = ANY (array)` by the array's JSON."""
    values = node.expression.this
    while isinstance(values, exp.Paren):
        values = values.this
    if isinstance(values, exp.Array):
        found: Any = exp.In(this=node.this, expressions=values.expressions)
    elif isinstance(values, (exp.Subquery, exp.Select)):
        found = exp.In(this=node.this, query=values)
    else:
        found = _call("in_array", node.this, values)
    return found if isinstance(node, exp.EQ) else exp.not_(found)


def _array(node: Any) -> Any:
    """`ARRAY(SELECT …)` and `ARRAY[…]` as JSON."""
    inner = node.expressions
    if len(inner) == 1 and isinstance(inner[0], (exp.Select, exp.Subquery)):
        query = inner[0].unnest()
        select = query.selects[0]
        query = query.copy()
        query.set("order", None)
        query.select(_call("json_group_array", select.unalias()), append=False, copy=False)
        return exp.Subquery(this=query)
    return _call("json_array", *inner)


def _kind(node: Any) -> ColumnKind:
    """What an expression gives, where that matters to clients: booleans are shown as t and f."""
    node = node.unalias()
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, (exp.Boolean, exp.Predicate, exp.Not, exp.And, exp.Or, exp.Exists)):
        return "boolean"
    if isinstance(node, exp.Column):
        return "boolean" if node.name.lower() in _boolean_columns() else "other"
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and node.this.selects:
        return _kind(node.this.selects[0])
    if isinstance(node, exp.Case):
        found: set[ColumnKind] = {_kind(each.args["true"]) for each in node.args["ifs"]}
        return next(iter(found)) if len(found) == 1 else "other"
    if isinstance(node, exp.Coalesce):
        return _kind(node.this)
    if isinstance(node, exp.Cast):
        return "boolean" if node.to.is_type("boolean") else "other"
    if isinstance(node, exp.Anonymous):
        return FUNCTIONS.get(str(node.this).lower(), _OTHER)
    return "other"
