"""What PostgreSQL's catalog says of tables in addition to their columns and keys, as the caller
sees it.

One statement through the gate: which tables the role may read, how they are partitioned, and which
server a foreign table is on. The gate's own catalog is the same for all callers of a source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Sample
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.surfaces.tool_context import ToolContext

_TABLES = """
SELECT n.nspname, c.relname, c.relkind,
  pg_catalog.has_schema_privilege(n.oid, 'USAGE')
    AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') AS readable,
  pg_catalog.pg_get_partkeydef(c.oid) AS partition_key,
  pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS bound,
  pn.nspname AS parent_schema, p.relname AS parent, s.srvname AS server
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_inherits AS h ON h.inhrelid = c.oid AND c.relispartition
LEFT JOIN pg_catalog.pg_class AS p ON p.oid = h.inhparent
LEFT JOIN pg_catalog.pg_namespace AS pn ON pn.oid = p.relnamespace
LEFT JOIN pg_catalog.pg_foreign_table AS f ON f.ftrelid = c.oid
LEFT JOIN pg_catalog.pg_foreign_server AS s ON s.oid = f.ftserver
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
  AND n.nspname <> 'pg_catalog'
ORDER BY 1, 2"""

_REFUSED = frozenset(
    {Code.POLICY_MASKED, Code.POLICY_TABLE, Code.APPROVAL_NEEDED, Code.SQL_FUNCTION}
    | {Code.SQL_UNKNOWN, Code.SQL_FAILED}
)
"""Callers from whom something is hidden may not read these system tables, and no one is asked to
approve it. What the catalog shows them has been through the gate all the same."""

MOST_TABLES = 100_000


class TableDetails(NamedTuple):
    """Of one table. `partition_key` is of a partitioned table, `bound` and `parent` (schema, name)
    of a partition, `server` of a foreign table."""

    readable: bool
    partitioned: bool = False
    partition_key: str | None = None
    bound: str | None = None
    parent: tuple[str, str] | None = None
    server: str | None = None


UNKNOWN = TableDetails(readable=True)

Details = dict[tuple[str, str], TableDetails]


async def read_details(
    context: ToolContext, databases: Databases, source: str | None
) -> Details | None:
    """The details of each table by (schema, name); None if this caller may not read them.

    Raises: TidegateError.
    """
    limits = Limits(MOST_TABLES, 64 * 1024 * 1024)
    try:
        page = await databases.handle(
            context, source, Sample(Statement(_TABLES), limits=limits), Page, quiet=True
        )
    except TidegateError as error:
        if error.code in _REFUSED:
            return None
        raise
    rows: list[list[Any]] = msgspec.json.decode(page.rows)
    return {
        (schema, name): TableDetails(
            bool(readable),
            kind == "p",
            key,
            bound,
            (parent_schema, parent) if parent is not None else None,
            server,
        )
        for schema, name, kind, readable, key, bound, parent_schema, parent, server in rows
    }
