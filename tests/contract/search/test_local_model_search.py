"""From texts to answers with the real local model: embedded, indexed, and found by meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.search_library import Library, make_duckdb, make_postgres, make_sqlite
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.search import embedding_job
from tidegate.search.check import check_table
from tidegate.search.hybrid import search
from tidegate.search.model import SimilaritySearch

WRITER = Actor("tok_writer", "writer", Scope.READ_WRITE)
DROP = "ALTER TABLE docs DROP COLUMN content_embedding"

MAKERS: dict[str, Callable[[Path], str]] = {
    "postgres": lambda directory: make_postgres(DROP, index=""),
    "sqlite": lambda directory: make_sqlite(directory / "docs.db", DROP),
    "duckdb": lambda directory: make_duckdb(directory / "docs.duckdb", DROP),
}


@pytest.mark.parametrize("engine", sorted(MAKERS))
async def test_a_row_is_found_by_what_it_means(tmp_path: Path, engine: str):
    url = MAKERS[engine](tmp_path)
    name = url.partition("@/")[2].partition("?")[0]
    if engine == "postgres":  # on so few rows the planner needs to be told to use an index
        postgres_server.shared().ask(f"ALTER DATABASE {name} SET enable_seqscan = off")
    library = Library(tmp_path, url, access="write", embeddings=EmbeddingSettings("local"))
    async with library.gate.opened() as gate:

        async def handle(request: Any, expected: Any) -> Any:
            call = Call(WRITER, "cli", "embed", request, "library")
            return (await gate.handle(call)).payload

        job = await embedding_job.plan(handle, "docs", "content")
        await embedding_job.make_columns(handle, job)
        async for _ in embedding_job.fill(handle, job):
            pass
        if engine == "postgres":
            postgres_server.shared().ask(job.index or "", name)
        # Not a word of these is in the texts that they find.
        asked = {"wintry footwear": 1, "legal agreements": 5, "hiking trails": 9}
        for question, wanted in asked.items():
            found = await search(handle, SimilaritySearch("docs", question, 3))
            assert found.rows[0].key == {"id": wanted}
            assert found.rows[0].lexical_rank is None
            (leg,) = found.vectors
            assert (leg.provider, leg.model) == ("local", "all-MiniLM-L6-v2-int8")
            assert (job.dimensions, leg.dimensions) == (384, 384)
            assert (leg.index is not None) == (engine == "postgres")
        problems = [each for each in await check_table(handle, "docs") if each.level == "fault"]
        assert not problems
