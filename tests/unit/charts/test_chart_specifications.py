"""A specification means what it does in Vega-Lite; anything else is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.charts.spec import read_spec
from tidegate.errors import TidegateError

COUNT = {"aggregate": "count"}
KIND = {"field": "kind", "type": "nominal"}
SIZE = {"field": "size", "type": "quantitative"}
DAY = {"field": "day", "type": "temporal"}


def spec(mark: Any = "bar", x: Any = KIND, y: Any = COUNT, **others: Any) -> dict[str, Any]:
    return {"mark": mark, "encoding": {"x": x, "y": y, **others}}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "The chart"),
        ({**spec(), "transform": []}, "`transform`"),
        ({**spec(), "data": {"url": "file"}}, "`data`"),
        (spec("arc"), "`mark`"),
        (spec({"type": "bar"}), "`mark`"),
        ({"mark": "bar", "encoding": {"x": KIND}}, "`encoding.y`"),
        (spec(size=SIZE), "`encoding.size`"),
        (spec(y={"field": "size", "type": "geojson"}), "`encoding.y.type`"),
        (spec(y={"field": "size"}), "`encoding.y.type`"),
        (spec(y={"type": "quantitative"}), "`encoding.y.field`"),
        (spec(y={**SIZE, "aggregate": "stdev"}), "`encoding.y.aggregate`"),
        (spec(y={**SIZE, "axis": {"title": "x"}}), "`encoding.y.axis`"),
        (spec(x={**SIZE, "bin": {"step": 5}}), "`encoding.x.bin.step`"),
        (spec(x={**SIZE, "bin": {"maxbins": 1}}), "`encoding.x.bin.maxbins`"),
        (spec(x={**DAY, "timeUnit": "yearweek"}), "`encoding.x.timeUnit`"),
        (spec(x={**DAY, "timeUnit": "year", "bin": True}), "`encoding.x`"),
        (spec(y={**SIZE, "scale": {"zero": False}}), "`encoding.y.scale.zero`"),
        (spec(y={**SIZE, "scale": {"type": "sqrt"}}), "`encoding.y.scale.type`"),
        (spec(x={**KIND, "sort": {"field": "size"}}), "`encoding.x.sort`"),
        (spec(x={**KIND, "sort": "color"}), "`encoding.x.sort`"),
        (spec(x=DAY, y=KIND), "bar needs x or y"),
        (spec("rect", x=SIZE), "`encoding.x` of a rect"),
        (spec("line", y={**SIZE, "stack": "zero"}), "`encoding.y.stack`"),
        (spec(y={**SIZE, "aggregate": "mean"}, color=DAY), "`encoding.y.stack` must be null"),
        (spec(y={**SIZE, "scale": {"type": "log"}}, color=DAY), "`encoding.y.stack` must be null"),
    ],
)
def test_what_is_not_taken_is_refused_by_its_name(value: Any, named: str) -> None:
    with pytest.raises(TidegateError) as refused:
        read_spec(value)
    assert named in refused.value.message


def test_the_type_may_be_left_out_where_something_else_says_it() -> None:
    read = read_spec(spec(x={"field": "day", "timeUnit": "utcyearmonth"}))
    assert (read.x.type, read.x.time_unit, read.y.type) == ("temporal", "yearmonth", "quantitative")


def test_a_mean_with_a_color_is_taken_once_it_says_that_it_does_not_stack() -> None:
    mean = {**SIZE, "aggregate": "average", "stack": None}
    assert read_spec(spec(y=mean, color=DAY)).stack is None
