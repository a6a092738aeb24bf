"""Charts have the data that Vega-Lite itself computes from the same specification and rows."""

from __future__ import annotations

import datetime
import json
import math
import os
import random
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from external.install import node, node_modules
from tidegate.charts.chart import Axis, Chart
from tidegate.charts.marks import compute_chart
from tidegate.charts.spec import Channel, ChartSpec, read_spec
from tidegate.charts.time_units import TIME_UNITS, unit_text
from tidegate.charts.values import label_of
from tidegate.errors import TidegateError
from tidegate.model.results import Column

SCRIPT = Path(__file__).parent / "vega_data.mjs"
CASES = int(os.environ.get("TIDEGATE_CHARTS", "150"))
COLUMNS = (
    Column("day", "timestamp", "timestamp"),
    Column("kind", "text", "text"),
    Column("part", "text", "text"),
    Column("size", "integer", "integer"),
    Column("price", "numeric", "decimal"),
    Column("rate", "double precision", "float"),
    Column("open", "boolean", "boolean"),
)


class Case(NamedTuple):
    """A specification, the rows as an engine gives them, and as JSON has them."""

    spec: dict[str, Any]
    rows: list[list[Any]]
    values: list[dict[str, Any]]


def test_many_specifications_give_the_data_that_vega_lite_computes() -> None:
    cases = generated_cases(CASES)
    asked = {
        "modules": str(node_modules()),
        "cases": [{"spec": case.spec, "values": case.values} for case in cases],
    }
    done = subprocess.run(
        [node(), SCRIPT], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for case, found in zip(cases, json.loads(done.stdout), strict=True):
        spec = read_spec(case.spec)
        chart = compute_chart(spec, COLUMNS, [case.rows])
        assert chart.notes == tuple([each for each in chart.notes if "other (" not in each])
        assert_same(our_marks(spec, chart), vega_marks(spec, found["rows"]), case)
        for channel in spec.channels:
            if channel.is_discrete:
                axis = {"x": chart.x, "y": chart.y, "color": chart.color}[channel.name]
                assert axis is not None
                shown = [label(channel, each) for each in found["domains"][channel.name]]
                # A category without a mark is on our axis all the same.
                assert [each for each in axis.labels if each in shown] == shown, case.spec


def assert_same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]], case: Case) -> None:
    assert len(ours) == len(theirs), case.spec
    for our, their in zip(sorted(ours, key=rank), sorted(theirs, key=rank), strict=True):
        for one, other in zip(our, their, strict=True):
            same = one == other or (
                isinstance(one, float) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
            )
            assert same, (case.spec, our, their)


def rank(mark: tuple[Any, ...]) -> list[tuple[str, float]]:
    return [
        (each, 0.0)
        if isinstance(each, str)
        else ("", each if each > 1e11 else float(f"{each:.7g}"))
        for each in mark
    ]


def our_marks(spec: ChartSpec, chart: Chart) -> list[tuple[Any, ...]]:
    """Each mark as what Vega-Lite has of it."""
    found: list[tuple[Any, ...]] = []
    for x0, x1, y0, y1, color in chart.marks:
        mark: list[Any] = []
        channels: list[tuple[Channel, Axis | None, Any, Any]] = [
            (spec.x, chart.x, x0, x1),
            (spec.y, chart.y, y0, y1),
        ]
        if spec.color is not None:
            channels.append((spec.color, chart.color, color, None))
        for channel, axis, begin, end in channels:
            assert axis is not None
            if channel.is_discrete:
                mark.append(axis.labels[int(begin or 0)])
            else:
                is_range = has_end(spec, channel) and end is not None
                mark += [float(begin or 0), float(end or 0)] if is_range else [begin]
        if None not in mark:
            found.append(tuple(mark))
    return found


def vega_marks(spec: ChartSpec, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for row in rows:
        mark: list[Any] = []
        for channel in spec.channels:
            name = vega_name(channel)
            if spec.stack is not None and channel.name == spec.value_axis:
                mark += [row[f"{name}_start"], row[f"{name}_end"]]
            elif channel.is_discrete:
                mark.append(label(channel, row[name]))
            elif has_end(spec, channel):
                mark += [row[name], row[f"{name}_end"]]
            else:
                value = row.get(name)
                if channel.type == "temporal" and isinstance(value, str):
                    value = millis(value)
                mark.append(None if value is None else float(value))
        if None not in mark:
            found.append(tuple([float(e) if isinstance(e, int) else e for e in mark]))
    return found


def has_end(spec: ChartSpec, channel: Channel) -> bool:
    """Whether a mark has a width there: what Vega-Lite fills up in areas has a beginning alone."""
    if spec.stack is not None and channel.name == spec.value_axis:
        return True
    if channel.name == "color":
        return False
    if channel.time_unit is not None:
        return spec.mark in ("bar", "rect")
    return channel.maxbins is not None and spec.mark != "area"


def vega_name(channel: Channel) -> str:
    if channel.aggregate == "count":
        return "__count"
    if channel.aggregate is not None:
        return f"{channel.aggregate}_{channel.field}"
    if channel.maxbins is not None:
        return f"bin_maxbins_{channel.maxbins}_{channel.field}"
    if channel.time_unit is not None:
        return f"utc{channel.time_unit}_{channel.field}"
    return str(channel.field)


def millis(text: str) -> float:
    moment = datetime.datetime.fromisoformat(text.replace("Z", ""))
    return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(milliseconds=1)


def label(channel: Channel, value: Any) -> str:
    """A value of Vega-Lite as our labels write it."""
    if channel.time_unit is not None and value is not None:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=value)
        return unit_text(moment, channel.time_unit)
    if channel.field == "day" and isinstance(value, str):
        return value
    return label_of(value)


