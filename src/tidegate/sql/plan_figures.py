"""What a database expects a statement to take, read from its plan. Pure.

Each dialect with `plan_figures` has a function that reads the JSON of its EXPLAIN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import msgspec

Fields = Mapping[str, Any]


class PlanFigures(NamedTuple):
    """The cost of the whole, in the database's own unit, and the most rows that one of its steps
    gives; None where its plans do not say."""

    cost: float | None
    rows: float | None


def read_json(cell: Any) -> Any:
    """The JSON in a cell. Raises: ValueError."""
    if isinstance(cell, msgspec.Raw):
        cell = bytes(cell)
    return msgspec.json.decode(cell) if isinstance(cell, (str, bytes)) else cell


def postgres_figures(cell: Any) -> PlanFigures:
    """Of EXPLAIN (FORMAT JSON). Raises: LookupError, TypeError, ValueError for another form."""
    plan: Fields = read_json(cell)[0]["Plan"]
    steps = list(steps_of(plan, "Plans"))
    rows = max(float(each["Plan Rows"]) for each in steps)
    return PlanFigures(max(float(each["Total Cost"]) for each in steps), rows)


def steps_of(step: Fields, children: str) -> Iterator[Fields]:
    """A step of a plan and all below it."""
    waiting = [step]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += cast("list[Fields]", each.get(children) or [])
