"""What the surface `postgres` makes of vectors, in rows and in searches."""

from __future__ import annotations

import msgspec

from tidegate.model.results import Column, Page
from tidegate.products.pgedge.surface.result_text import VECTORS_CUT, ObjectRows, with_short_vectors
from tidegate.products.pgedge.surface.similarity import SimilarityArgs, lines
from tidegate.search.model import RowHit, SearchResult

LONG = "[" + ",".join(["0.123456"] * 384) + "]"
SHORT = "[1,2,3]"
COLUMNS = (Column("id", "integer", "integer"), Column("e", "vector"), Column("t", "text", "text"))


def test_a_long_vector_is_shown_by_its_first_numbers_and_that_is_said() -> None:
    rows = msgspec.json.encode([[1, LONG, LONG], [2, SHORT, "x"], [3, None, None]])
    page, notes = with_short_vectors(Page(COLUMNS, rows, 3))
    assert notes == [VECTORS_CUT]
    first, *others = msgspec.json.decode(page.rows)
    assert first == [1, "[0.123456,0.123456,0.123456,0.123456,… 384 numbers]", LONG]
    assert others == [[2, SHORT, "x"], [3, None, None]]
    streamed = ObjectRows(COLUMNS)
    text = b"".join(streamed.of_json(rows)).decode()
    assert "… 384 numbers]" in text and streamed.notes == [VECTORS_CUT]


def test_rows_without_long_vectors_are_as_they_were() -> None:
    page = Page(COLUMNS, msgspec.json.encode([[2, SHORT, LONG]]), 1)
    assert with_short_vectors(page) == (page, [])


def test_rows_of_a_table_without_texts_are_shown_by_their_keys() -> None:
    hits = (RowHit({"id": 7}, 0.1, 1, None, 0.25), RowHit({"id": 9}, 0.05, 2, None, 0.5))
    found = SearchResult("public", "images", "vector", hits, ())
    text = "\n".join(lines(SimilarityArgs("images", "a red boat"), found))
    assert '1. public.images {"id":7}: 1 by vectors, distance 0.2500' in text
    assert '2. public.images {"id":9}: 2 by vectors, distance 0.5000' in text
