"""What is written is read back, what is shown is taken back, and the order of values is total."""

from __future__ import annotations

import math
import random
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.products.datalog.language.json_values import decode, encode
from tidegate.products.datalog.language.ordering import in_order, order
from tidegate.products.datalog.language.reader import read
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
    identity,
)
from tidegate.products.datalog.language.writer import write

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_NAMES = st.from_regex(r"[a-z][a-z0-9*!_?-]{0,5}(/[a-z][a-z0-9]{0,3})?", fullmatch=True)
_MILLISECONDS = st.integers(-62_135_596_800_000, 253_402_300_799_999)

_SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    _TEXT,
    st.uuids(),
    _NAMES.map(Keyword),
    _NAMES.filter(lambda name: name not in ("nil", "true", "false")).map(Symbol),
    _TEXT.filter(lambda text: len(text) == 1).map(Character),
    st.integers().map(BigInteger),
    _MILLISECONDS.map(Instant),
)


def _different(items: list[Value]) -> tuple[Value, ...]:
    return tuple({identity(item): item for item in items}.values())


def _map(items: list[tuple[Value, Value]]) -> Map:
    return Map(tuple({identity(key): (key, value) for key, value in items}.values()))


VALUES: st.SearchStrategy[Value] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: Vector(tuple(items))),
        st.lists(inner, max_size=4).map(lambda items: List(tuple(items))),
        st.lists(inner, max_size=4).map(lambda items: Set(_different(items))),
        st.lists(st.tuples(inner, inner), max_size=4).map(_map),
    ),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(value: Value) -> None:
    assert order(read(write(value))) == order(value)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_what_is_shown_exactly_is_taken_back(value: Value) -> None:
    assert order(decode(encode(value, exact=True))) == order(value)


@given(st.lists(VALUES, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_values_does_not_depend_on_how_they_come(
    values: list[Value], chance: random.Random
) -> None:
    shuffled = values[:]
    chance.shuffle(shuffled)
    assert list(map(write, in_order(shuffled))) == list(map(write, in_order(values)))


def test_values_are_ordered_by_kind_then_size_and_texts_by_their_bytes() -> None:
    values = [
        "b", "B", "é", "z", Keyword("a"), 2, 1.5, Decimal("1.25"), -math.inf, math.inf, None, True,
    ]  # fmt: skip
    assert in_order(values) == [
        None, True, -math.inf, Decimal("1.25"), 1.5, 2, math.inf, Keyword("a"), "B", "b", "z", "é",
    ]  # fmt: skip


@given(st.text(alphabet="()[]{}#\"\\;:^~@`'/ \n\tab1?_.,-+eNMx", max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused_and_what_is_read_is_read_again_from_its_writing(
    text: str,
) -> None:
    try:
        value = read(text)
    except TidegateError as refused:
        assert refused.code.value.startswith("datalog.")
    else:
        assert order(read(write(value))) == order(value)
