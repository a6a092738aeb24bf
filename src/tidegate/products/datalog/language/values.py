"""EDN values as Python values. Frozen.

nil, booleans, longs, doubles, decimals, strings, UUIDs and byte arrays are None, bool, int, float,
Decimal, str, UUID and bytes. All else has a class here, because Python takes 1, 1.0 and True for
the same key of a dict and Clojure does not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from typing import TypeAlias, Union
from uuid import UUID

import msgspec

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


class Keyword(msgspec.Struct, frozen=True):
    """`:name` or `:namespace/name`; `name` is all that follows the colon."""

    name: str

    def __str__(self) -> str:
        return f":{self.name}"


class Symbol(msgspec.Struct, frozen=True):
    """A symbol, with its namespace if it has one."""

    name: str

    def __str__(self) -> str:
        return self.name


class Character(msgspec.Struct, frozen=True):
    """One character, as `\\a` in EDN."""

    text: str


class BigInteger(msgspec.Struct, frozen=True):
    """An integer of Clojure's type BigInt, which a number beyond 64 bits always has."""

    number: int


class Instant(msgspec.Struct, frozen=True):
    """A point in time (`#inst`), in milliseconds since 1970 UTC."""

    milliseconds: int


class Vector(msgspec.Struct, frozen=True):
    items: tuple[Value, ...] = ()


class List(msgspec.Struct, frozen=True):
    items: tuple[Value, ...] = ()


class Set(msgspec.Struct, frozen=True):
    """A set, in the order in which it was written."""

    items: tuple[Value, ...] = ()


class Map(msgspec.Struct, frozen=True):
    """A map, as pairs in the order in which they were written."""

    pairs: tuple[tuple[Value, Value], ...] = ()

    def get(self, key: Value) -> Value:
        """The value of a key; None where there is none."""
        wanted = identity(key)
        return next((value for each, value in self.pairs if identity(each) == wanted), None)


Value: TypeAlias = Union[  # noqa: UP007 - the classes above name it before it is defined
    bool, int, float, str, bytes, Decimal, UUID, Keyword, Symbol, Character, BigInteger,
    Instant, Vector, List, Set, Map, None,
]  # fmt: skip


def integer(number: int) -> Value:
    """An integer as Clojure reads it: a long where it fits."""
    return number if LONG_MIN <= number <= LONG_MAX else BigInteger(number)


def identity(value: Value) -> Hashable:
    """What is equal for two values exactly if Clojure's `=` holds them equal."""
    match value:
        case bool():
            return "boolean", value
        case int():
            return "integer", value
        case BigInteger(number):
            return "integer", number
        case float():
            return ("double", "NaN") if math.isnan(value) else ("double", value + 0.0)
        case Decimal():
            return "decimal", value.normalize()
        case Vector(items) | List(items):
            return "sequence", tuple(map(identity, items))
        case Set(items):
            return "set", frozenset(map(identity, items))
        case Map(pairs):
            return "map", frozenset((identity(key), identity(each)) for key, each in pairs)
        case _:
            return type(value).__name__, value
