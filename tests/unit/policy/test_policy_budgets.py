"""What a caller asks for is clamped to what the operator set."""

from __future__ import annotations

import pytest

from tidegate.pages import Limits
from tidegate.policy.budgets import Budgets


def test_who_asks_for_nothing_gets_the_defaults() -> None:
    assert Budgets().limits() == Limits(max_rows=500, max_bytes=4_194_304, timeout_s=30.0)


@pytest.mark.parametrize(
    ("asked", "given"), [(-5, 1), (0, 1), (1, 1), (700, 700), (10_000, 10_000), (10**9, 10_000)]
)
def test_rows_are_clamped(asked: int, given: int) -> None:
    assert Budgets().limits(rows=asked).max_rows == given


@pytest.mark.parametrize(
    ("asked", "given"),
    [(-1, 1), (0, 1), (0.5, 1), (1, 1), (12.5, 12.5), (300, 300), (10**9, 300)],
)
def test_seconds_are_clamped(asked: float, given: float) -> None:
    assert Budgets().limits(timeout_s=asked).timeout_s == given


def test_seconds_that_are_no_number_get_the_shortest_time() -> None:
    assert Budgets().limits(timeout_s=float("nan")).timeout_s == 1
    assert Budgets().limits(timeout_s=float("inf")).timeout_s == 300


def test_bytes_are_clamped() -> None:
    assert Budgets().limits(max_bytes=0).max_bytes == 1
    assert Budgets().limits(max_bytes=10**12).max_bytes == 4_194_304


def test_the_operator_can_set_lower_bounds_but_no_longer_time() -> None:
    budgets = Budgets(default_rows=50, max_rows=100, max_timeout_s=10_000)
    assert budgets.limits().max_rows == 50
    assert budgets.limits(rows=500).max_rows == 100
    assert budgets.limits(timeout_s=5_000).timeout_s == 300
