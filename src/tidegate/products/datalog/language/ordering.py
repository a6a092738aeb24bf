"""A total order over values, so that a relation, which has no order, is always shown in the same.

Kinds come in a fixed order; within one, values have their natural order: numbers by size, texts by
their bytes in UTF-8. It is applied before a result is cut, and never to a list, an aggregate or a
result of `:order-by`, which have an order of their own. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

from tidegate.products.datalog.language.values import (
    BigInteger,
    Character,
    Instant,
    Keyword,
    List,
    Map,
    Set,
    Symbol,
    Value,
    Vector,
)

Ordered = tuple[Any, ...]
"""A rank, then what is compared within it. Python compares numbers of different kinds exactly."""


def in_order(values: Iterable[Value]) -> list[Value]:
    """The values in the order of this module."""
    return sorted(values, key=order)


def order(value: Value) -> Ordered:
    """The sort key of a value; equal exactly for values of one kind that are the same."""
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int():
            return (2, 0, value, 0)
        case BigInteger(number):
            return (2, 0, number, 1)
        case Decimal():
            return (2, 0, value, 2, value.as_tuple())
        case float():
            if math.isnan(value):
                return (2, 1)
            return (2, 0, value, 3, math.copysign(1, value))
        case Instant(milliseconds):
            return (3, milliseconds)
        case UUID():
            return (4, value.bytes)
        case Keyword(name):
            return (5, *_text(name))
        case Symbol(name):
            return (6, *_text(name))
        case Character(text):
            return (7, *_text(text))
        case str():
            return (8, *_text(value))
        case bytes():
            return (9, value)
        case Vector(items):
            return (10, *_sequence(map(order, items)), 0)
        case List(items):
            return (10, *_sequence(map(order, items)), 1)
        case Set(items):
            return (11, *_sequence(sorted(map(order, items))))
        case Map(pairs):
            return (12, *_sequence(sorted((order(key), order(each)) for key, each in pairs)))


def _text(value: str) -> Ordered:
    return (value.encode("utf-8", "surrogatepass"),)


def _sequence(items: Iterable[Any]) -> Ordered:
    listed = tuple(items)
    return (listed,)
