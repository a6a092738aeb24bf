"""The arithmetic that the report rests on."""

import pytest
from bench.figures import median, paired, percentile, rotate, spread


def test_a_spread_is_median_least_and_greatest() -> None:
    assert spread([3.0, 1.0, 10.0]) == (3.0, 1.0, 10.0)
    with pytest.raises(ValueError, match="no rounds"):
        spread([])


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2


def test_a_ratio_is_taken_within_rounds() -> None:
    # The second round was twice as slow for both: the ratio does not see it.
    assert paired([2.0, 4.0, 2.0], [1.0, 2.0, 1.0]) == (2.0, 2.0, 2.0)


def test_rounds_of_unequal_number_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        paired([1.0], [1.0, 2.0])


def test_every_server_is_first_in_some_round() -> None:
    names = ["a", "b", "c"]
    assert [rotate(names, turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotate(names, 1) == ["b", "c", "a"]


def test_the_median_is_of_one_figure_wherever_it_is_in_a_round() -> None:
    rounds = [{"reads": [{"cpu": each}]} for each in (3, 1, 2, 10)]
    assert median(rounds, "reads", 0, "cpu") == 2.0
