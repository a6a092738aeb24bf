"""The places of discrete values: their order, and which of too many become one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tidegate.charts.aggregates import aggregate
from tidegate.charts.spec import Aggregate, Channel
from tidegate.charts.values import in_order

_SAME_OF_ONE = frozenset({"sum", "mean", "median", "min", "max"})
"""Aggregates that give back a value that is alone."""


class Other:
    """The place of all values that have none of their own."""

    def __init__(self, count: int) -> None:
        self.count = count


class Weights:
    """What categories are sorted by, and chosen by if there are too many: an aggregate of another
    channel's values, over all rows of each."""

    def __init__(self, op: Aggregate, values: Sequence[Any] | None) -> None:
        """`values`: of the rows; None: the rows are counted."""
        self._op: Aggregate = op if values is not None else "count"
        self._values = values

    def of(self, categories: Sequence[Any]) -> Mapping[Any, Any]:
        """The weight of each category; `categories` are of the rows."""
        if self._values is None:
            return Counter(categories)
        alone = dict(zip(categories, self._values, strict=True))
        if len(alone) == len(categories) and self._op in _SAME_OF_ONE:
            return alone
        groups: dict[Any, list[Any]] = {each: [] for each in alone}
        for category, value in zip(categories, self._values, strict=True):
            groups[category].append(value)
        return {each: aggregate(self._op, values) for each, values in groups.items()}


def order_of(channel: Channel, categories: Sequence[Any], weights: Weights | None) -> list[Any]:
    """The categories in the order in which their channel shows them; `categories` are of the rows,
    `weights` what another channel sorts by."""
    found = list(dict.fromkeys(categories))
    sort = channel.sort
    if sort is None:
        ordered = found
    elif isinstance(sort, tuple):
        named = {each: place for place, each in enumerate(sort)}
        ordered = sorted(found, key=lambda each: named.get(_named(each), len(named)))
    elif weights is not None:
        known = weights.of(categories)
        rank = _negative if sort[0] == "-" else _weight
        ordered = sorted(found, key=lambda each: rank(known[each]))  # equal ones as they came
    else:
        ordered = in_order([each for each in found if not isinstance(each, Other)])
        if sort == "descending":
            ordered.reverse()
        ordered += [each for each in found if isinstance(each, Other)]
    return sorted(ordered, key=lambda each: isinstance(each, Other))


def merge_rest(
    categories: Sequence[Any], most: int, weights: Weights
) -> tuple[list[Any], Other | None]:
    """The categories of the rows, the lightest as one, so that there are no more than `most`."""
    if len(set(categories)) <= most:
        return list(categories), None
    known = weights.of(categories)
    sizes = {each: -1 if weight is None else abs(weight) for each, weight in known.items()}
    heaviest = sorted(sizes, key=sizes.__getitem__, reverse=True)[: most - 1]
    other = Other(len(known) - len(heaviest))
    kept = {each: each for each in heaviest}
    return [kept.get(each, other) for each in categories], other


def _named(value: Any) -> Any:
    """A value as a specification writes it."""
    return float(value) if isinstance(value, Decimal) else value


def _weight(value: Any) -> tuple[bool, Any]:
    return value is not None, 0 if value is None else value


def _negative(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else -value
