"""What DuckDB expects a statement to take, read from its plan: it has estimates of rows alone.

A cross product has none: it gives each row of one side with each of the other.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

from tidegate.sql.plan_figures import Fields, PlanFigures, read_json

_MOST_LEVELS = 400


def duckdb_figures(cell: Any) -> PlanFigures:
    """Of EXPLAIN (FORMAT JSON). Raises: LookupError, TypeError, ValueError for another form."""
    plan = read_json(cell)
    roots = cast("list[Fields]", plan if isinstance(plan, list) else [plan])
    found: list[float] = []
    for root in roots:
        _read(root, found, 0)
    return PlanFigures(None, max(found, default=0.0))


def _read(step: Fields, found: list[float], level: int) -> float:
    """Read a step and those below it; the rows that it gives."""
    if level > _MOST_LEVELS:
        raise ValueError("the plan has too many levels")
    children = cast("list[Fields]", step.get("children") or [])
    below = [_read(each, found, level + 1) for each in children]
    given = cast("Fields", step.get("extra_info") or {}).get("Estimated Cardinality")
    if given is not None:
        rows = float(str(given).lstrip("~"))
    elif "CROSS_PRODUCT" in str(step["name"]) or "JOIN" in str(step["name"]):
        rows = prod(below)
    else:
        rows = max(below, default=0.0)
    found.append(rows)
    return rows
