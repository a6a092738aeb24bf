"""Words by a BM25 index of PostgreSQL's extension pg_textsearch, on a real server that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.search_library import Library, handle_of, ids, make_postgres
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.search.hybrid import search
from tidegate.search.model import SimilaritySearch

INDEX = (
    "CREATE EXTENSION pg_textsearch",
    "DROP INDEX docs_words",
    "CREATE INDEX docs_bm25 ON docs USING bm25 (content) WITH (text_config = 'english')",
)


def make(directory: Path, *extra: str, rows: int = 100, **fields: Any) -> Library:
    url = make_postgres(*INDEX, *extra, rows=rows, server_kind="bm25")
    return Library(directory, url, **fields)


async def test_the_index_ranks_and_is_named(tmp_path: Path):
    library = make(
        tmp_path,
        "INSERT INTO docs (id, content) VALUES"
        " (201, 'edition edition edition of the series'), (202, 'a zeppelin of some edition')",
    )
    found = await library.search("zeppelin edition", top_n=200)
    assert found.words is not None
    assert (found.words.method, found.words.index) == ("bm25:pg_textsearch", "docs_bm25")
    assert found.words.columns == ("content",)
    # The rare word counts for more than the frequent one, however often a row has that.
    assert [row.key["id"] for row in found.rows if row.lexical_rank == 1] == [202]
    assert found.mode == "hybrid"


@pytest.mark.parametrize(
    "text",
    ["???", "the of and", "🥾", "\u0627\u0644\u062b\u0644\u062c", "nosuchword", "a'); DROP--"],
)
async def test_a_text_without_a_word_of_the_index_finds_rows_by_vectors_alone(
    tmp_path: Path, text: str
):
    found = await make(tmp_path, rows=10).search(text, top_n=3)
    assert [row.lexical_rank for row in found.rows] == [None] * 3
    assert found.words is not None
    assert found.words.rows == 0


async def test_conditions_hold_and_leave_as_many_rows_as_were_asked_for(tmp_path: Path):
    condition = {"column": "id", "op": ">", "value": 90}
    found = await make(tmp_path).search("lentils and leeks", top_n=5, filter=[condition])
    assert len(found.rows) == 5
    assert all(number > 90 for number in ids(found))
    assert found.words is not None
    assert found.words.method == "bm25:pg_textsearch"


@pytest.mark.parametrize(
    ("hidden", "visible"),
    [
        ({"masks": (Mask("docs.content"),)}, set[int]()),
        ({"filters": (RowFilter("docs", "id < 50"),)}, set(range(50))),
        ({"masks": (Mask("docs.title"),)}, set(range(101))),
    ],
)
async def test_what_is_hidden_is_not_found_by_an_index_that_holds_it(
    tmp_path: Path, hidden: dict[str, Any], visible: set[int]
):
    found = await make(tmp_path, **hidden).search("lentils leeks", top_n=50)
    by_words = {row.key["id"] for row in found.rows if row.lexical_rank is not None}
    assert by_words == {number for number in range(7, 101, 10) if number in visible}


async def test_indexes_made_and_dropped_between_two_searches_are_used_from_then_on(tmp_path: Path):
    library = Library(tmp_path, make_postgres(rows=50, server_kind="bm25"))
    name = library.source.url.partition("@/")[2].partition("?")[0]
    async with library.gate.opened() as gate:

        async def method() -> str:
            found = await search(handle_of(gate), SimilaritySearch("docs", "lentils", 3))
            return "" if found.words is None else found.words.method

        assert (await method()).startswith("tsvector")
        for statement in INDEX:
            postgres_server.shared("bm25").ask(statement, name)
        assert await method() == "bm25:pg_textsearch"
        postgres_server.shared("bm25").ask("DROP INDEX docs_bm25", name)
        assert await method() == "scan"
