"""What is measured is what was asked for: a name that means nothing is refused, nothing is
installed that has no part, and the report is about what was measured."""

from __future__ import annotations

import pytest
from bench.__main__ import chosen_workloads, needs_servers

from support.bench_report import shown


def test_workloads_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert chosen_workloads(["point-d", "path"]) == [
        "point-duckdb-repeated", "point-duckdb-fresh", "path"
    ]  # fmt: skip
    assert "memory" in chosen_workloads([])


@pytest.mark.parametrize("only", [["paht"], ["path", "none"], [""]])
def test_a_name_that_no_workload_has_is_refused(only: list[str]) -> None:
    with pytest.raises(SystemExit, match=f"`{only[-1]}`.*point-repeated.*path"):
        chosen_workloads(only)


def test_servers_are_started_for_what_measures_them() -> None:
    assert not needs_servers(chosen_workloads(["lay", "pa", "judge"]))
    assert needs_servers(chosen_workloads(["path", "cold-start"]))


def test_a_partial_report_has_no_aims_of_what_was_not_measured() -> None:
    whole = shown({})
    assert "not measured" in whole
    part = shown({}, partial=True)
    assert "not measured" not in part
    assert "## Aims" not in part
