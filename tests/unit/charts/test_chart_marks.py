"""The data of charts are exact, of all rows, and say what they leave out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidegate.charts.chart import Chart
from tidegate.charts.distribution import distribution_of
from tidegate.charts.marks import MOST_MARKS, compute_chart
from tidegate.charts.spec import read_spec
from tidegate.charts.suggestion import suggest_spec
from tidegate.errors import TidegateError
from tidegate.model.results import Column, ColumnKind

KIND = {"field": "kind", "type": "nominal"}
COUNT = {"aggregate": "count"}


def columns(**kinds: ColumnKind) -> tuple[Column, ...]:
    return tuple([Column(name, kind, kind) for name, kind in kinds.items()])


def chart(
    encoding: dict[str, Any], rows: list[list[Any]], mark: str = "bar", **kinds: Any
) -> Chart:
    return compute_chart(read_spec({"mark": mark, "encoding": encoding}), columns(**kinds), [rows])


def summed(field: str = "size") -> dict[str, Any]:
    return {"field": field, "aggregate": "sum"}


def test_sums_of_large_integers_and_of_decimals_are_exact() -> None:
    rows = [["a", str(2**63 - 1), "0.1"], ["a", str(2**63 - 1), "0.2"], ["a", "1", "1e-20"]]
    kinds: dict[str, Any] = {"kind": "text", "size": "integer", "price": "decimal"}
    made = chart({"x": KIND, "y": summed()}, rows, **kinds)
    assert made.rows == (("a", str(2**64 - 1)),)
    made = chart({"x": KIND, "y": summed("price")}, rows, **kinds)
    assert made.rows == (("a", "0.30000000000000000001"),)


def test_a_mean_and_a_median_of_decimals_are_decimals() -> None:
    rows = [["a", Decimal("0.10")], ["a", Decimal("0.25")]]
    for op in ("mean", "median"):
        y = {"field": "price", "aggregate": op}
        assert chart({"x": KIND, "y": y}, rows, kind="text", price="decimal").rows[0][1] == "0.175"


def test_a_sum_of_floats_does_not_depend_on_their_order() -> None:
    rows = [["a", 1e100], ["a", 1.0], ["a", -1e100]]
    assert chart({"x": KIND, "y": summed()}, rows, kind="text", size="float").rows[0][1] == "1.0"


def test_a_bin_begins_where_it_is_written_to_begin() -> None:
    rows = [["0.3"], ["0.0"], ["1.0"], ["0.7"], ["0.1"]]
    x = {"field": "rate", "bin": True}
    for kind in ("float", "decimal"):
        made = chart({"x": x, "y": COUNT}, rows, rate=kind)
        assert [each[0] for each in made.rows] == [
            "0.0 – 0.1", "0.1 – 0.2", "0.3 – 0.4", "0.7 – 0.8", "0.9 – 1.0",
        ]  # fmt: skip


def test_null_is_a_category_of_its_own_and_not_the_text() -> None:
    made = chart({"x": KIND, "y": COUNT}, [[None], ["NULL"], [None]], kind="text")
    assert made.x.labels == ("NULL", "NULL")
    assert (made.x.null, made.rows) == (0, ((None, "2"), ("NULL", "1")))


def test_nulls_that_an_aggregate_leaves_out_are_said() -> None:
    rows = [["a", "1"], ["a", None], ["b", None]]
    made = chart({"x": KIND, "y": summed()}, rows, kind="text", size="integer")
    assert made.rows == (("a", "1"),)
    assert made.notes == (
        "size is NULL in 2 rows, which sum leaves out.",
        "1 of 2 marks has no place: a value is NULL, too large, or not above 0 on a log scale.",
    )


def test_words_among_numbers_are_said_and_not_taken_for_zero() -> None:
    encoding = {"x": {"field": "size", "type": "quantitative"}, "y": COUNT}
    made = chart(encoding, [[5], ["many"], [None], [Decimal("NaN")]], "point", size="other")
    assert made.notes[:3] == (
        "size is NULL in 1 row, which is not drawn.",
        "size is not a number in 1 row, which is not drawn.",
        "size is not a finite number in 1 row, which is not drawn.",
    )
    assert made.rows == (("5", "1"),)


@pytest.mark.parametrize("kind", ["integer", "decimal"])
@pytest.mark.parametrize("text", ["1_0e200000", "1_0e-200000"])
def test_a_number_that_is_short_only_as_it_is_written_is_left_out(
    kind: ColumnKind, text: str
) -> None:
    cells = [text, "2", "3.5"]
    aggregated = [chart({"x": KIND, "y": {"field": "size", "aggregate": op}},
                  [["a", each] for each in cells], kind="text", size=kind)
                  for op in ("sum", "mean", "median", "max")]  # fmt: skip
    binned = chart({"x": {"field": "size", "bin": True}, "y": COUNT}, [[c] for c in cells],
                   size=kind)  # fmt: skip
    for made in (*aggregated, binned):
        assert made.notes[0].startswith("size is a number of too many digits in 1 row, which")
    assert aggregated[0].rows == (("a", "5.5"),)
    bars = distribution_of(Column("size", kind, kind), [*cells, *map(str, range(9))]).bars
    assert sum(each.count for each in bars) == 11


def test_what_has_no_place_on_a_log_scale_is_said() -> None:
    y = {"field": "size", "type": "quantitative", "scale": {"type": "log"}}
    made = chart({"x": KIND, "y": y}, [["a", 10], ["b", 0]], kind="text", size="integer")
    assert [each[0] for each in made.rows] == ["a"]
    assert made.notes[0].startswith("1 of 2 marks has no place")


def test_too_many_categories_become_other_of_all_their_rows() -> None:
    rows = [[str(n), str(n)] for n in range(MOST_MARKS + 100)]
    made = chart({"x": {**KIND, "sort": "-y"}, "y": summed()}, rows, kind="text", size="integer")
    assert len(made.marks) == MOST_MARKS
    assert (made.x.labels[-1], made.x.other) == ("other (101)", 101)
    assert made.rows[0] == (str(MOST_MARKS + 99), str(MOST_MARKS + 99))
    assert made.rows[-1] == ("other (101)", str(sum(range(101))))
    assert made.notes == (
        "kind has 5,100 values: the 4,999 largest are shown, and the others together as"
        " other (101).",
    )


def test_too_many_colors_become_other() -> None:
    rows = [[str(n % 30), "x"] for n in range(60)]
    encoding = {"x": {"field": "size", "type": "nominal"}, "y": COUNT, "color": KIND}
    made = chart(encoding, rows, kind="text", size="text")
    assert made.color is not None
    assert (len(made.color.labels), made.color.labels[-1]) == (12, "other (19)")
    assert sum([int(each[1] or 0) for each in made.rows]) == 60


def test_points_that_are_too_many_are_said() -> None:
    rows = [[n, n] for n in range(MOST_MARKS + 1)]
    encoding = {
        "x": {"field": "kind", "type": "quantitative"},
        "y": {"field": "size", "type": "quantitative"},
    }
    made = chart(encoding, rows, "point", kind="integer", size="integer")
    assert len(made.marks) == MOST_MARKS
    assert made.notes[0].startswith("other (1): only the first 5,000 marks are drawn")


def test_times_with_a_zone_lie_in_utc() -> None:
    x = {"field": "day", "timeUnit": "yearmonthdate"}
    rows = [["2024-01-01T00:30:00+02:00"], ["2023-12-31T23:00:00Z"]]
    made = chart({"x": x, "y": COUNT}, rows, day="timestamp_tz")
    assert made.rows == (("2023-12-31", "2"),)


def test_texts_that_are_no_times_are_said() -> None:
    x = {"field": "day", "timeUnit": "year"}
    made = chart({"x": x, "y": COUNT}, [["2024-02-30"], ["20240101"], ["2024-02-03"]], day="text")
    assert made.rows == (("2024", "1"),)
    assert made.notes[0] == "day is not a time in 2 rows, which are not drawn."


def test_the_order_of_a_list_is_kept_and_others_follow_as_they_came() -> None:
    x = {**KIND, "sort": ["c", "a"]}
    made = chart({"x": x, "y": COUNT}, [["z"], ["a"], ["b"], ["c"]], kind="text")
    assert made.x.labels == ("c", "a", "z", "b")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("kinds", "The result has no column kinds"),
        ("twice", "The result has 2 columns named twice"),
        ("kind", "`encoding.y` needs numbers, and kind is text"),
    ],
)
def test_a_column_that_does_not_fit_is_named(field: str, message: str) -> None:
    found = (*columns(kind="text", twice="integer"), Column("twice", "integer", "integer"))
    spec = {"mark": "bar", "encoding": {"x": KIND, "y": summed(field)}}
    with pytest.raises(TidegateError, match=message):
        compute_chart(read_spec(spec), found, [])


@pytest.mark.parametrize(
    ("kinds", "row", "mark", "shown"),
    [
        ({"day": "date", "size": "integer"}, ["2024-01-0{}", "{}"], "line", ("day", "size")),
        ({"day": "text", "size": "other"}, ["2024-01-0{}", 5], "line", ("day", "size")),
        ({"day": "timestamp"}, ["2024-01-0{}T00:00:00"], "bar", ("day", None)),
        ({"order_id": "integer", "kind": "text", "size": "decimal"}, ["{}", "k{}", "2"], "bar",
         ("kind", "size")),
        ({"size": "integer", "price": "float"}, ["{}", "{}"], "point", ("size", "price")),
        ({"size": "integer"}, ["{}"], "bar", ("size", None)),
        ({"kind": "text", "part": "text"}, ["k{}", "p"], "bar", ("kind", None)),
    ],
)  # fmt: skip
def test_a_result_gets_a_chart_that_fits_its_columns(
    kinds: dict[str, ColumnKind], row: list[Any], mark: str, shown: tuple[str, str | None]
) -> None:
    rows = [
        [each.format(n) if isinstance(each, str) else each for each in row] for n in range(1, 9)
    ]
    spec = suggest_spec(columns(**kinds), rows)
    assert spec is not None
    encoding = spec["encoding"]
    assert (spec["mark"], encoding["x"].get("field"), encoding["y"].get("field")) == (mark, *shown)
    assert compute_chart(read_spec(spec), columns(**kinds), [rows]).marks


def test_a_result_without_a_column_to_draw_gets_none() -> None:
    assert suggest_spec(columns(raw="bytes"), [[b"1"]]) is None
    assert suggest_spec(columns(size="integer"), []) is None
