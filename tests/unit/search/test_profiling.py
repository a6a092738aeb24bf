"""What a sample of rows says of its columns."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.model.profiles import ColumnProfile
from tidegate.search.profiling import summarize, with_bounds, with_statistics, without_range


def profile(values: list[Any], *, complete: bool = True) -> ColumnProfile | None:
    return summarize(["c"], [(value,) for value in values], complete).get("c")


def test_codes_come_with_the_most_frequent_first() -> None:
    too_few = ["no", "yes", "yes", None]
    assert profile(too_few, complete=False) is None
    assert profile(too_few) == ColumnProfile(("yes", "no"))  # all there are, in a few words
    assert profile(["n" * 40, "y" * 40]) == ColumnProfile(("n" * 40, "y" * 40))
    assert profile(["n" * 40, "y" * 40, "x"]) is None
    assert profile(["no", "yes", "yes", "yes", "no"]) == ColumnProfile(("yes", "no"))


def test_of_a_part_of_the_rows_there_may_be_other_values() -> None:
    assert profile(["yes", "no"] * 5, complete=False) == ColumnProfile(("yes", "no"), more=True)


def test_of_many_values_the_commonest_are_shown() -> None:
    many = [f"v{number}" for number in range(12) for _ in range(12 - number)]
    known = profile(many)
    assert known is not None and known.more
    assert known.values == tuple(f"v{number}" for number in range(8))


def test_free_text_and_long_values_are_not_shown() -> None:
    assert profile([f"a sentence, number {number}" for number in range(50)]) is None
    assert profile(["x" * 41, "y" * 41] * 10) is None


@pytest.mark.parametrize(
    "long",
    [
        "1" + " " * 200_000 + "x",
        "1" * 200_000 + "x",
        "2026-01-02 10:00, and then a sentence that someone wrote",
        "1/2/2026, and then a sentence that someone wrote into it",
        "2026-01-02T10:00:00." + "1" * 100,
        "1" * 100,
    ],
)
def test_a_long_value_is_never_an_example(long: str) -> None:
    assert profile([long]) is None
    assert profile([long, "2026-01-02"]) is None
    assert profile([long], complete=False) is None


def test_numbers_are_codes_only_if_they_are_few_and_repeat() -> None:
    assert profile([1, 2, 3] * 5) == ColumnProfile((1, 2, 3))
    assert profile(list(range(100))) is None
    assert profile([1, 2, 3, 1]) is None
    assert profile([True, False] * 10) is None


def test_dates_have_a_range_only_where_all_rows_were_read() -> None:
    days = ["2026-03-01", "2026-01-31", "2026-02-15T10:00:00Z"]
    assert profile(days) == ColumnProfile(low="2026-01-31", high="2026-03-01")
    assert profile(days, complete=False) == ColumnProfile(example="2026-03-01")


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        (["1200.50", "$3", "4%"], "numbers"),
        (["01/31/2026", "02/15/2026"], "dates"),
        (["5 Mar 2026", "17 April 2025"], "dates"),
        (["May  ", "June "] * 3, "blanks at the end"),
        ([" May", "June"] * 3, "blanks around"),
        (["Yes", "yes", "No"] * 3, "mixed case"),
        ([None, None], "only null"),
    ],
)
def test_what_is_odd_is_said(values: list[Any], remark: str) -> None:
    known = profile(values)
    assert known is not None
    assert known.remarks == (remark,)


@pytest.mark.parametrize(
    "form", ["Jan 2{:03}", "2{:03}/07", "07/2{:03}", "January 2{:03}", "2{:03}07", "Sept-2{:03}"]
)
def test_a_text_that_holds_months_shows_some_however_many_there_are(form: str) -> None:
    months = [form.format(number) for number in range(50)]
    known = profile(months, complete=False)
    assert known == ColumnProfile(tuple(months[:3]), more=True, remarks=("months",))


def test_dates_that_stand_for_months_are_said_to() -> None:
    months = [f"2026-{number:02}-01" for number in range(1, 8)]
    said = ColumnProfile(low="2026-01-01", high="2026-07-01", remarks=("first of month",))
    assert profile(months) == said
    part = profile(months, complete=False)
    assert part == ColumnProfile(example="2026-01-01", remarks=("first of month",))
    assert part is not None
    known = with_bounds({"c": part}, ["c"], ["2025-01-01", "2026-07-01"])["c"]
    assert (known.low, known.high, known.remarks) == ("2025-01-01", "2026-07-01", said.remarks)


def test_only_null_is_said_of_whole_tables_alone() -> None:
    known = profile([None, None], complete=False)
    assert known is not None and known.remarks == ("mostly null",)


def test_no_rows_say_nothing() -> None:
    assert summarize(["a", "b"], [], True) == {}


def test_values_of_several_types_say_nothing() -> None:
    assert profile(["a", 1] * 10) is None


def test_statistics_add_values_to_codes_and_about_a_range_to_dates() -> None:
    rows = [["open", 1, "2026-01-02", "x" * 50, "1.5"], ["held", 2, "2026-01-03", "y", "2"]] * 10
    names = ("state", "level", "day", "note", "cost")
    sampled = summarize(names, rows, complete=False)
    noted = [
        ["state", ["held", "lost", "Open"], None, None],
        ["level", ["1", "3"], None, None],
        ["day", ["2025-05-05"], "2019-01-01", "2026-06-30"],
        ["note", ["secret"], "a", "z"],
        ["cost", None, "1", "9"],
        ["hidden", ["never"], "a", "b"],
    ]
    better = with_statistics(sampled, noted, names)
    assert better["state"].values == ("held", "lost", "Open", "open")
    assert better["state"].more and better["state"].remarks == ("mixed case",)
    assert better["level"].values == (1, 2, 3)
    assert better["day"] == ColumnProfile(low="2019-01-01", high="2026-06-30", about=True)
    assert "note" not in better and "hidden" not in better
    assert better["cost"] == sampled["cost"]
    assert without_range(better) == ["day"]
    assert with_bounds(better, ["day"], ["2018-01-01", "2026-07-01"])["day"] == ColumnProfile(
        low="2018-01-01", high="2026-07-01"
    )


def test_statistics_of_another_kind_than_the_sample_change_nothing() -> None:
    sampled = summarize(("state", "level"), [["open", 1], ["held", 2]] * 10, complete=False)
    long, many = "x" * 41, [f"v{number}" for number in range(31)]
    for common in ([long], many):
        assert with_statistics(sampled, [["state", common, None, None]], ("state",)) == sampled
    numbers = [["level", [str(number) for number in range(9)], None, None]]
    assert with_statistics(sampled, numbers, ("level",)) == sampled
    assert with_bounds(sampled, ["state"], [None, None]) == sampled


def test_blanks_that_the_database_adds_are_not_shown() -> None:
    rows = [("ab  ", "ab  ")] * 5
    found = summarize(["fixed", "free"], rows, True, padded={"fixed"})
    assert found["fixed"] == ColumnProfile(("ab",))
    assert found["free"].remarks == ("blanks at the end",)
    noted = [("fixed", ["ab  ", "cd  "], None, None)]
    better = with_statistics(found, noted, ["fixed"], padded={"fixed"})
    assert better["fixed"].values == ("ab", "cd")


def test_an_example_of_dates_shows_which_part_is_the_day() -> None:
    known = profile([f"{day:02d}.01.2026" for day in range(1, 29)])
    assert known == ColumnProfile(example="28.01.2026", remarks=("dates",))


def test_dates_without_marks_are_no_numbers() -> None:
    assert profile([f"202601{day}" for day in range(10, 30)]) == ColumnProfile(
        example="20260129", remarks=("dates",)
    )
    known = profile([f"9{number}4567" for number in range(100, 140)])
    assert known is not None and known.remarks == ("numbers",)


@pytest.mark.parametrize(
    ("texts", "example", "remark"),
    [
        (["1.5", "30,000", "1,250.75"], "30,000", "numbers with commas"),
        (["1", "24,5", "0,25"], "24,5", "numbers with decimal comma"),
        (["1.5", "$12"], "1.5", "numbers"),
    ],
)
def test_numbers_with_commas_say_what_the_comma_is(
    texts: list[str], example: str, remark: str
) -> None:
    assert profile(texts) == ColumnProfile(example=example, remarks=(remark,))
