"""What PostgreSQL's own grammar (libpg_query, by postgast) says of a text: an opinion that shares
no line with the judge. It knows the shape of a statement, and nothing of what a function does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import postgast
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_HARMLESS = frozenset({"select_stmt", "explain_stmt", "variable_show_stmt"})
_CHANGES = frozenset({"insert_stmt", "update_stmt", "delete_stmt", "merge_stmt"})
_EFFECTS = _CHANGES | {"into_clause", "locking_clause"}
_PLANNED = _CHANGES | {"select_stmt", "create_table_as_stmt", "refresh_mat_view_stmt"}


class Opinion(NamedTuple):
    """`reads` is false for what changes data by its grammar alone. `tables` are lower-case, with
    their schema where it is written; common table expressions are left out."""

    reads: bool
    tables: frozenset[str]


def opinion(text: str) -> Opinion | None:
    """What the grammar says of one statement; None where it cannot be parsed or is not one."""
    try:
        statements = postgast.parse(text).stmts
    except (postgast.PgQueryError, UnicodeEncodeError, ValueError):
        return None
    if len(statements) != 1:
        return None
    return Opinion(_reads(statements[0].stmt), frozenset(_tables(statements[0].stmt)))


def _reads(statement: Message) -> bool:
    ((field, node),) = statement.ListFields()
    if field.name not in _HARMLESS:
        return False
    if field.name == "explain_stmt":
        runs = any(option.def_elem.defname == "analyze" for option in node.options)
        ((inner, _),) = node.query.ListFields()
        return _reads(node.query) if runs else inner.name in _PLANNED
    return _EFFECTS.isdisjoint(name for name, _ in _walk(statement))


def _tables(node: Message, queries: frozenset[str] = frozenset()) -> Iterator[str]:
    """The tables below a node, where the names of `queries` stand for table expressions."""
    fields = {field.name: value for field, value in node.ListFields() if _is_node(field)}
    if node.DESCRIPTOR.name == "RangeVar":
        if node.schemaname or node.relname not in queries:
            parts = (node.catalogname, node.schemaname, node.relname)
            yield ".".join(part for part in parts if part).lower()
        return
    with_ = fields.pop("with_clause", None)
    if with_ is not None:
        expressions = [cte.common_table_expr for cte in with_.ctes]
        if with_.recursive:
            queries |= {cte.ctename for cte in expressions}
        for cte in expressions:
            yield from _tables(cte.ctequery, queries)
            queries |= {cte.ctename}
    if node.DESCRIPTOR.name in ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"):
        yield from _tables(fields.pop("relation"))
    for value in fields.values():
        for below in value if isinstance(value, Sequence) else (value,):
            yield from _tables(below, queries)


def _is_node(field: FieldDescriptor) -> bool:
    return field.type == field.TYPE_MESSAGE


def _walk(message: Message) -> Iterator[tuple[str, Any]]:
    """Every node below a message, with the name of the field that holds it."""
    for field, value in message.ListFields():
        if not _is_node(field):
            continue
        for node in value if isinstance(value, Sequence) else (value,):
            yield field.name, node
            yield from _walk(node)
