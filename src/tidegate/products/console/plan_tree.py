"""Reads the plans of databases as trees of one form. Pure.

`cost` and `ms` of a node include its children. What a database does not say is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

_SHOWN = 300
"""Characters of a condition that is shown."""
_POSTGRES_DETAILS = (
    "Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "Join Filter", "Filter", "Sort Key",
    "Group Key", "Function Call",
)  # fmt: skip
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)

Fields = Mapping[str, Any]


class PlanNode(msgspec.Struct, frozen=True):
    """A step of a plan."""

    label: str
    detail: str = ""
    rows: float | None = None
    actual_rows: float | None = None
    cost: float | None = None
    ms: float | None = None
    children: list[PlanNode] = []


def is_deeper(node: PlanNode, levels: int) -> bool:
    """Whether a plan has more levels."""
    level = [node]
    for _ in range(levels):
        level = [child for each in level for child in each.children]
    return bool(level)


def plan_text(node: PlanNode, depth: int = 0) -> str:
    """A plan as lines, each step indented under the one that it serves."""
    figures: list[str] = []
    for name, value in (("rows", node.rows), ("actual rows", node.actual_rows)):
        figures += [] if value is None else [f"{name} {value:,.0f}"]
    figures += [] if node.cost is None else [f"cost {node.cost:,.2f}"]
    figures += [] if node.ms is None else [f"{node.ms:,.3f} ms"]
    line = "  " * depth + node.label
    line += f": {node.detail}" if node.detail else ""
    line += f"  ({', '.join(figures)})" if figures else ""
    return "\n".join([line, *[plan_text(child, depth + 1) for child in node.children]])


def read_plan(
    read: Callable[[list[list[Any]]], PlanNode | None], rows: list[list[Any]]
) -> PlanNode | None:
    """What `read` makes of a plan; None for one of another form, as other versions and drivers of
    a database give it. Raises: RecursionError for one of very many levels."""
    try:
        return read(rows)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def sqlite_plan(rows: Sequence[Sequence[Any]]) -> PlanNode | None:
    """Of EXPLAIN QUERY PLAN: rows of a step's number, its parent's, and what it is."""
    children: dict[int, list[tuple[int, str]]] = {}
    for id, parent, *_, detail in rows:  # some drivers give a column that is not used as well
        children.setdefault(int(parent), []).append((int(id), str(detail)))

    def under(parent: int) -> list[PlanNode]:
        return [_sqlite_step(text, under(id)) for id, text in children.pop(parent, [])]

    steps = under(0)
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else PlanNode("QUERY PLAN", children=steps)


def _sqlite_step(text: str, children: list[PlanNode]) -> PlanNode:
    first, _, rest = text.partition(" ")
    if first in ("SCAN", "SEARCH"):
        table, using, how = rest.partition(" USING ")
        return PlanNode(f"{first} {table}", f"USING {how}" if using else "", children=children)
    return PlanNode(text, children=children)


def postgres_plan(rows: Sequence[Sequence[Any]]) -> PlanNode | None:
    """Of EXPLAIN (FORMAT JSON)."""
    plan = _json(rows[0][-1]) if rows else None
    if not isinstance(plan, list) or not plan:
        return None
    root = cast("list[Fields]", plan)[0].get("Plan")
    return _postgres_step(cast("Fields", root)) if isinstance(root, dict) else None


def _postgres_step(step: Fields) -> PlanNode:
    label = str(step.get("Node Type", "?"))
    name = step.get("Index Name")
    relation = step.get("Relation Name") or step.get("CTE Name") or step.get("Function Name")
    if relation:
        alias = step.get("Alias")
        label += f" on {relation}" + (f" {alias}" if alias and alias != relation else "")
    if name:
        label += f" using {name}"
    if step.get("Join Type") not in (None, "Inner"):
        label += f" ({step['Join Type']})"
    loops = _number(step.get("Actual Loops")) or 1.0
    actual, ms = _number(step.get("Actual Rows")), _number(step.get("Actual Total Time"))
    return PlanNode(
        label,
        "; ".join([f"{name}: {_short(step[name])}" for name in _POSTGRES_DETAILS if name in step]),
        rows=_number(step.get("Plan Rows")),
        actual_rows=None if actual is None else actual * loops,
        cost=_number(step.get("Total Cost")),
        ms=None if ms is None else round(ms * loops, 3),
        children=[_postgres_step(each) for each in _list(step.get("Plans"))],
    )


def duckdb_plan(rows: Sequence[Sequence[Any]]) -> PlanNode | None:
    """Of EXPLAIN (FORMAT JSON)."""
    for row in rows:
        plan = _json(row[-1])
        if isinstance(plan, list) and plan:
            return _duckdb_step(cast("list[Fields]", plan)[0])
        if isinstance(plan, dict):
            fields = cast("Fields", plan)
            steps = _list(fields.get("operator")) or _list(fields.get("children"))
            return _duckdb_step(steps[0] if len(steps) == 1 else cast("Fields", plan))
    return None


def _duckdb_step(step: Fields) -> PlanNode:
    extra = step.get("extra_info")
    details: Fields = cast("Fields", extra) if isinstance(extra, dict) else {}
    table = details.get("Table") or details.get("Function") or ""
    names = ("name", "operator_name", "operator_type", "type")
    label = next((str(step[name]) for name in names if step.get(name)), "?")
    shown = [
        f"{name}: {_short(value)}"
        for name, value in details.items()
        if name not in ("Table", "Type", "Estimated Cardinality", "Function") and value
    ]
    seconds = _number(step.get("operator_timing", step.get("timing")))
    children = [_duckdb_step(each) for each in _list(step.get("children"))]
    own = None if seconds is None else seconds * 1000
    return PlanNode(
        f"{label.strip()} {table}".strip(),
        "; ".join(shown),
        rows=_number(details.get("Estimated Cardinality")),
        actual_rows=_number(step.get("operator_cardinality", step.get("intermediate_rows"))),
        ms=None if own is None else round(own + sum([each.ms or 0.0 for each in children]), 3),
        children=children,
    )


def mariadb_plan(rows: Sequence[Sequence[Any]]) -> PlanNode | None:
    """Of EXPLAIN FORMAT=JSON."""
    plan = _json(rows[0][-1]) if rows else None
    if not isinstance(plan, dict):
        return None
    steps = list(_mariadb_steps(cast("Fields", plan)))
    return steps[0] if len(steps) == 1 else PlanNode("query", children=steps)


def _mariadb_steps(fields: Fields) -> Iterator[PlanNode]:
    for name, value in fields.items():
        if name == "table" and isinstance(value, dict):
            yield _mariadb_table(cast("Fields", value))
        elif isinstance(value, dict):
            inner = cast("Fields", value)
            children = list(_mariadb_steps(inner))
            if children or name == "query_block":
                yield PlanNode(
                    name.replace("_", " "),
                    str(inner.get("message", "")),
                    cost=_number(inner.get("cost")),
                    ms=_number(inner.get("r_total_time_ms")),
                    children=children,
                )
        elif isinstance(value, list):
            children = [step for each in _list(value) for step in _mariadb_steps(each)]
            if children:
                yield PlanNode(name.replace("_", " "), children=children)


def _mariadb_table(table: Fields) -> PlanNode:
    name, how = str(table.get("table_name", "?")), str(table.get("access_type", ""))
    details = [f"key: {table['key']}"] if table.get("key") else []
    details += [
        f"{field.replace('_', ' ')}: {_short(table[field])}"
        for field in ("attached_condition", "index_condition", "message")
        if table.get(field)
    ]
    loops = _number(table.get("r_loops")) or 1.0
    actual = _number(table.get("r_rows"))
    return PlanNode(
        f"{how} {name}".strip(),
        "; ".join(details),
        rows=_number(table.get("rows")) or _number(table.get("rows_examined_per_scan")),
        actual_rows=None if actual is None else actual * loops,
        cost=_number(table.get("cost")),
        ms=_number(table.get("r_total_time_ms")),
        children=list(_mariadb_steps(table)),
    )


def _json(value: Any) -> Any:
    """A cell that holds JSON, as text or as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _list(value: Any) -> list[Fields]:
    if not isinstance(value, list):
        return []
    return [cast("Fields", each) for each in cast("list[Any]", value) if isinstance(each, dict)]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    found = _NUMBER.fullmatch(str(value).lstrip("~").strip())
    return float(found[0]) if found else None


def _short(value: Any) -> str:
    if isinstance(value, list):
        text = ", ".join([str(each) for each in cast("list[Any]", value)])
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
