"""Leaves out of a catalog what the account of a source may not read: to show it to a model, or to
search it, would only end in the database's refusal.

PostgreSQL lets every account see the names of all tables and columns, and so is asked. Other
databases list only what the account may use.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Sample
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import Statement
from tidegate.search.ranking import Handle
from tidegate.search.statements import rows_of
from tidegate.sql.dialects import find

NOT_PERMITTED = "42501"
"""The SQLSTATE of what the account may not do."""

_UNREADABLE = """
SELECT n.nspname, c.relname, a.attname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
  AND NOT a.attisdropped AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname <> 'information_schema' AND n.nspname <> 'pg_catalog'
  AND NOT (pg_catalog.has_schema_privilege(n.oid, 'USAGE')
    AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
  AND (a.attname IS NULL OR NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))"""
"""A row for each column that may not be read, and one without a column for a table of which none
may. A table without columns is not among them."""

_MOST = 200_000
_REFUSED = frozenset({
    Code.POLICY_MASKED, Code.POLICY_TABLE, Code.APPROVAL_NEEDED, Code.SQL_FUNCTION,
    Code.SQL_UNKNOWN, Code.SQL_FAILED,
})  # fmt: skip
"""Callers from whom something is hidden may not read these system tables, and no one is asked to
approve it."""


async def readable_catalog(handle: Handle, catalog: Catalog) -> Catalog:
    """The catalog without what the account may not read; as it is where that cannot be asked.

    Raises: TidegateError, such as SOURCE_UNREACHABLE.
    """
    if find(catalog.dialect) is not find("postgres"):
        return catalog
    limits = Limits(_MOST, 64 * 1024 * 1024)
    try:
        page = await handle(Sample(Statement(_UNREADABLE), limits=limits), Page)
    except TidegateError as error:
        if error.code in _REFUSED:
            return catalog
        raise
    found: dict[tuple[str, str], set[str | None]] = {}
    for schema, name, column in rows_of(page):
        found.setdefault((schema, name), set()).add(column)
    if not found:
        return catalog
    tables = [
        _without(table, found.get((table.schema, table.name), set()))
        for table in catalog.tables
        if None not in found.get((table.schema, table.name), set())
    ]
    return structs.replace(catalog, tables=tuple(tables))


def _without(table: Table, columns: set[str | None]) -> Table:
    """The table without columns, and without the keys and indexes that name one of them."""
    if not columns:
        return table
    return structs.replace(
        table,
        columns=tuple([column for column in table.columns if column.name not in columns]),
        indexes=tuple([each for each in table.indexes if columns.isdisjoint(each.columns)]),
        foreign_keys=tuple([key for key in table.foreign_keys if columns.isdisjoint(key.columns)]),
    )
