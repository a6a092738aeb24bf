"""The types of the expressions of a query on the catalogs, as `format_type` names them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tidegate.products.pgwire.catalog.column_types import known_type
from tidegate.products.pgwire.catalog.functions import FUNCTIONS
from tidegate.products.pgwire.catalog.layout import BOOLEAN_COLUMNS

_SPELLED: Mapping[str, str] = {
    "BOOL": "boolean", "BOOLEAN": "boolean", "BIGINT": "bigint", "INT8": "bigint",
    "INT": "integer", "INTEGER": "integer", "INT4": "integer", "SMALLINT": "smallint",
    "INT2": "smallint", "TEXT": "text", "NAME": "name", "OID": "oid", "REGCLASS": "regclass",
    "REGTYPE": "regtype", "REGPROC": "regproc", "REGNAMESPACE": "regnamespace", "REAL": "real",
    "REGROLE": "regrole", "DOUBLE PRECISION": "double precision", "FLOAT8": "double precision",
    "DECIMAL": "numeric", "NUMERIC": "numeric", "CHAR": "character", "BPCHAR": "character",
    "VARCHAR": "character varying", "JSON": "json", "JSONB": "jsonb", "XID": "xid", "DATE": "date",
    "TIMESTAMPTZ": "timestamp with time zone", "TIMESTAMP": "timestamp without time zone",
    "REGPROCEDURE": "regprocedure", '"CHAR"': '"char"',
}  # fmt: skip
_TRUTH = (
    exp.Boolean, exp.Predicate, exp.Not, exp.And, exp.Or, exp.Exists, exp.RegexpLike,
    exp.RegexpILike, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.LogicalAnd, exp.LogicalOr,
)  # fmt: skip
_SAME_AS_FIRST = (
    exp.Max, exp.Min, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.AnyValue, exp.Distinct,
    exp.Order, exp.Ordered, exp.Filter, exp.Window, exp.Neg, exp.Abs,
)  # fmt: skip
_TEXTS = (
    exp.DPipe, exp.Concat, exp.GroupConcat, exp.Lower, exp.Upper, exp.Substring, exp.Trim,
    exp.Replace, exp.RegexpReplace, exp.Format, exp.Left, exp.Right, exp.SplitPart, exp.ByteString,
    exp.RawString,
)  # fmt: skip


def cast_type(node: Any) -> str:
    """The type that a cast names: `text`, `oid[]`. What is not known stays as it is written."""
    target = node.to
    word = target.this if isinstance(target, exp.ObjectIdentifier) else target.sql("postgres")
    word = str(word).upper()
    element = word.removesuffix("[]")
    array = "[]" * ((len(word) - len(element)) // 2)
    bare = element.partition("(")[0].strip()
    return _SPELLED.get(bare, bare.lower()) + array


Known = dict[str, str | None]
"""The types of columns of queries in FROM, by name. Each is found once."""


def expression_type(node: Any, tree: Any, known: Known) -> str | None:
    """The type of an expression of `tree`; None where it shows by its values alone."""

    def of(inner: Any) -> str | None:
        return None if inner is None else expression_type(inner, tree, known)

    if isinstance(node, (exp.Alias, exp.Paren)):
        return of(node.this)
    if isinstance(node, _TRUTH):
        return "boolean"
    if isinstance(node, exp.Cast):
        return cast_type(node)
    if isinstance(node, exp.Column):
        return _column_type(node, tree, known)
    if isinstance(node, (exp.Subquery, exp.Select)):
        selects = node.selects
        return of(selects[0]) if selects else None
    if isinstance(node, exp.Case):
        branches = [each.args["true"] for each in node.args["ifs"]] + [node.args.get("default")]
        return next((found for found in map(of, branches) if found is not None), None)
    if isinstance(node, (exp.Count, exp.Sum)):
        return "bigint"
    if isinstance(node, _TEXTS):
        return "text"
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "integer" if node.this.isdecimal() else "numeric"
    if isinstance(node, exp.Dot):
        return _dot_type(node, of)
    return _array_type(node, of)


def _dot_type(node: Any, of: Any) -> str | None:
    if isinstance(node.expression, exp.Func):
        return of(node.expression)
    return {"n": "integer", "x": "smallint"}.get(node.name, "text")


def _array_type(node: Any, of: Any) -> str | None:
    if isinstance(node, exp.ArrayAgg):
        inner = of(node.this)
        return None if inner is None else f"{inner}[]"
    if isinstance(node, exp.Array):
        inner = of(node.expressions[0]) if node.expressions else None
        return f"{inner or 'text'}[]"
    if isinstance(node, (exp.Explode, exp.Unnest, exp.Bracket)):
        array = of(node.this) or ""
        return array[:-2] if array.endswith("[]") else None
    if isinstance(node, exp.Anonymous):
        return FUNCTIONS.get(str(node.this).lower())
    if isinstance(node, _SAME_AS_FIRST):
        first = node.this if node.args.get("this") is not None else _first(node.expressions)
        return of(first)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        return of(node.this) or "integer"
    if isinstance(node, (exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentDatabase)):
        return "name"
    return None


def _first(nodes: list[Any]) -> Any:
    return nodes[0] if nodes else None


def _column_type(node: Any, tree: Any, known: Known) -> str | None:
    name = node.name.lower()
    if name in BOOLEAN_COLUMNS:
        return "boolean"
    found = known_type(name)
    if found is not None:
        return found
    if name in known:
        return known[name]
    known[name] = None  # while it is resolved: a name may lead back to itself
    for alias in tree.find_all(exp.Alias):
        if alias.alias == node.name and alias is not node.parent:
            known[name] = expression_type(alias.this, tree, known)
            if known[name] is not None:
                break
    return known[name]
