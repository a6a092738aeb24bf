"""Where a page ends, and what it says of it."""

import json

import pytest

from tidegate.model.results import Column, Limits, Truncation
from tidegate.results.page import CHUNK_BYTES, FIRST_ROWS, MAX_CHUNK_ROWS, PageBuilder

COLUMNS = (Column("a", ""), Column("b", ""))


def build(rows, *, chunk=None, cells="json", **limits):
    """Build a page as an engine does: give what is wanted, or at most `chunk` rows."""
    builder, first = PageBuilder(COLUMNS, Limits(**limits), cells), 0
    while wanted := builder.remaining:
        wanted = min(wanted, chunk or wanted)
        builder.write(rows[first : first + wanted])
        first += wanted
    return builder


def page(rows, **options):
    return build(rows, **options).page()


def numbered(count, width=1):
    return [(number, "x" * width) for number in range(count)]


def test_an_empty_result_is_an_empty_page():
    empty = page([])
    assert (empty.rows, empty.row_count, empty.truncations) == (b"[]", 0, ())


@pytest.mark.parametrize("chunk", [None, 1, 7, 1000])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 500, 2000])
def test_rows_come_out_as_they_went_in(count, chunk):
    rows = numbered(count)
    whole = page(rows, chunk=chunk, max_rows=2000)
    assert json.loads(whole.rows) == [list(row) for row in rows]
    assert (whole.row_count, whole.truncations) == (count, ())


@pytest.mark.parametrize("most", [0, 1, 32, 500])
def test_one_row_too_many_is_recorded_and_not_shown(most):
    cut = page(numbered(most + 1), max_rows=most)
    assert cut.row_count == most
    assert cut.truncations == (Truncation("rows", most, most),)
    assert len(json.loads(cut.rows)) == most


def test_a_page_of_exactly_the_bytes_allowed_is_not_cut():
    rows = numbered(100)
    size = len(page(rows).rows)
    assert page(rows, max_bytes=size).truncations == ()
    cut = page(rows, max_bytes=size - 1)
    assert cut.row_count == 99
    assert cut.truncations == (Truncation("bytes", size - 1, len(cut.rows)),)


def test_a_row_larger_than_the_page_is_shown_with_its_values_cut():
    cut = page([("x" * 5000, 7)], max_bytes=100)
    ((text, number),) = json.loads(cut.rows)
    assert set(text) == {"x"}
    assert number == 7
    assert len(cut.rows) <= 100
    assert [(truncation.kind, truncation.returned) for truncation in cut.truncations] == [
        ("value", 1)
    ]


def test_a_cut_value_and_a_missing_row_are_both_recorded():
    cut = page([("x" * 5000, 7), (1, 2)], max_bytes=100)
    assert cut.row_count == 1
    assert [truncation.kind for truncation in cut.truncations] == ["value", "bytes"]


def test_cut_bytes_are_still_base64():
    import base64

    cut = page([(b"\xff" * 5000, None)], max_bytes=101)
    ((text, _),) = json.loads(cut.rows)
    assert set(base64.b64decode(text, validate=True)) == {0xFF}


def test_small_values_beside_a_large_one_stay_whole():
    cut = page([("y" * 20, "x" * 5000)], max_bytes=100)
    ((small, large),) = json.loads(cut.rows)
    assert small == "y" * 20
    assert 40 < len(large) < 100


def test_a_page_too_small_for_anything_is_empty_and_says_so():
    cut = page([("x" * 50, "y" * 50)], max_bytes=7)
    assert (cut.rows, cut.row_count) == (b"[]", 0)
    assert [truncation.kind for truncation in cut.truncations] == ["bytes"]


@pytest.mark.parametrize("text", ["\x00" * 5000, '"' * 5000, "海" * 5000, "🌊" * 5000])
def test_a_value_that_grows_by_escapes_is_cut_to_fit(text):
    cut = page([(text, 1)], max_bytes=200)
    assert 150 < len(cut.rows) <= 200
    assert json.loads(cut.rows)[0][0] in text


def test_what_found_no_place_is_kept():
    rows = numbered(100)
    builder = PageBuilder(COLUMNS, Limits(max_rows=50))
    builder.write(rows)
    assert list(builder.rest) == rows[50:]


def test_the_first_chunk_is_small_and_later_ones_follow_the_size_of_rows():
    builder = PageBuilder(COLUMNS, Limits(max_rows=100_000, max_bytes=10**9))
    assert builder.remaining == FIRST_ROWS
    builder.write(numbered(FIRST_ROWS, width=CHUNK_BYTES))
    assert builder.remaining == 1
    builder = PageBuilder(COLUMNS, Limits(max_rows=100_000, max_bytes=10**9))
    builder.write(numbered(FIRST_ROWS))
    assert builder.remaining == MAX_CHUNK_ROWS


def test_no_more_is_wanted_than_tells_of_a_cut():
    builder = PageBuilder(COLUMNS, Limits(max_rows=10))
    assert builder.remaining == 11
    builder.write(numbered(10))
    assert builder.remaining == 1
    builder.write([])
    assert builder.remaining == 0


def test_text_cells_count_as_they_are_written():
    whole = page([(1, None), (True, b"a")], cells="text")
    assert json.loads(whole.rows) == [["1", None], ["true", "YQ=="]]


def test_a_page_carries_what_the_run_reported():
    reported = build(numbered(1)).page(affected=3, elapsed_ms=1.5, more="h", status="done")
    assert (reported.affected, reported.elapsed_ms, reported.more, reported.status) == (
        3,
        1.5,
        "h",
        "done",
    )
    assert reported.columns == COLUMNS
