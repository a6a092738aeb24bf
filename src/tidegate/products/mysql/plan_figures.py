"""What MariaDB expects a statement to take, read from its plan: rows, and in 10.11 no cost.

The tables of a nested loop come one after the other; each has the rows that are read for one row
of those before it, and the share of them that meets the conditions.
"""

from __future__ import annotations

from typing import Any, cast

from tidegate.sql.plan_figures import Fields, PlanFigures, read_json


def mysql_figures(cell: Any) -> PlanFigures:
    """Of EXPLAIN FORMAT=JSON. Raises: LookupError, TypeError, ValueError for another form."""
    plan = cast("Fields", read_json(cell))
    if "query_block" not in plan:
        raise ValueError("no plan of a query")
    return PlanFigures(None, max(_of_block(plan["query_block"]), default=0.0))


def _of_block(fields: Fields) -> list[float]:
    """The rows that each table is expected to give, all loops together."""
    found: list[float] = []
    _read(fields, 1.0, found)
    return found


def _read(value: Any, before: float, found: list[float]) -> float:
    """Read a part of a plan that runs once for each of the rows `before`; the rows after it."""
    if isinstance(value, list):
        return _read_list(cast("list[Any]", value), before, found)
    if not isinstance(value, dict):
        return before
    after = before
    for name, inner in cast("Fields", value).items():
        if name == "table" and isinstance(inner, dict):
            after = _read_table(cast("Fields", inner), before, found)
        elif name in ("nested_loop", "block-nl-join"):
            after = _read(inner, before, found)
        elif isinstance(inner, (dict, list)):
            after = max(after, _read(inner, before, found))
    return after


def _read_list(parts: list[Any], before: float, found: list[float]) -> float:
    """Loops inside each other."""
    for part in parts:
        if isinstance(part, dict) and "query_block" in part:  # beside the others, as in a UNION
            _read(part, 1.0, found)
        else:
            before = _read(part, before, found)
    return before


def _read_table(table: Fields, before: float, found: list[float]) -> float:
    each = table.get("rows", table.get("rows_examined_per_scan"))
    for inner in table.values():  # of a derived table: its own query
        if isinstance(inner, (dict, list)):
            _read(inner, 1.0, found)
    if each is None:
        return before
    read = before * float(each)
    found.append(read)
    return read * float(table.get("filtered", 100)) / 100
