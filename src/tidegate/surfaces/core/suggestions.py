"""What to try after a mistake: the names nearest to one that the database does not know.

Imported at the first mistake, so that a run without any does not pay for it.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.surfaces.core.shorthand import table_name
from tidegate.surfaces.tool_context import ToolContext

_NO_TABLE = re.compile(
    r"""no such table: (?P<a>[\w.]+)|(?:relation|table) (?:with name )?["'`]?(?P<b>[\w.]+)["'`]?"""
    r""" (?:does not|doesn't) exist""",
    re.IGNORECASE,
)
_NO_COLUMN = re.compile(
    r"""no such column: "?(?P<a>[\w.]+)|column "?(?P<b>[\w.]+)"? does not exist"""
    r"""|unknown column '(?P<c>[\w.]+)'|column "(?P<d>[\w.]+)" not found""",
    re.IGNORECASE,
)

LONGEST = 100
MOST_COMPARED = 500
"""Names that are compared: each takes some 20 µs of the event loop."""


async def advise(error: TidegateError, context: ToolContext, source: str | None) -> TidegateError:
    """The error, with the nearest names for a hint if the database missed a table or column."""
    if error.code not in (Code.SQL_FAILED, Code.TABLE_UNKNOWN):
        return error
    missed = _NO_TABLE.search(error.message)
    nearest = nearest_tables if missed else nearest_columns
    missed = missed or _NO_COLUMN.search(error.message)
    if missed is None:
        return error
    try:
        catalog = await context.handle(Browse("catalog"), source, Catalog)
    except TidegateError:
        return error
    near = nearest(next(name for name in missed.groups() if name), catalog)
    hint = f"Nearest: {', '.join(near)}." if near else "Find it with search."
    return TidegateError(error.code, error.message, hint=hint, details=error.details)


def nearest_tables(name: str, catalog: Catalog) -> list[str]:
    """Up to three table names that `name` may have been meant for, nearest first."""
    names = {table.name.casefold(): table_name(table, catalog) for table in catalog.tables}
    return [names[near] for near in _nearest(name, list(names))]


def nearest_columns(name: str, catalog: Catalog) -> list[str]:
    """Up to three `table.column` for the columns most like `name`."""
    owners: dict[str, str] = {}
    for table in catalog.tables:
        for column in table.columns:
            place = f"{table_name(table, catalog)}.{column.name}"
            owners.setdefault(column.name.casefold(), place)
    return [owners[near] for near in _nearest(name, list(owners))]


def _nearest(name: str, names: list[str]) -> list[str]:
    wanted = name.rpartition(".")[2].casefold()
    if len(wanted) > LONGEST:
        return []
    if len(names) > MOST_COMPARED:
        # Mistakes are seldom made in the first letter.
        names = sorted(names, key=lambda other: other[:1] != wanted[:1])[:MOST_COMPARED]
    return get_close_matches(wanted, names, n=3, cutoff=0.7)
