"""Search by similarity on real PostgreSQL, SQLite and DuckDB: what every database must give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.search_library import (
    BOOKS,
    Library,
    handle_of,
    ids,
    make_duckdb,
    make_postgres,
    make_sqlite,
    vectors_of,
)
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.profiles import Place, Profiles, TableProfile
from tidegate.model.requests import Browse, ReadProfiles
from tidegate.model.schema import Catalog
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.search.hybrid import MOST_CHOSEN, words_weight
from tidegate.search.model import SimilaritySearch

MAKERS: dict[str, Callable[..., str]] = {
    "postgres": lambda directory, **made: make_postgres(**made),
    "sqlite": lambda directory, **made: make_sqlite(directory / "docs.db", **made),
    "duckdb": lambda directory, **made: make_duckdb(directory / "docs.duckdb", **made),
}


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Library]:
    """Makes a library on one of the databases."""

    def made(rows: int = len(BOOKS), **fields: Any) -> Library:
        return Library(tmp_path, MAKERS[request.param](tmp_path, rows=rows), **fields)

    return made


async def refused(library: Library, text: str = "boots", **wanted: Any) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        await library.search(text, **wanted)
    return caught.value


async def test_words_and_vectors_find_the_row_together(make: Callable[..., Library]):
    result = await make().search("warm boots for snow", top_n=3)
    assert result.mode == "hybrid"
    first = result.rows[0]
    assert (first.key, first.vector_rank, first.lexical_rank) == ({"id": 1}, 1, 1)
    assert len(result.rows) == 3
    chunk = result.chunks[0]
    assert (chunk.key, chunk.column, chunk.chunk, chunk.text) == (
        *({"id": 1}, "content", 1),
        BOOKS[0][1],
    )
    assert [row.score for row in result.rows] == sorted(
        (row.score for row in result.rows), reverse=True
    )


async def test_the_distances_are_exact_and_in_the_order_of_the_vectors(
    make: Callable[..., Library],
):
    text = "warm boots for snow"
    result = await make().search(text, top_n=10, output_format="ids_only")
    asked, *others = vectors_of([text, *[content for _, content in BOOKS]])
    exact = {
        number: 1 - sum(a * b for a, b in zip(asked, other, strict=True))
        for number, other in enumerate(others, 1)
    }
    assert len(result.rows) == 10
    for row in result.rows:
        assert row.distance == pytest.approx(exact[row.key["id"]], abs=1e-3)
    by_rank = sorted(result.rows, key=lambda row: row.vector_rank or 0)
    assert [row.distance for row in by_rank] == sorted(row.distance or 0 for row in by_rank)


async def test_a_text_without_a_word_in_common_is_found_by_its_vector(make: Callable[..., Library]):
    result = await make().search("unheard", top_n=4)
    assert len(result.rows) == 4
    assert {row.lexical_rank for row in result.rows} == {None}
    # The order of the chunks is that of the rows: there is nothing else to tell them apart.
    assert result.chunks[0].key == result.rows[0].key


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"column": "lang", "value": "de"}, {10, 20}),
        ({"column": "lang", "op": "!=", "value": "en"}, {10, 20}),
        ({"column": "id", "op": "in", "value": [3, 17]}, {3, 17}),
        ({"column": "id", "op": ">", "value": 18}, {19, 20}),
        ({"column": "YEAR", "op": "<=", "value": 1989}, set()),
        ({"column": "title", "op": "is_null"}, set()),
    ],
)
async def test_only_rows_that_meet_the_conditions_are_found(
    make: Callable[..., Library], condition: dict[str, Any], expected: set[int]
):
    result = await make(rows=20).search("boots and law", top_n=5, filter=[condition])
    assert set(ids(result)) == expected
    assert {chunk.key["id"] for chunk in result.chunks} <= expected


@pytest.mark.parametrize("text", ["'; DROP TABLE docs; --", '" OR 1=1', "\\' % _ ) (", "x' || 'y"])
async def test_a_text_that_looks_like_sql_is_a_text(make: Callable[..., Library], text: str):
    library = make()
    result = await library.search(
        text, top_n=2, filter=[{"column": "lang", "op": "!=", "value": text}]
    )
    assert len(result.rows) == 2
    assert len((await library.search("boots", top_n=10)).rows) == 10


async def test_a_filter_on_a_column_that_is_not_there_is_refused(make: Callable[..., Library]):
    library = make()
    error = await refused(library, filter=[{"column": 'id" = 1 OR "id', "value": 1}])
    assert error.code is Code.ARGUMENT_INVALID
    error = await refused(library, filter=[{"column": "id", "op": "in", "value": 3}])
    assert error.code is Code.ARGUMENT_INVALID
    error = await refused(library, filter=[{"column": "id", "op": "is_null", "value": 3}])
    assert error.code is Code.ARGUMENT_INVALID


async def test_a_table_that_is_not_there_is_named_with_its_neighbours(
    make: Callable[..., Library],
):
    error = await refused(make(), table_name="dosc")
    assert error.code is Code.TABLE_UNKNOWN
    assert "docs" in error.hint


async def test_a_model_of_other_dimensions_is_an_error_and_no_ranking(
    make: Callable[..., Library],
):
    other = EmbeddingSettings(provider="hash-test", dimensions=8)
    error = await refused(make(embeddings=other))
    assert error.code is Code.EMBEDDING_DIMENSION
    assert "content_embedding" in error.message
    assert "8" in error.message


async def test_without_a_provider_words_are_searched_and_the_result_says_so(
    make: Callable[..., Library],
):
    result = await make(embeddings=EmbeddingSettings(provider="none")).search("boots", top_n=3)
    assert result.mode == "lexical"
    assert ids(result) == [1]
    assert any("words alone" in note for note in result.notes)


async def test_a_masked_column_is_neither_searched_nor_shown(make: Callable[..., Library]):
    library = make(masks=(Mask("docs.content"),))
    result = await library.search("boots", top_n=10)
    # Its vectors tell of it as well.
    assert (result.mode, result.vectors) == ("lexical", ())
    assert result.words is not None
    assert "content" not in result.words.columns
    assert {chunk.column for chunk in result.chunks} <= {"title", "lang"}
    snow = await library.search("lining feet dry", top_n=10)
    assert ids(snow) == []


async def test_a_masked_column_is_no_condition(make: Callable[..., Library]):
    library = make(masks=(Mask("docs.lang", "hash"),))
    error = await refused(library, filter=[{"column": "lang", "value": "de"}])
    assert error.code is Code.POLICY_MASKED


async def test_rows_that_a_filter_of_the_source_hides_are_not_found(make: Callable[..., Library]):
    library = make(rows=40, filters=(RowFilter("docs", "id > 30"),))
    result = await library.search("boots and law", top_n=10)
    assert len(result.rows) == 10
    assert all(number > 30 for number in ids(result))
    assert all(chunk.key["id"] > 30 for chunk in result.chunks)


async def test_every_request_of_a_search_is_on_record_without_its_text(
    make: Callable[..., Library], tmp_path: Path
):
    await make().search("confidential merger", top_n=2)
    found = [line for line in records(tmp_path / "state") if line.get("tool") == "search"]
    kinds = {line["request"] for line in found}
    assert {"browse", "query", "embedding"} <= kinds
    assert {line["actor"] for line in found} == {"tok_reader"}
    intent, outcome = (line for line in found if line["request"] == "embedding")
    assert (intent["phase"], outcome["phase"]) == ("intent", "outcome")  # before a text leaves
    assert "confidential" not in repr((intent, outcome))
    assert "hash-test" in repr(outcome)


async def test_chunks_stay_within_the_token_budget(make: Callable[..., Library]):
    result = await make(rows=40).search("boots", top_n=20, max_output_tokens=60)
    assert 0 < result.tokens <= 60
    assert result.tokens == sum(chunk.tokens for chunk in result.chunks)
    assert result.cut


async def test_ids_only_gives_keys_and_no_texts(make: Callable[..., Library]):
    result = await make().search("boots", top_n=3, output_format="ids_only")
    assert len(result.rows) == 3
    assert result.chunks == ()


async def test_an_empty_question_is_refused(make: Callable[..., Library]):
    assert (await refused(make(), " \n ")).code is Code.ARGUMENT_INVALID


async def test_the_work_on_long_texts_is_bounded_whatever_is_asked_for(tmp_path: Path):
    long = "UPDATE docs SET content = replace(hex(zeroblob(25000)), '0', 'snow and boots, ')"
    url = make_sqlite(tmp_path / "docs.db", long, rows=30, fts=False)
    asked = {"top_n": 1_000, "chunk_size_tokens": 10, "max_output_tokens": 100_000}
    result = await Library(tmp_path, url).search("boots", **asked)
    assert result.cut
    assert len(result.rows) == 30
    assert 10 < len(result.chunks) <= MOST_CHOSEN


async def test_vectors_are_not_sampled_as_values(tmp_path: Path):
    library = Library(tmp_path, make_postgres())
    async with library.gate.opened() as gate:
        handle = handle_of(gate)
        tables = (await handle(Browse("catalog"), Catalog)).tables
        (docs,) = [table for table in tables if table.name == "docs"]
        profiles: dict[Place, TableProfile] = {}
        while not profiles:  # a slow machine needs more than one wait of a moment
            profiles = (await handle(ReadProfiles((docs,), 1), Profiles)).tables
    assert "lang" in profiles["public", "docs"]
    assert not {"content_embedding", "words"} & profiles["public", "docs"].keys()


async def test_the_words_of_a_query_count_as_much_as_is_asked_for(make: Callable[..., Library]):
    library = make()
    text = "warm boots for snow"
    alone = await library.search(text, words="off")
    assert (alone.mode, alone.words) == ("vector", None)
    assert all(row.lexical_rank is None for row in alone.rows)
    equal = await library.search(text, words="equal")
    less = await library.search(text, words="less")
    assert equal.words is not None and less.words is not None
    assert (equal.words.weight, less.words.weight) == (1.0, 0.1)
    assert equal.rows[0].score - less.rows[0].score == pytest.approx(0.9 / 61)


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("what should I wear when it snows in the mountains", 0.1),
        ("boots", 1.0),
        ("what does the manual say about error 4711", 1.0),
        ("who wrote the letter to Ada Lovelace in spring", 0.25),
        ('where do I read about "lined shoes" for winter', 1.0),
        ("which table is filled by load_daily_sales every night", 1.0),
    ],
)
def test_the_words_of_a_question_of_meaning_count_less_than_those_of_names(
    text: str, weight: float
):
    assert words_weight(SimilaritySearch("docs", text)) == weight
