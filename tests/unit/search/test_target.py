"""What of a table can be searched, by its catalog entry alone."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, ColumnInfo, Index, Table
from tidegate.search.target import is_textsearch, target_of

COLUMNS = (
    ColumnInfo("id", "integer", False, None, 1),
    ColumnInfo("body", "text"),
    ColumnInfo("body_embedding", "vector(3)"),
)


def notes_on(index: Index) -> tuple[str, ...]:
    table = Table("public", "docs", "table", COLUMNS, indexes=(index,))
    catalog = Catalog("d", "public", ("public",), (table,), "1", (), "postgres")
    return target_of(catalog, table).notes


@pytest.mark.parametrize(
    "index",
    [
        Index("found", ("id", "body"), kind="bm25", operators=("anyelement_bm25_ops",)),
        Index("found", ("body",), kind="bm25", operators=("bm25_ops",)),
        Index("found", ("body",), kind="bm25"),
        Index("found", ("body_embedding",), kind="vchordrq", operators=("vector_l2_ops",)),
    ],
)
def test_an_index_of_an_extension_that_is_not_used_is_named(index: Index) -> None:
    assert not is_textsearch(index)
    (note,) = notes_on(index)
    assert "The index found " in note
    assert "was not used" in note


@pytest.mark.parametrize(
    "index",
    [
        Index("found", ("body",), kind="bm25", operators=("text_bm25_ops",)),
        Index("found", ("words",), kind="gin", operators=("tsvector_ops",)),
        Index("found", ("body_embedding",), kind="hnsw", operators=("vector_cosine_ops",)),
        Index("found", ("body",)),
    ],
)
def test_no_note_stands_for_an_index_that_is_used_or_not_for_searches(index: Index) -> None:
    assert notes_on(index) == ()
