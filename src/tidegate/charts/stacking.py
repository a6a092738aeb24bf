"""Marks on each other: where each begins and ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tidegate.charts.bins import EXACT
from tidegate.charts.categories import Other
from tidegate.charts.chart import MarkValues, Place
from tidegate.charts.spec import ChartSpec
from tidegate.charts.values import in_order, place_of


def stack_marks(
    spec: ChartSpec, marks: Sequence[MarkValues], places: Sequence[list[Place]]
) -> None:
    """Set the begin and the end of each mark on the axis of values: what is positive from 0 on,
    what is negative to the other side. As in Vega, the first color is at the top or at the left."""
    axis = spec.value_axis or "y"
    at = 0 if axis == "x" else 2
    groups: dict[Any, list[int]] = {}
    for number, mark in enumerate(marks):
        groups.setdefault(mark.y if axis == "x" else mark.x, []).append(number)
    ranks = _ranks(marks, upward=axis == "y")
    for numbers in groups.values():
        numbers.sort(key=lambda number: ranks[marks[number].color])
        values = [getattr(marks[number], axis) or 0 for number in numbers]
        ends = _shares(values) if spec.stack == "normalize" else _sums(values)
        for number, (begin, end) in zip(numbers, ends, strict=True):
            places[number][at], places[number][at + 1] = place_of(begin), place_of(end)


def _ranks(marks: Sequence[MarkValues], *, upward: bool) -> dict[Any, int]:
    """The colors from 0 on, with `other` as the last of them."""
    colors = list(dict.fromkeys([mark.color for mark in marks]))
    others = [each for each in colors if isinstance(each, Other)]
    ordered = [*in_order([each for each in colors if not isinstance(each, Other)]), *others]
    return {each: rank for rank, each in enumerate(ordered[::-1] if upward else ordered)}


def _sums(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    top: Any = 0
    bottom: Any = 0
    found: list[tuple[Any, Any]] = []
    with localcontext(EXACT):
        for value in _of_one_kind(values):
            if value < 0:
                found.append((bottom, bottom + value))
                bottom = bottom + value
            else:
                found.append((top, top + value))
                top = top + value
    return found


def _shares(values: Sequence[Any]) -> list[tuple[float, float]]:
    sizes = [abs(Fraction(value)) for value in values]
    whole = sum(sizes) or Fraction(1)
    found: list[tuple[float, float]] = []
    last = Fraction(0)
    for size in sizes:
        found.append((float(last / whole), float((last + size) / whole)))
        last += size
    return found


def _of_one_kind(values: Sequence[Any]) -> Sequence[Any]:
    """Numbers that can be added: decimals become floats beside floats."""
    if any(isinstance(each, float) for each in values):
        return [float(each) if isinstance(each, Decimal) else each for each in values]
    return values