# What is generated


def generated_cases(count: int) -> list[Case]:
    pick = random.Random(20_26)
    cases: list[Case] = []
    while len(cases) < count:
        spec = generated_spec(pick)
        try:
            read = read_spec(spec)
        except TidegateError:
            continue
        if read.color is not None and read.color.is_discrete and read.color.time_unit:
            continue  # there may be more than we have colors for
        is_stacked = read.stack is not None
        if is_stacked and read.mark == "area" and not is_layered(read):
            continue  # areas that lie on each other nowhere: each fills up others in its own way
        # One NULL makes all that Vega stacks above it no number.
        cases.append(Case(spec, *generated_rows(pick, nulls=not is_stacked)))
    return cases


def is_layered(spec: ChartSpec) -> bool:
    """Whether an area has a place along its axis, and colors that several places share."""
    along = spec.y if spec.value_axis == "x" else spec.x
    return along.aggregate is None and (spec.color is None or spec.color.is_discrete)


def generated_spec(pick: random.Random) -> dict[str, Any]:
    encoding: dict[str, Any] = {"x": generated_channel(pick), "y": generated_channel(pick)}
    if pick.random() < 0.6:
        encoding["color"] = generated_channel(pick)
    if pick.random() < 0.3:
        encoding[pick.choice(("x", "y"))]["stack"] = pick.choice(("zero", "normalize", None, True))
    for channel in encoding.values():
        if channel.get("type") in ("nominal", "ordinal") and pick.random() < 0.5:
            channel["sort"] = pick.choice(("descending", None, "x", "-x", "y", "-y", "color"))
    return {"mark": pick.choice(("bar", "line", "area", "point", "rect")), "encoding": encoding}


def generated_channel(pick: random.Random) -> dict[str, Any]:
    number = pick.choice(("size", "price", "rate"))
    return pick.choice(
        (
            lambda: {"field": pick.choice(("kind", "part", "open")), "type": "nominal"},
            lambda: {"field": "kind", "type": "ordinal"},
            lambda: {"field": number, "type": "quantitative"},
            lambda: {"aggregate": "count"},
            lambda: {
                "field": number,
                "aggregate": pick.choice(("sum", "mean", "median", "min", "max", "valid")),
            },
            lambda: {"field": "size", "aggregate": "distinct"},  # of texts Vega-Lite makes numbers
            lambda: {"field": number, "bin": pick.choice((True, {"maxbins": 5}, {"maxbins": 30}))},
            lambda: {"field": "day", "type": "temporal"},
            lambda: {
                "field": "day",
                "timeUnit": f"utc{pick.choice(list(TIME_UNITS))}",
                "type": pick.choice(("temporal", "ordinal")),
            },
        )
    )()


def generated_rows(
    pick: random.Random, *, nulls: bool
) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    count = pick.choice((1, 2, 15, 60))
    least, scale = pick.choice((0, -50, 7)), pick.choice((1, 10, 100_000))
    days = pick.choice((0.01, 3, 90, 3_000))
    rows: list[list[Any]] = []
    values: list[dict[str, Any]] = []
    for _ in range(count):
        moment = datetime.datetime(2023, 11, 30, 22) + datetime.timedelta(
            seconds=pick.randrange(int(86_400 * days))
        )
        row: list[Any] = [
            moment.isoformat(),
            pick.choice("abcd"),
            pick.choice(("x", "y", "Z")),
            least + pick.randrange(20) * scale,
            Decimal(pick.randrange(10_000)) / 100,
            pick.uniform(least, least + 1_000 * scale),
            pick.random() < 0.5,
        ]
        for place in (3, 4, 5):
            if nulls and rows and pick.random() < 0.1:
                row[place] = None
        rows.append(row)
        shown = [f"{row[0]}Z", *[float(e) if isinstance(e, Decimal) else e for e in row[1:]]]
        values.append(dict(zip([each.name for each in COLUMNS], shown, strict=True)))
    return rows, values
