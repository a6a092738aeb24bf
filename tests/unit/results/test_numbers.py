"""Numbers written the short way: exact, without idle zeros, JSON numbers wherever they can be."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.model.results import Column, Limits
from tidegate.results.json_values import encode_rows
from tidegate.results.numbers import shorten, shorten_rows, unify_numbers
from tidegate.results.page import PageBuilder

SHORTENED = [
    ("42.0000000000000000", 42),
    ("55.99", 55.99),
    ("12.50", 12.5),
    ("-0.10", -0.1),
    ("-0.00", 0),
    ("007.500", 7.5),
    (".5", 0.5),
    ("100", 100),
    ("9007199254740991.0", 9007199254740991),
    ("9007199254740992", "9007199254740992"),
    ("0.1234567890123456789", "0.1234567890123456789"),
    ("123456789012345678.25", "123456789012345678.25"),
    ("NaN", "NaN"),
    ("-Infinity", "-Infinity"),
    ("1e5", "1e5"),
    ("", ""),
    ("-", "-"),
    ("1.2.3", "1.2.3"),
    ("١٢", "١٢"),
]


@pytest.mark.parametrize(("text", "short"), SHORTENED)
def test_a_decimal_is_the_shortest_thing_that_is_exactly_it(text: str, short: Any) -> None:
    assert shorten(text) == short
    assert type(shorten(text)) is type(short)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**25), max_value=10**25))
def test_no_decimal_changes_its_value_on_its_way_through_json(value: Decimal) -> None:
    short = shorten(format(value, "f"))
    encoded = msgspec.json.encode(short).decode().strip('"')
    assert Decimal(encoded) == value


def page(columns: tuple[Column, ...], rows: list[tuple[Any, ...]]) -> bytes:
    builder = PageBuilder(columns, Limits(), "short")
    builder.write(rows)
    builder.write([])
    return builder.page().rows


def test_text_that_looks_like_a_number_stays_text() -> None:
    columns = (Column("code", "text", "text"), Column("price", "numeric", "decimal"))
    assert page(columns, [("1.50", "1.50"), ("2", None)]) == b'[["1.50",1.5],["2",null]]'


@pytest.mark.parametrize("count", [1, 7, 8, 40])
def test_few_rows_and_many_are_written_alike(count: int) -> None:
    columns = (Column("p", "numeric", "decimal"), Column("x", "", "other"), Column("t", "text"))
    rows = [("1.50", 2.0, "3.0")] * count
    assert page(columns, rows) == b"[" + b",".join([b'[1.5,2,"3.0"]'] * count) + b"]"


def test_whole_floating_point_numbers_lose_their_point_and_others_stay() -> None:
    columns = (Column("x", "double", "float"),)
    rows = [(42.0,), (0.5,), (1e300,), (float("inf"),), (None,)]
    assert page(columns, rows) == b'[[42],[0.5],[1e300],["Infinity"],[null]]'


def test_values_of_an_undeclared_column_are_shortened_by_what_they_are() -> None:
    columns = (Column("sum", "", "other"),)
    rows = [(3.0,), ("3.0",), (Decimal("7.10"),), (True,)]
    assert page(columns, rows) == b'[[3],["3.0"],[7.1],[true]]'


cells = (
    st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.text(max_size=6)
    | st.floats() | st.integers(-9, 9).map(float) | st.decimals(places=2, min_value=-9, max_value=9)
    | st.sampled_from(["1.0", "a,2.0,", "\ud800", 2.0**53, -0.0, True])
)  # fmt: skip
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[cells] * width), min_size=1, max_size=20)
)


def write_cell(value: Any) -> Any:
    """What JSON must hold of a value, found value by value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return msgspec.json.decode(encode_rows([[value]]))[0][0]


@given(tables)
@example([(0.5,), (None,), (2.0,), (7,), (0.25,)])
@example([(None,), (2.0,), (None,)])
@example([("a", 1.0), ("\ud800", 2.5)])
def test_every_value_is_written_as_it_would_be_alone(rows: list[tuple[Any, ...]]) -> None:
    columns = tuple([Column(str(place), "", "other") for place in range(len(rows[0]))])
    written = msgspec.json.decode(page(columns, rows))
    wanted = [[write_cell(value) for value in row] for row in rows]
    assert written == wanted
    assert [[type(value) for value in row] for row in written] == (
        [[type(value) for value in row] for row in wanted]
    )


class Name(str):
    """As some drivers give texts, and numbers: types of their own."""


class Count(int):
    pass


@pytest.mark.parametrize(
    "rows", [[(Name("a"), Count(2))], [(Name("a"), 2.0), (Name("b"), 1.5)] * 9]
)
def test_values_of_types_like_text_and_number_are_written_as_these(
    rows: list[tuple[Any, ...]],
) -> None:
    columns = (Column("a", ""), Column("b", ""))
    plain = [(str(text), int(number) if number == 2 else number) for text, number in rows]
    assert page(columns, rows) == encode_rows(plain)


LONG = "12345678901234567890"
kinds = st.sampled_from(["integer", "decimal", "float", "text", "other"])
odd_cells = cells | st.sampled_from([LONG, f"-{LONG}", "2026-01-01-0000001", 2**60, 10**30])


@given(tables, st.lists(kinds, min_size=4, max_size=4), st.integers(1, 20), st.data())
@example([(1,), (LONG,)], ["integer"] * 4, 20, None)
@example([(1, 2.0), (2, 3.5), (2**60, 1.0)], ["integer"] * 4, 1, None)
def test_columns_are_unified_as_if_nothing_were_known_of_their_numbers(
    rows: list[tuple[Any, ...]], of_kinds: list[Any], chunk: int, data: st.DataObject | None
) -> None:
    if data is not None:
        places = st.integers(0, len(rows) - 1), st.integers(0, len(rows[0]) - 1)
        at, place = data.draw(st.tuples(*places))
        changed = list(rows[at])
        changed[place] = data.draw(odd_cells)
        rows = [*rows[:at], tuple(changed), *rows[at + 1 :]]
    columns = tuple([Column(str(at), "", of_kinds[at]) for at in range(len(rows[0]))])
    builder = PageBuilder(columns, Limits(max_bytes=100_000), "short")
    for first in range(0, len(rows), chunk):
        builder.write(rows[first : first + chunk])
    built = builder.page()
    doubted = msgspec.structs.replace(built, has_plain_numbers=False)
    assert unify_numbers(built) == unify_numbers(doubted)


def test_a_long_number_of_a_later_chunk_makes_the_whole_column_texts() -> None:
    builder = PageBuilder((Column("n", "bigint", "integer"),), Limits(), "short")
    builder.write([(1,)])
    builder.write([(2**60,)])
    assert unify_numbers(builder.page()) == b'[["1"],["1152921504606846976"]]'
    adopting = PageBuilder((Column("n", "bigint", "integer"),), Limits(), "short")
    adopting.adopt(builder.page(), ())
    assert unify_numbers(adopting.page()) == b'[["1"],["1152921504606846976"]]'


def test_rows_that_found_no_room_keep_their_values() -> None:
    builder = PageBuilder((Column("p", "numeric", "decimal"),), Limits(max_rows=1), "short")
    builder.write([("1.00",), ("2.00",)])
    assert builder.page().rows == b"[[1]]"
    assert list(builder.rest) == [("2.00",)]


def test_other_values_pass_as_they_are() -> None:
    rows = [(datetime.date(2026, 1, 2), b"x", "a")]
    assert shorten_rows(rows, ()) is rows
    assert shorten_rows(rows * 20, ()) == rows * 20
