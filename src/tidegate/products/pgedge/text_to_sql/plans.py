"""Reads a database's plan for its cost. Pure."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from tidegate.model.results import Page

_COST = re.compile(r"\(cost=\d+(?:\.\d+)?\.\.(\d+(?:\.\d+)?) ")


class Plan(msgspec.Struct, frozen=True):
    """A plan as text, and its cost: PostgreSQL's own, for MySQL and MariaDB the rows that joins may
    read; None where the database estimates none."""

    text: str
    cost: float | None


def read_plan(page: Page) -> Plan:
    """The plan in the rows of an EXPLAIN."""
    rows = cast("list[list[Any]]", msgspec.json.decode(page.rows))
    names = [column.name.lower() for column in page.columns]
    text = "\n".join(["  ".join([str(cell) for cell in row if cell is not None]) for row in rows])
    if "rows" in names and "select_type" in names:
        return Plan(text, _rows_examined(rows, names.index("id"), names.index("rows")))
    found = _COST.search(text)
    return Plan(text, float(found[1]) if found else None)


def _rows_examined(rows: list[list[Any]], id_at: int, rows_at: int) -> float:
    """The rows of each SELECT's nested loops, added up."""
    loops: dict[Any, float] = {}
    for row in rows:
        count = row[rows_at]
        try:
            loops[row[id_at]] = loops.get(row[id_at], 1.0) * max(1.0, float(count or 1))
        except (TypeError, ValueError):
            continue
    return sum(loops.values())
