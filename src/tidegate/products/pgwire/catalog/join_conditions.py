"""Names in the conditions of joins. Pure.

In PostgreSQL a condition sees the tables of its own join. SQLite searches all tables in
FROM, and finds a name that a later table has as well ambiguous. So such a name gets its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from tidegate.products.pgwire.catalog.layout import COLUMNS, INFORMATION

_COLUMNS = {
    table: frozenset(name.rstrip("?") for name in block.split())
    for table, block in (*COLUMNS.items(), *INFORMATION.items())
}


def qualify_conditions(tree: Any) -> None:
    """Put the table before each name in a condition that one table of the join alone has."""
    for join in list(tree.find_all(exp.Join)):
        condition = join.args.get("on")
        if condition is None or join.parent is None:
            continue
        sources = list(_sources(join.parent, join))
        for column in list(condition.find_all(exp.Column)):
            if column.table or column.find_ancestor(exp.Join) is not join:
                continue
            having = [alias for alias, names in sources if column.name in names]
            if len(having) == 1:
                column.set("table", exp.to_identifier(having[0]))


def _sources(node: Any, upto: Any = None) -> Iterator[tuple[str, frozenset[str]]]:
    """Name and columns of the tables of a join, up to the table that `upto` adds. The joins of a
    SELECT are its own; those in brackets belong to the first table there."""
    if isinstance(node, exp.Select):
        source = node.args.get("from_")
        if source is not None:
            yield from _sources(source.this)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Subquery, exp.Table)):
        yield from _sources(node.this)
    elif isinstance(node, exp.Subquery):
        yield node.alias, frozenset([each.alias_or_name for each in node.this.selects])
    elif isinstance(node, exp.Table):
        yield node.alias_or_name, _COLUMNS.get(node.name.lower(), frozenset())
    for join in node.args.get("joins") or ():
        yield from _sources(join.this)
        if join is upto:
            return
