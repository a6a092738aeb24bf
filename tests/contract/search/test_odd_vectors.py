"""Vectors without a direction, of several sizes, and texts that say little, on each database."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from support.search_library import Library, ids, make_duckdb, make_postgres, make_sqlite
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.errors import Code, TidegateError

ZEROS = ", ".join(["0"] * 16)
REBUILD = "INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')"
NAN, INFINITE = (struct.pack("<16f", *[float(kind)] * 16).hex() for kind in ("nan", "inf"))
ODD: dict[str, tuple[str, ...]] = {
    "postgres": (f"UPDATE docs SET content_embedding = '[{ZEROS}]' WHERE id IN (1, 2)",),
    "sqlite": (
        "UPDATE docs SET content_embedding = zeroblob(64) WHERE id = 1",
        f"UPDATE docs SET content_embedding = x'{NAN}' WHERE id = 2",
        f"UPDATE docs SET content_embedding = x'{INFINITE}' WHERE id = 3",
    ),
    "duckdb": (
        f"UPDATE docs SET content_embedding = [{ZEROS}] WHERE id = 1",
        f"UPDATE docs SET content_embedding = ['nan'::FLOAT, {ZEROS[3:]}] WHERE id = 2",
        f"UPDATE docs SET content_embedding = ['inf'::FLOAT, {ZEROS[3:]}] WHERE id = 3",
    ),
}
"""Vectors that are at no distance by cosine, in the first rows."""
UNTYPED: dict[str, tuple[str, ...]] = {
    "postgres": ("ALTER TABLE docs ALTER content_embedding TYPE vector",),
    "sqlite": (),
    "duckdb": (),
}
SHORT = {
    "postgres": "UPDATE docs SET content_embedding = '[1, 2, 3]' WHERE id = 1",
    "sqlite": "UPDATE docs SET content_embedding = x'0102' WHERE id = 1",
    "duckdb": "UPDATE docs SET content_embedding = [1, 2, 3] WHERE id = 1",
}
ENGINES = pytest.mark.parametrize("engine", sorted(ODD))


def made(engine: str, directory: Path, *extra: str, untyped: bool = False) -> str:
    makers: dict[str, Callable[[], str]] = {
        "postgres": lambda: make_postgres(*extra, index=""),
        "sqlite": lambda: make_sqlite(directory / "docs.db", *extra, REBUILD),
        "duckdb": lambda: make_duckdb(
            directory / "docs.duckdb", *extra, kind="FLOAT[]" if untyped else "FLOAT[16]"
        ),
    }
    return makers[engine]()


@ENGINES
async def test_a_vector_without_a_direction_is_near_to_nothing(tmp_path: Path, engine: str):
    library = Library(tmp_path, made(engine, tmp_path, *ODD[engine]))
    found = await library.search("lentils", top_n=10)
    odd = {1, 2} if engine == "postgres" else {1, 2, 3}
    near = {row.key["id"] for row in found.rows if row.vector_rank is not None}
    assert near == set(range(1, 11)) - odd
    assert found.rows[0].key == {"id": 7}
    assert (found.vectors[0].index, found.vectors[0].rows) == (None, 10 - len(odd))


@ENGINES
async def test_vectors_of_another_size_are_an_error_also_where_the_type_has_none(
    tmp_path: Path, engine: str
):
    url = made(engine, tmp_path, *UNTYPED[engine], SHORT[engine], untyped=True)
    library = Library(tmp_path, url)
    found = await library.search("lentils", top_n=10)
    # A vector of another size among those that fit takes no part, and its row is found by words.
    assert {row.key["id"] for row in found.rows if row.vector_rank} == set(range(2, 11))
    other = tmp_path / "other"
    other.mkdir()
    wrong = Library(other, url, embeddings=EmbeddingSettings("hash-test", dimensions=8))
    for exact in (False, True):
        with pytest.raises(TidegateError) as refused:
            await wrong.search("lentils", exact=exact)
        assert refused.value.code is Code.EMBEDDING_DIMENSION
        assert "have 8" in refused.value.message


@ENGINES
async def test_a_table_of_no_rows_and_one_of_no_texts_are_searched_without_an_error(
    tmp_path: Path, engine: str
):
    library = Library(tmp_path, made(engine, tmp_path, "DELETE FROM docs"))
    found = await library.search("lentils")
    assert (found.rows, found.chunks, found.mode) == ((), (), "lexical")
    (tmp_path / "b").mkdir()
    nulls = (
        "UPDATE docs SET title = NULL, content = NULL",
        "UPDATE docs SET content = '' WHERE id = 1",
    )
    library = Library(tmp_path / "b", made(engine, tmp_path / "b", *nulls))
    found = await library.search("lentils", top_n=10)
    assert (len(found.rows), found.chunks) == (10, ())
    assert all(row.lexical_rank is None for row in found.rows)


@ENGINES
async def test_a_column_that_was_never_filled_is_searched_by_words_and_the_result_says_so(
    tmp_path: Path, engine: str
):
    unfilled = made(engine, tmp_path, "UPDATE docs SET content_embedding = NULL")
    found = await Library(tmp_path, unfilled).search("lentils", top_n=3)
    assert (found.mode, ids(found)) == ("lexical", [7])
    assert any("no row has a vector in `content_embedding`" in note for note in found.notes)


@ENGINES
async def test_words_of_other_scripts_and_signs_are_found_and_no_text_is_sql(
    tmp_path: Path, engine: str
):
    said = "\u062d\u0630\u0627\u0621 \u0634\u062a\u0648\u064a \U0001f97e 雪靴"
    library = Library(
        tmp_path, made(engine, tmp_path, f"UPDATE docs SET content = '{said}' WHERE id = 10")
    )
    found = await library.search("\u062d\u0630\u0627\u0621", top_n=3)
    assert next(row.key["id"] for row in found.rows if row.lexical_rank == 1) == 10
    assert next(chunk.text for chunk in found.chunks if chunk.key["id"] == 10) == said
    for odd in ("\U0001f97e", "\u202e\u200f", "\ufffd", "'); DROP TABLE docs; --", "x" * 100_000):
        assert len(ids(await library.search(odd, top_n=3))) == 3
