"""What the values of a column are like: how many are NULL, and how many there are of each. Pure."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.charts.bins import bins_of
from tidegate.charts.time_units import begin_of, unit_text
from tidegate.charts.values import (
    Misfits,
    are_moments,
    in_order,
    label_of,
    read_categories,
    read_numbers,
    read_times,
)
from tidegate.model.results import Column

MOST_BINS = 12
_MOST_NAMED = 6
_MOST_UNITS = 24
_UNITS = ("yearmonthdatehours", "yearmonthdate", "yearmonth", "yearquarter", "year")
_TIMES = frozenset({"date", "timestamp", "timestamp_tz"})
_NUMBERS = frozenset({"integer", "decimal", "float"})
_OPAQUE = frozenset({"bytes", "json", "array", "struct"})


class Bar(msgspec.Struct, frozen=True):
    """Some values, in words, and how many rows have them."""

    label: str
    count: int


class Distribution(msgspec.Struct, frozen=True):
    """Of the rows that were read. `bars` are in the order of their values, or the commonest first
    where they are `named`; then the last may be of all others."""

    name: str
    rows: int
    nulls: int
    distinct: int | None = None
    bars: tuple[Bar, ...] = ()
    named: bool = False


def distribution_of(column: Column, cells: Sequence[Any]) -> Distribution:
    """The distribution of a column's values."""
    there = [each for each in cells if each is not None]
    rows, nulls = len(cells), len(cells) - len(there)
    if column.kind in _OPAQUE or not there:
        return Distribution(column.name, rows, nulls)
    values = read_categories(there, column.kind)
    distinct = len(set(values))
    if column.kind in _TIMES or are_moments(there):
        moments = [each for each in read_times(there, column.kind, Misfits("")) if each is not None]
        return Distribution(column.name, rows, nulls, distinct, _of_times(moments))
    numbers = [each for each in read_numbers(there, column.kind, Misfits("")) if each is not None]
    is_number = column.kind in _NUMBERS or (column.kind == "other" and len(numbers) == len(there))
    if is_number and distinct > _MOST_NAMED:
        return Distribution(column.name, rows, nulls, distinct, _of_numbers(numbers))
    return Distribution(column.name, rows, nulls, distinct, _of_names(values), named=True)


def _of_numbers(numbers: Sequence[Any]) -> tuple[Bar, ...]:
    if not numbers:
        return ()
    bins = bins_of(min(numbers), max(numbers), MOST_BINS)
    counts = Counter(bins.begin_of_each(numbers))
    found: list[Bar] = []
    begin = bins.start
    while begin < bins.stop and len(found) <= MOST_BINS:
        end = bins.end_of(begin)
        found.append(Bar(f"{label_of(begin)} – {label_of(end)}", counts[begin]))
        begin = end
    return tuple(found)


def _of_times(moments: Sequence[datetime.datetime]) -> tuple[Bar, ...]:
    """By the smallest unit of which there are not too many, or one that tells as many apart."""
    chosen: tuple[str, Counter[datetime.datetime]] | None = None
    for unit in _UNITS:
        begins = {each: begin_of(each, unit) for each in set(moments)}
        counts = Counter([begins[each] for each in moments])
        if len(counts) <= _MOST_UNITS and (chosen is None or len(counts) == len(chosen[1])):
            chosen = unit, counts
    if chosen is None:
        return _of_numbers([each.year for each in moments])
    unit, counts = chosen
    return tuple([Bar(unit_text(each, unit), counts[each]) for each in sorted(counts)])


def _of_names(values: Sequence[Any]) -> tuple[Bar, ...]:
    counts = Counter(values)
    order = {each: place for place, each in enumerate(in_order(list(counts)))}
    ranked = sorted(counts, key=lambda each: (-counts[each], order[each]))
    shown = ranked if len(ranked) <= _MOST_NAMED else ranked[: _MOST_NAMED - 1]
    bars = [Bar(label_of(each), counts[each]) for each in shown]
    if len(shown) < len(ranked):
        rest = ranked[len(shown) :]
        bars.append(Bar(f"other ({len(rest):,})", sum([counts[each] for each in rest])))
    return tuple(bars)
