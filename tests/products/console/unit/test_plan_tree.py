"""Plans of databases are read as trees of one form; what is unknown is None and no guess."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.products.console.plan_tree import (
    duckdb_plan,
    mariadb_plan,
    plan_text,
    postgres_plan,
    read_plan,
    sqlite_plan,
)
from tidegate.products.console.statements import tree_of


def test_rows_with_parents_are_a_tree() -> None:
    plan = sqlite_plan([
        (2, 0, "SCAN orders"),
        (5, 0, "SEARCH customers USING INTEGER PRIMARY KEY (rowid=?)"),
        (9, 5, "USE TEMP B-TREE FOR ORDER BY"),
    ])  # fmt: skip
    assert plan is not None
    assert [child.label for child in plan.children] == ["SCAN orders", "SEARCH customers"]
    assert plan.children[1].detail == "USING INTEGER PRIMARY KEY (rowid=?)"
    assert plan.children[1].children[0].label.startswith("USE TEMP")
    assert "    USE TEMP B-TREE" in plan_text(plan)
    alone = sqlite_plan([(2, 0, "SCAN orders")])
    assert alone is not None and alone.label == "SCAN orders"


def test_a_plan_of_postgres_has_its_figures_for_all_loops() -> None:
    inner = {
        "Node Type": "Index Scan", "Relation Name": "orders", "Alias": "o", "Index Name": "by_id",
        "Index Cond": "(id = 1)", "Plan Rows": 2, "Total Cost": 8.5, "Actual Rows": 3,
        "Actual Loops": 4, "Actual Total Time": 0.5,
    }  # fmt: skip
    outer = {"Node Type": "Nested Loop", "Join Type": "Left", "Plans": [inner], "Plan Rows": 9}
    plan = postgres_plan([[json.dumps([{"Plan": outer}])]])
    assert plan is not None
    assert (plan.label, plan.rows, plan.ms) == ("Nested Loop (Left)", 9, None)
    (child,) = plan.children
    assert (child.label, child.detail) == (
        "Index Scan on orders o using by_id",
        "Index Cond: (id = 1)",
    )
    assert (child.actual_rows, child.cost, child.ms) == (12, 8.5, 2.0)
    assert postgres_plan([[[{"Plan": outer}]]]) == plan


def test_a_plan_of_mariadb_is_read_through_its_operations() -> None:
    table = {
        "table_name": "o",
        "access_type": "ref",
        "key": "k",
        "rows": 3,
        "attached_condition": "x",
    }
    block = {"query_block": {"cost": 0.1, "filesort": {"temporary_table": {"nested_loop": [
        {"table": {"table_name": "c", "access_type": "ALL"}}, {"table": table},
    ]}}}}  # fmt: skip
    plan = mariadb_plan([[json.dumps(block)]])
    assert plan is not None and (plan.label, plan.cost) == ("query block", 0.1)
    loop = plan.children[0].children[0].children[0]
    assert [each.label for each in loop.children] == ["ALL c", "ref o"]
    assert (loop.children[1].detail, loop.children[1].rows) == ("key: k; attached condition: x", 3)


def test_a_plan_of_duckdb_counts_the_time_of_children_in() -> None:
    extra = {"Table": "t", "Estimated Cardinality": "7", "Filters": "a=1"}
    scan = {"type": "TABLE_SCAN", "timing": 0.002, "intermediate_rows": 5, "extra_info": extra}
    plan = duckdb_plan([["analyzed_plan", json.dumps({"operator": [
        {"type": "PROJECTION", "timing": 0.001, "extra_info": {}, "children": [scan]},
    ]})]])  # fmt: skip
    assert plan is not None and (plan.label, plan.ms) == ("PROJECTION", 3.0)
    (child,) = plan.children
    assert (child.label, child.rows, child.actual_rows) == ("TABLE_SCAN t", 7, 5)
    assert child.detail == "Filters: a=1"


@pytest.mark.parametrize("rows", [[], [["no JSON"]], [["[]"]], [[None]], [["3"]], [['{"a": 1}']]])
def test_a_plan_of_another_form_is_no_tree(rows: list[list[object]]) -> None:
    assert postgres_plan(rows) is None
    for read in (duckdb_plan, mariadb_plan):
        tree = read(rows)
        assert tree is None or tree.children == []
    assert sqlite_plan([]) is None


@pytest.mark.parametrize(("levels", "shown"), [(150, True), (300, False), (5_000, False)])
def test_a_plan_of_many_levels_is_shown_as_its_text(levels: int, shown: bool) -> None:
    step = '{"Node Type":"Append","Plans":[' * levels + '{"Node Type":"Result"}' + "]}" * levels
    plan = tree_of(postgres_plan, [[f'[{{"Plan":{step}}}]']], "")
    assert (plan["tree"] is not None, plan["reason"] == "") == (shown, shown)
    assert "Append" in plan["text"]
    json.dumps(plan)


@pytest.mark.parametrize("read", [duckdb_plan, mariadb_plan, postgres_plan, sqlite_plan])
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [["one"]],
        [["a", "b", "c"]],
        [[1, 2, 3, 4, 5, 6]],
        [[None, None, None, None]],
        [['[{"Plan": {"Plans": [7], "Actual Rows": [], "Filter": {}}}]']],
        [['[{"Plan": [1]}]']],
        [["[1]"]],
        [['{"query_block": {"table": {"rows": [1], "key": {}}}}']],
        [["desk.tickets", "list", "GET", "team", "1", ""]],
    ],
)
def test_a_plan_of_another_form_is_no_tree_and_no_fault(read: Any, rows: Any) -> None:
    found = read_plan(read, rows)
    assert found is None or plan_text(found)
