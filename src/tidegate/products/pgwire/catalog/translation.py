"""Translates a query on PostgreSQL's catalogs to SQLite, which holds their emulation. Pure.

What is not known is refused: the client gets SQLSTATE 0A000, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tidegate.products.pgwire.catalog.column_types import type_of
from tidegate.products.pgwire.catalog.expression_types import Known, cast_type, expression_type
from tidegate.products.pgwire.catalog.functions import (
    BARE,
    FUNCTIONS,
    GENERAL,
    OF_CATALOGS,
    SET_FUNCTIONS,
)
from tidegate.products.pgwire.catalog.join_conditions import qualify_conditions
from tidegate.products.pgwire.catalog.layout import BOOLEAN_COLUMNS, COLUMNS
from tidegate.products.pgwire.catalog.set_functions import call, rewrite_set_functions
from tidegate.products.pgwire.errors import not_emulated
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import NAME, OP, WORD, Token, lex

MOST_ASKED = 20_000
"""Characters of a query on the catalogs: those of tools have a tenth of it."""
_LONGEST_OPERATOR = 100
_OPERATOR = re.compile(r'OPERATOR\s*\(\s*(?:"?pg_catalog"?\s*\.\s*)?\Z', re.IGNORECASE)
_OID = re.compile(r"(?:oid|relid|typid|id|namespace|class|parent|owner)$")
_RENAMED: Mapping[str, str] = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
}
_NAMING_TYPES = {
    "regclass": "class", "regtype": "type", "regnamespace": "namespace", "regproc": "function",
    "regprocedure": "function", "regrole": "role",
}  # fmt: skip
_TEXT_TYPES = frozenset({"name", "text", "character varying", "character", '"char"'})
_WHOLE_TYPES = frozenset({"integer", "bigint", "smallint", "xid"})


class CatalogQuery(NamedTuple):
    """The query for SQLite; the name and type of each column of its list, the type None where it
    shows by the values (a star has the name `*`); the types of its parameters by number; the
    constants in it."""

    text: str
    columns: tuple[tuple[str, str | None], ...]
    parameters: Mapping[int, str]
    constants: frozenset[str]


def reads_catalogs(text: str, *, has_information_schema: bool) -> bool:
    """Whether a text is about PostgreSQL's catalogs and nothing else: it names one of their tables
    after FROM or JOIN, or has no table and calls a function of the session.

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
        if at >= 3 and tokens[at - 3].key == "EXTRACT":  # extract(epoch FROM moment)
            continue
        name = _name(tokens[at + 1])
        if name in SET_FUNCTIONS and _is_call(tokens, at + 1):
            continue
        from_table = True
        if name in OF_CATALOGS and _is_call(tokens, at + 1):
            return True
        if name == "pg_catalog" or (name == "information_schema" and not has_information_schema):
            return True
        if name in COLUMNS and not _is_qualifier(tokens, at + 1):
            return True
    if from_table:
        return _asks_types_of_columns(tokens)
    if any(_is_naming_cast(tokens, at) for at in range(len(tokens))):  # \sf and \sv of psql
        return True
    called = [
        _name(token)
        for at, token in enumerate(tokens)
        if token.kind in (WORD, NAME) and (_is_call(tokens, at) or _name(token) in BARE)
    ]
    return any(name in FUNCTIONS for name in called) and all(
        name in FUNCTIONS or name in GENERAL for name in called
    )


def _name(token: Token) -> str:
    return token.text.lower() if token.kind == WORD else token.text if token.kind == NAME else ""


def _is_qualifier(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].key == "."


def _is_call(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].key == "("


def _asks_types_of_columns(tokens: list[Token]) -> bool:
    r"""Whether it is psql's \gdesc: pg_catalog.format_type of a list of values alone."""
    words = [_name(token) for token in tokens]
    tables = [at for at, token in enumerate(tokens) if token.key in ("FROM", "JOIN")]
    return (
        "pg_catalog" in words
        and "format_type" in words
        and len(tables) == 1
        and [each.key for each in tokens[tables[0] + 1 : tables[0] + 3]] == ["(", "VALUES"]
    )


