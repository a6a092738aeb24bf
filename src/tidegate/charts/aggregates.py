"""Aggregates of values, exact: integers and decimals as they are, floats rounded once. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from tidegate.charts.bins import EXACT, Number
from tidegate.charts.spec import Aggregate

_DIGITS = 28
"""Digits of a mean that has no end, at the least."""


def aggregate(op: Aggregate, values: Sequence[Any]) -> Number | None:
    """The aggregate of values, of which None is NULL; None where it has none. For what is not a
    number, `distinct`, `valid` and `count` alone."""
    if op == "count":
        return len(values)
    if op == "distinct":
        return len(set(values))  # as in Vega, NULL is a value of its own
    there = [each for each in values if each is not None]
    if op == "valid":
        return len(there)
    if not there:
        return None
    if op == "min":
        return min(there)
    if op == "max":
        return max(there)
    if op == "sum":
        return add(there)
    return _mean(there) if op == "mean" else _median(there)


def add(values: Sequence[Number]) -> Number:
    """The sum: exact, or of floats the float nearest to it."""
    kinds = set(map(type, values))
    if float not in kinds:
        with localcontext(EXACT):
            return sum(values)
    try:
        return math.fsum(values) if kinds == {float} else float(sum(map(Fraction, values)))
    except OverflowError:
        return Decimal(int(sum(map(Fraction, values))))


def _mean(values: Sequence[Number]) -> Number:
    total = add(values)
    if isinstance(total, float):
        return total / len(values)
    if isinstance(total, int) and total % len(values) == 0:
        return total // len(values)
    exact = Decimal(total)
    digits = max(_DIGITS, len(exact.as_tuple().digits) + _DIGITS // 2)
    context = Context(prec=digits, Emax=999_999, Emin=-999_999)
    return context.divide(exact, Decimal(len(values)))


def _median(values: Sequence[Number]) -> Number:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    low, high = ordered[middle - 1 : middle + 1]
    return low if low == high else _mean((low, high))
