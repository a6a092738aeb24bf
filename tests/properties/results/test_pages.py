"""Whatever the rows are: a page keeps its budgets, loses no value, and says what it cut."""

import base64
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.model.results import Limits
from tidegate.results.json_values import encode_rows
from tidegate.results.page import PageBuilder

SAFE = 2**53 - 1

ODD_DECIMALS = [Decimal(text) for text in ("sNaN", "-sNaN7", "NaN", "-NaN12", "-Infinity")]

unhurried = settings(deadline=None, max_examples=80)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**54), 2**54),
    st.floats(),
    texts,
    st.binary(max_size=40),
    st.decimals() | st.sampled_from(ODD_DECIMALS),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.just(UTC) | st.none()),
    st.timedeltas(),
    st.uuids(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[values] * width), max_size=30)
)


def read_back(written, value):
    """The value that a rendering stands for, given the type that it was."""
    if value is None or isinstance(value, (bool, str)):
        return written
    if isinstance(value, (int, float, Decimal)):
        return type(value)(written)
    if isinstance(value, bytes):
        return base64.b64decode(written, validate=True)
    if isinstance(value, (date, datetime, time, timedelta, UUID)):
        return msgspec.convert(written, type(value))
    if isinstance(value, list):
        return [read_back(inner, each) for inner, each in zip(written, value, strict=True)]
    return {key: read_back(written[key], each) for key, each in value.items()}


def same(left, right):
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, Decimal):
        return str(left) == str(right)
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return left == right and type(left) is type(right)


@unhurried
@given(tables)
@example([(value,) for value in ODD_DECIMALS])
@example([(value,) for value in ODD_DECIMALS * 3])
@example([(0.5, value) for value in ODD_DECIMALS * 3])
def test_what_was_written_reads_back(rows):
    found = json.loads(encode_rows(rows))
    for written, row in zip(found, rows, strict=True):
        for cell, value in zip(written, row, strict=True):
            assert same(read_back(cell, value), value)


@unhurried
@given(tables)
def test_no_number_is_beyond_what_every_reader_keeps(rows):
    def walk(value):
        if isinstance(value, (list, dict)):
            for inner in value.values() if isinstance(value, dict) else value:
                walk(inner)
        elif type(value) is int:
            assert abs(value) <= SAFE

    walk(json.loads(encode_rows(rows), parse_constant=lambda name: 1 / 0))


@unhurried
@given(tables)
@example([(value,) for value in ODD_DECIMALS])
def test_text_cells_are_strings_or_null_where_the_value_is(rows):
    found = json.loads(encode_rows(rows, as_text=True))
    for written, row in zip(found, rows, strict=True):
        for cell, value in zip(written, row, strict=True):
            assert isinstance(cell, str) is (value is not None)


@unhurried
@given(
    tables,
    st.integers(0, 40),
    st.integers(2, 2000),
    st.sampled_from(["json", "text"]),
    st.integers(1, 40),
)
def test_a_page_keeps_its_budgets_and_tells_what_is_missing(rows, most, size, cells, chunk):
    builder, first = PageBuilder((), Limits(max_rows=most, max_bytes=size), cells), 0
    while wanted := min(builder.remaining, chunk):
        builder.write(rows[first : first + wanted])
        first += wanted
    page = builder.page()
    shown = json.loads(page.rows)
    kinds = {cut.kind for cut in page.truncations}
    assert len(page.rows) <= size
    assert len(shown) == page.row_count <= most
    assert (page.row_count < len(rows)) is bool(kinds & {"rows", "bytes"})
    if "value" not in kinds:
        whole = json.loads(encode_rows(rows, as_text=cells == "text"))
        assert shown == whole[: len(shown)]


@unhurried
@given(tables, st.integers(1, 40))
def test_a_page_does_not_depend_on_how_its_rows_came(rows, chunk):
    whole, pieces = PageBuilder((), Limits()), PageBuilder((), Limits())
    whole.write(rows)
    for first in range(0, len(rows), chunk):
        pieces.write(rows[first : first + chunk])
    assert whole.page().rows == pieces.page().rows
