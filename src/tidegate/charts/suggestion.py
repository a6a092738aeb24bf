"""A chart of a result that no one has chosen one for, by the types of its columns. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from tidegate.charts.spec import Mark
from tidegate.charts.values import Misfits, are_moments, label_of, read_categories, read_times
from tidegate.model.results import Column

MOST_COLUMNS = 40
MOST_ROWS = 10_000
"""Of which the columns are judged."""
_FEW = 12
"""Values that colors tell apart."""
_MANY = 100
"""Categories from which on an axis says little."""
_BARS_UPRIGHT = 10
_LONG_LABEL = 14
_KEY = re.compile(r"(?:^|_)(?:id|key|code|no|nr|uuid)$|[a-z]I[Dd]$", re.IGNORECASE)
_SPANS = (
    (datetime.timedelta(days=15 * 366), "year"),
    (datetime.timedelta(days=366), "yearmonth"),
    (datetime.timedelta(days=7), "yearmonthdate"),
    (datetime.timedelta(hours=6), "yearmonthdatehours"),
)
"""From which span on moments are gathered by which unit."""
_NUMBERS = frozenset({"integer", "decimal", "float"})
_TIMES = frozenset({"date", "timestamp", "timestamp_tz"})

Use = Literal["time", "number", "category"]


class Candidate(NamedTuple):
    """A column, what it is good for, how many values it has, and some of them."""

    name: str
    use: Use
    distinct: int
    values: Sequence[Any]


def suggest_spec(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """A specification for a result; None if no column can be drawn. `rows` are the first of it."""
    named = [each.name for each in columns]
    found = [
        candidate
        for place, column in enumerate(columns[:MOST_COLUMNS])
        if named.count(column.name) == 1
        and (candidate := _candidate(column, [row[place] for row in rows])) is not None
    ]
    times = [each for each in found if each.use == "time"]
    numbers = [each for each in found if each.use == "number"]
    numbers = [each for each in numbers if not _is_key(each)] or numbers[:1]
    categories = [each for each in found if each.use == "category" and each.distinct > 1]
    categories.sort(key=lambda each: each.distinct > _MANY)
    few = [each for each in categories if each.distinct <= _FEW]
    if times:
        return _over_time(times[0], numbers, few, len(rows))
    if categories and (numbers or len(categories) == 1 or not few):
        return _by_category(categories, numbers, len(rows))
    if len(categories) > 1:
        x, y = _discrete(categories[0]), _discrete(categories[1])
        return _spec("rect", x, y, {"aggregate": "count"})
    if len(numbers) > 1:
        return _spec("point", _number(numbers[0]), _number(numbers[1]))
    if numbers:
        bins = {"field": numbers[0].name, "bin": True, "type": "quantitative"}
        return _spec("bar", bins, {"aggregate": "count"})
    return None


def _over_time(
    time: Candidate, numbers: Sequence[Candidate], few: Sequence[Candidate], rows: int
) -> dict[str, Any]:
    unit = _unit(time.values)
    is_raw = bool(numbers) and time.distinct == rows and rows <= 500
    x: dict[str, Any] = {"field": time.name, "type": "temporal"}
    if not is_raw:
        x["timeUnit"] = unit
    color = _discrete(few[0]) if few else None
    if not numbers:
        return _spec("bar", x, {"aggregate": "count"}, color)
    y = _number(numbers[0]) if is_raw else _summed(numbers[0])
    return _spec("line", x, y, color)


def _by_category(
    categories: Sequence[Candidate], numbers: Sequence[Candidate], rows: int
) -> dict[str, Any]:
    main = categories[0]
    value: dict[str, Any] = {"aggregate": "count"}
    if numbers:
        value = _number(numbers[0]) if main.distinct == rows else _summed(numbers[0])
    rest = [each for each in categories[1:] if 1 < each.distinct <= _FEW]
    color = _discrete(rest[0]) if rest and main.distinct < rows else None
    longest = max([len(label_of(each)) for each in main.values[:200]], default=0)
    if main.distinct <= _BARS_UPRIGHT and longest <= _LONG_LABEL:
        return _spec("bar", {**_discrete(main), "sort": "-y"}, value, color)
    return _spec("bar", value, {**_discrete(main), "sort": "-x"}, color)


def _candidate(column: Column, cells: Sequence[Any]) -> Candidate | None:
    there = [each for each in cells if each is not None]
    if not there:
        return None
    if column.kind in _TIMES or are_moments(there):
        moments = [each for each in read_times(there, column.kind, Misfits("")) if each is not None]
        return Candidate(column.name, "time", len(set(moments)), moments) if moments else None
    if column.kind in ("bytes", "json", "array", "struct"):
        return None
    values = read_categories(there, column.kind)
    is_number = column.kind in _NUMBERS or (column.kind == "other" and all(map(_is_number, values)))
    use: Use = "number" if is_number else "category"
    return Candidate(column.name, use, len(set(values)), values)


def _is_number(value: Any) -> bool:
    return not isinstance(value, (str, bool)) and value is not None


def _is_key(candidate: Candidate) -> bool:
    """Whether a number seems to name something and not to count it."""
    return _KEY.search(candidate.name) is not None


def _unit(moments: Sequence[datetime.datetime]) -> str:
    span = max(moments) - min(moments)
    return next((unit for least, unit in _SPANS if span >= least), "yearmonthdatehoursminutes")


def _discrete(candidate: Candidate) -> dict[str, Any]:
    return {"field": candidate.name, "type": "nominal"}


def _number(candidate: Candidate) -> dict[str, Any]:
    return {"field": candidate.name, "type": "quantitative"}


def _summed(candidate: Candidate) -> dict[str, Any]:
    return {"field": candidate.name, "aggregate": "sum", "type": "quantitative"}


def _spec(
    mark: Mark, x: dict[str, Any], y: dict[str, Any], color: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"mark": mark, "encoding": {"x": x, "y": y, **({"color": color} if color else {})}}
