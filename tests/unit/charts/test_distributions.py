"""The distribution of a column says how many rows have which values, and loses none of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidegate.charts.distribution import Distribution, distribution_of
from tidegate.model.results import Column, ColumnKind


def made(kind: ColumnKind, cells: list[Any]) -> Distribution:
    return distribution_of(Column("c", kind, kind), cells)


def bars(found: Distribution) -> list[tuple[str, int]]:
    return [(each.label, each.count) for each in found.bars]


def test_the_commonest_texts_come_first_and_the_others_are_one() -> None:
    found = made("text", [*"aaabbcdefg", None])
    assert (found.rows, found.nulls, found.distinct, found.named) == (11, 1, 7, True)
    assert bars(found) == [("a", 3), ("b", 2), ("c", 1), ("d", 1), ("e", 1), ("other (2)", 2)]


def test_numbers_lie_in_bins_also_where_one_is_empty() -> None:
    found = made("decimal", [Decimal(n) / 10 for n in (0, 1, 2, 3, 4, 5, 6, 7, 99)])
    assert bars(found)[:2] == [("0 – 1", 8), ("1 – 2", 0)]
    assert (len(found.bars), sum([each.count for each in found.bars])) == (10, 9)


def test_a_few_numbers_are_named() -> None:
    assert bars(made("integer", [2, 1, 2])) == [("2", 2), ("1", 1)]


def test_times_lie_in_the_smallest_unit_that_is_not_too_many() -> None:
    days = [f"2024-{month:02}-01" for month in range(1, 13) for _ in range(month)]
    assert bars(made("text", days))[:2] == [("2024-01", 1), ("2024-02", 2)]
    months = made("date", [f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(84)])
    assert bars(months)[0] == ("2024-01", 7)


@pytest.mark.parametrize("kind", ["bytes", "json", "array"])
def test_what_has_no_order_has_its_nulls_alone(kind: ColumnKind) -> None:
    found = made(kind, ["", None])
    assert (found.nulls, found.distinct, found.bars) == (1, None, ())


def test_a_column_of_nulls_has_no_bars() -> None:
    assert made("integer", [None, None]) == Distribution("c", 2, 2)