def _is_naming_cast(tokens: list[Token], at: int) -> bool:
    if tokens[at].key != "::":
        return False
    is_qualified = at + 2 < len(tokens) and _is_qualifier(tokens, at + 1)
    kind = at + 3 if is_qualified and _name(tokens[at + 1]) == "pg_catalog" else at + 1
    return kind < len(tokens) and _name(tokens[kind]) in _NAMING_TYPES


@lru_cache(maxsize=128)
def translate(text: str) -> CatalogQuery:
    """The query on the emulation. Raises: TidegateError with SQLSTATE 0A000 or 42601."""
    try:
        tree: Any = parse_one(_without_schema(text), dialect="postgres")
    except (SqlglotError, Refusal, RecursionError):
        raise not_emulated("42601", "This query on PostgreSQL's catalogs cannot be read.") from None
    if not isinstance(tree, exp.Query):
        raise not_emulated("0A000", "PostgreSQL's catalogs are only read here.")
    # psql writes a pattern with backslashes as E'…'. It is read already: written as a node of its
    # own kind, its backslashes would be read a second time.
    for escaped in list(tree.find_all(exp.ByteString)):
        escaped.replace(exp.Literal.string(escaped.name))
    try:
        columns = _columns(tree)
        parameters = _parameter_types(tree)
        constants = frozenset([each.name for each in tree.find_all(exp.Literal)])
        _label(tree)
        _name_values(tree)
        qualify_conditions(tree)
        rewrite_set_functions(tree)
        # From the leaves up: what is replaced holds parts that were.
        for node in reversed(list(tree.dfs())):
            rewritten = _rewrite(node)
            if rewritten is not node:
                node.replace(rewritten)
        _name_objects(tree, columns)
        written = tree.sql(dialect="sqlite", identify=True)
    except (SqlglotError, RecursionError) as error:
        raise not_emulated(
            "0A000", f"This query on PostgreSQL's catalogs is not emulated: {str(error)[:200]}."
        ) from None
    return CatalogQuery(written, columns, parameters, constants)


def _name_values(tree: Any) -> None:
    """Write `(VALUES …) AS t (a, b)` as selects: SQLite names no columns of a table's alias."""
    for values in list(tree.find_all(exp.Values)):
        alias = values.args.get("alias")
        if alias is None or not alias.columns:
            continue
        names = [each.name for each in alias.columns]
        rows: list[Any] = [
            exp.select(*(exp.alias_(*pair) for pair in zip(row.expressions, names, strict=False)))
            for row in values.expressions
        ]
        table = rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False)
        values.replace(table.subquery(alias.name))


def _columns(tree: Any) -> tuple[tuple[str, str | None], ...]:
    found: list[tuple[str, str | None]] = []
    known: Known = {}
    for each in tree.selects:
        if isinstance(each, exp.Star) or each.is_star:
            found.append(("*", None))
        else:
            found.append((each.alias_or_name, expression_type(each, tree, known)))
    return tuple(found)


