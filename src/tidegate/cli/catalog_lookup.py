"""Finds the table that a word of the command line names."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import Catalog, Table


def find_table(catalog: Catalog, name: str) -> Table:
    """The table called `name` or `schema.name`, the one in the default schema first.

    Raises: TidegateError TABLE_UNKNOWN.
    """
    wanted = name.casefold()
    found = [
        table
        for table in catalog.tables
        if wanted in (table.name.casefold(), f"{table.schema}.{table.name}".casefold())
    ]
    found.sort(key=lambda table: (table.schema != catalog.default_schema, table.name != name))
    if not found:
        shown = ", ".join(sorted(table.name for table in catalog.tables)[:20]) or "none"
        raise TidegateError(
            Code.TABLE_UNKNOWN, f"There is no table {name!r}.", hint=f"Tables there: {shown}."
        )
    return found[0]