def _parameter_types(tree: Any) -> dict[int, str]:
    """What the query says of its parameters: by a cast, or by the column they are compared with."""
    found: dict[int, str] = {}
    for parameter in tree.find_all(exp.Parameter):
        if not parameter.name.isdecimal():
            continue
        number, around = int(parameter.name), parameter.parent
        if isinstance(around, exp.Cast):
            kind = cast_type(around)
            found[number] = "text" if kind in _NAMING_TYPES else kind
        elif isinstance(around, (exp.EQ, exp.NEQ, exp.In)):
            other = around.this if around.this is not parameter else around.expression
            if isinstance(other, exp.Column) and number not in found:
                name = other.name.lower()
                found[number] = "boolean" if name in BOOLEAN_COLUMNS else type_of(name)
    return found


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
        elif _name(first) == "pg_catalog" and keys[1:2] == ["."]:
            skip = 2
        if not skip:
            at += 1
            continue
        stop = len(text) if at + skip >= len(tokens) else tokens[at + skip].at
        pieces += text[end : tokens[at].at], " "
        end, at = stop, at + skip
    return "".join([*pieces, text[end:]])


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
    if isinstance(node, exp.Anonymous):
        return _rewrite_call(node)
    if isinstance(node, exp.Parameter):
        return exp.var(f"?{node.name}")
    if isinstance(node, exp.RegexpLike):
        return call("regexp_like", node.this, node.expression)
    if isinstance(node, exp.RegexpILike):
        return call("regexp_ilike", node.this, node.expression)
    if isinstance(node, (exp.EQ, exp.NEQ)) and isinstance(node.expression, exp.Any):
        return _any(node)
    if isinstance(node, (exp.EQ, exp.NEQ)) and _is_all(node.expression):
        return _all(node)
    if isinstance(node, (exp.EQ, exp.NEQ)) and _is_flag(node.this):
        return _flag(node)
    if isinstance(node, exp.EQ):
        return _receiver(node)
    if isinstance(node, exp.Array):
        return _array(node)
    if isinstance(node, exp.ArrayAgg):
        return exp.Nullif(this=_aggregate(node.this), expression=exp.Literal.string("[]"))
    if isinstance(node, exp.ArrayContainsAll):
        return call("array_contains", node.this, node.expression)
    if isinstance(node, exp.ArrayOverlaps):
        return call("array_overlaps", node.this, node.expression)
    if isinstance(node, exp.LogicalAnd):
        return exp.Min(this=node.this)
    if isinstance(node, exp.LogicalOr):
        return exp.Max(this=node.this)
    if isinstance(node, exp.Literal) and node.is_string and node.this.isdecimal():
        return _number(node)
    if isinstance(node, exp.Bracket):
        return _bracket(node)
    if isinstance(node, (exp.Lateral, exp.GenerateSeries, exp.Unnest, exp.Explode)):
        raise SqlglotError(type(node).__name__)
    if isinstance(node, exp.DPipe):
        return exp.DPipe(this=_named(node.this), expression=_named(node.expression), safe=True)
    if isinstance(node, (exp.ByteString, exp.RawString)):
        return exp.Literal.string(node.name.encode().decode("unicode_escape"))
    if isinstance(node, exp.StrPosition):
        return call("instr", node.this, node.args["substr"])
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in BARE:
        return call(node.name.lower())
    if isinstance(node, exp.Column) and node.name.lower() in _SYSTEM_COLUMNS:
        return exp.Literal.number(1)
    if isinstance(node, exp.AtTimeZone):
        return node.this
    if isinstance(node, exp.Extract):
        return _extract(node)
    return _of_session(node)


def _receiver(node: Any) -> Any:
    """A comparison of an oid with the function that reads or writes a type, written here by
    its name, as clients are shown it."""
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if not all(isinstance(each, exp.Column) for each in (side, other)):
            continue
        if side.name.lower() in _RECEIVERS and other.name.lower() == "oid":
            of_it = exp.EQ(this=exp.column("proname", "receiver"), expression=side.copy())
            found = exp.select("receiver.oid").from_("pg_proc AS receiver").where(of_it)
            return exp.EQ(this=other, expression=exp.Subquery(this=found))
    return node


_RECEIVERS = frozenset({"typreceive", "typsend"})


def _extract(node: Any) -> Any:
    if str(node.this).upper() != "EPOCH":
        raise SqlglotError("EXTRACT")
    return call("epoch_of", node.expression)


_SYSTEM_COLUMNS = frozenset({"xmin", "xmax"})
"""Columns of every table that a star leaves out. Nothing here has versions."""
_OF_SESSION: tuple[tuple[type[Any], str], ...] = (
    (exp.CurrentVersion, "version"),
    (exp.CurrentUser, "current_user"),
    (exp.SessionUser, "current_user"),
    (exp.CurrentDatabase, "current_database"),
    (exp.CurrentSchema, "current_schema"),
    (exp.CurrentTimestamp, "tidegate_now"),
)


def _of_session(node: Any) -> Any:
    for kind, name in _OF_SESSION:
        if isinstance(node, kind):
            return call(name)
    return node


def _rewrite_call(node: Any) -> Any:
    name = str(node.this).lower()
    return call(_RENAMED[name], *node.expressions) if name in _RENAMED else node


def _is_flag(node: Any) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in BOOLEAN_COLUMNS


def _flag(node: Any) -> Any:
    """`indisprimary = 't'`: a boolean is a number in the emulation."""
    value = node.expression
    if isinstance(value, exp.Literal) and value.is_string:
        is_true = value.name.lower() in ("t", "true", "on", "yes", "y", "1")
        node.set("expression", exp.Literal.number(int(is_true)))
    return node


def _is_all(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "ALL"


def _all(node: Any) -> Any:
    """`x <> ALL (array)`."""
    if isinstance(node, exp.EQ):
        raise SqlglotError("= ALL")
    return exp.not_(call("in_array", node.this, node.expression.expressions[0]))


def _bracket(node: Any) -> Any:
    """An element of an array. The parser has taken 1 from a number, as if it counted from 0."""
    (index,) = node.expressions
    if isinstance(index, exp.Slice):
        raise SqlglotError("a part of an array")
    literal = index.this if isinstance(index, exp.Neg) else index
    if isinstance(literal, exp.Literal) and not literal.is_string:
        number = int(literal.this) * (-1 if isinstance(index, exp.Neg) else 1)
        index = exp.Literal.number(number + 1)
    return call("array_item", node.this, index)


def _named(node: Any) -> Any:
    """The name of an object where its number is in a text."""
    inner = node.unnest()
    if isinstance(inner, exp.Anonymous) and str(inner.this).startswith("oid_of_"):
        return call(str(inner.this).replace("oid_of_", "name_of_"), inner)
    return node


def _name_objects(tree: Any, columns: tuple[tuple[str, str | None], ...]) -> None:
    """Show objects in the result by their names."""
    for each, (_, kind) in zip(list(tree.selects), columns, strict=True):
        if kind in _NAMING_TYPES and isinstance(each, exp.Alias):
            each.set("this", _named(each.this))


def _number(node: Any) -> Any:
    """An oid that is written as a text, as a number: columns here have no types."""
    around = node.parent
    if isinstance(around, (exp.EQ, exp.NEQ, exp.In)):
        other = around.this if around.this is not node else around.expression
        if isinstance(other, exp.Column) and _OID.search(other.name.lower()):
            return exp.Literal.number(node.this)
    return node


def _cast(node: Any) -> Any:
    kind, inner = cast_type(node), node.this
    if kind in _NAMING_TYPES:
        if isinstance(inner, exp.Anonymous) and str(inner.this).startswith("oid_of_"):
            return inner
        return call(f"oid_of_{_NAMING_TYPES[kind]}", inner)
    if kind in _TEXT_TYPES:
        named = _named(inner)
        return named if isinstance(named, exp.Anonymous) else exp.cast(inner, "TEXT")
    if kind == "boolean":
        return call("to_boolean", inner)
    if kind == "oid":
        if isinstance(inner, exp.Anonymous) and inner.this == "oid_of_function":
            raise SqlglotError("the oid of a function")
        return inner if not isinstance(inner, exp.Literal) else exp.cast(inner, "INTEGER")
    if kind.endswith("[]"):
        return inner
    if kind in _WHOLE_TYPES:
        return exp.cast(inner, "INTEGER")
    if kind in ("json", "jsonb", "real", "double precision", "numeric"):
        return inner
    raise SqlglotError(f"a cast to {kind}")


def _any(node: Any) -> Any:
    """`x = ANY (ARRAY[…])` as IN; `x = ANY (array)` by the array's JSON."""
    values = node.expression.this
    while isinstance(values, exp.Paren):
        values = values.this
    if isinstance(node, exp.NEQ):
        raise SqlglotError("<> ANY")
    if isinstance(values, exp.Array):
        return exp.In(this=node.this, expressions=values.expressions)
    if isinstance(values, (exp.Subquery, exp.Select)):
        return exp.In(this=node.this, query=values)
    return call("in_array", node.this, values)


def _array(node: Any) -> Any:
    """`ARRAY(SELECT …)` and `ARRAY[…]` as JSON."""
    inner = node.expressions
    if len(inner) != 1 or not isinstance(inner[0], (exp.Select, exp.Subquery)):
        return call("json_array", *inner)
    query = inner[0].unnest().copy()
    if query.args.get("limit") or query.args.get("distinct") or query.args.get("group"):
        raise SqlglotError("an array of a part of a query")
    order = query.args.get("order")
    query.set("order", None)
    value = query.selects[0].unalias()
    if order is not None:
        value = exp.Order(
            this=value.copy(), expressions=[each.copy() for each in order.expressions]
        )
    query.select(_aggregate(value), append=False, copy=False)
    return exp.Subquery(this=query)


def _aggregate(value: Any) -> Any:
    return call("json_group_array", value)
