"""Filling a column of vectors on real databases, and checking it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.search_library import Library, make_duckdb, make_postgres, make_sqlite
from support.surface_gateway import SqliteGate
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.source_settings import Mask
from tidegate.model.statements import Statement
from tidegate.search import embedding_job
from tidegate.search.check import check_table
from tidegate.search.hybrid import search
from tidegate.search.model import SimilaritySearch

WRITER = Actor("tok_writer", "writer", Scope.READ_WRITE)
ROWS = 300
DROP = "ALTER TABLE docs DROP COLUMN content_embedding"

MAKERS: dict[str, Callable[[Path], str]] = {
    "postgres": lambda directory: make_postgres(DROP, rows=ROWS, index=""),
    "sqlite": lambda directory: make_sqlite(directory / "docs.db", DROP, rows=ROWS),
    "duckdb": lambda directory: make_duckdb(directory / "docs.duckdb", DROP, rows=ROWS),
}


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Library]:
    """Makes a library without vectors on one of the databases; it may be written to."""

    def made(**fields: Any) -> Library:
        fields.setdefault("access", "write")
        return Library(tmp_path, MAKERS[request.param](tmp_path), **fields)

    return made


class Desk:
    """Requests of a writer about the library."""

    def __init__(self, gate: SqliteGate, actor: Actor = WRITER) -> None:
        self.gate, self.actor = gate, actor

    async def handle(self, request: Any, expected: Any) -> Any:
        call = Call(self.actor, "cli", "embed", request, "library", scope=Scope.READ_ONLY)
        payload = (await self.gate.handle(call)).payload
        assert isinstance(payload, expected)
        return payload

    async def run(self, text: str) -> list[Any]:
        import msgspec

        call = Call(self.actor, "cli", "q", Query(Statement(text)), "library")
        return msgspec.json.decode((await self.gate.handle(call)).payload.rows)

    async def embed(self, **wanted: Any) -> tuple[int, int, int]:
        """Fill the column to the end; rows read, texts embedded, vectors removed."""
        job = await embedding_job.plan(self.handle, "docs", "content", **wanted)
        await embedding_job.make_columns(self.handle, job)
        last = embedding_job.Progress(0, 0, 0)
        async for done in embedding_job.fill(self.handle, job):
            last = done
        return last


async def test_a_column_is_made_filled_and_searched(make: Callable[..., Library]):
    async with make().gate.opened() as gate:
        desk = Desk(gate)
        assert await desk.embed() == (ROWS, ROWS, 0)
        wanted = SimilaritySearch("docs", "warm boots for snow", 3)
        found = await search(desk.handle, wanted)
        assert found.vectors[0].column == "content_embedding"
        assert found.rows[0].key == {"id": 1}
        assert found.rows[0].distance == pytest.approx(0.5, abs=1e-3)


async def test_a_second_run_embeds_changed_texts_only_and_removes_what_has_gone(
    make: Callable[..., Library],
):
    async with make().gate.opened() as gate:
        desk = Desk(gate)
        await desk.embed()
        assert await desk.embed() == (ROWS, 0, 0)
        await desk.run("UPDATE docs SET content = 'Something new' WHERE id IN (2, 3)")
        await desk.run("UPDATE docs SET content = NULL WHERE id = 4")
        await desk.run("DELETE FROM docs WHERE id = 5")
        assert await desk.embed() == (ROWS - 1, 2, 1)
        rows = await desk.run(
            "SELECT id FROM docs WHERE content_embedding IS NULL OR content_embedding_digest IS"
            " NULL"
        )
        assert rows == [[4]]


async def test_a_run_that_was_stopped_goes_on_where_it_ended(make: Callable[..., Library]):
    async with make().gate.opened() as gate:
        desk = Desk(gate)
        job = await embedding_job.plan(desk.handle, "docs", "content")
        await embedding_job.make_columns(desk.handle, job)
        async for done in embedding_job.fill(desk.handle, job):
            assert done.embedded == embedding_job.READ
            break
        job = await embedding_job.plan(desk.handle, "docs", "content")
        counts = await embedding_job.count(desk.handle, job)
        assert (counts.texts, counts.current, counts.missing) == (
            *(ROWS, embedding_job.READ),
            ROWS - embedding_job.READ,
        )
        assert await desk.embed() == (ROWS, ROWS - embedding_job.READ, 0)


async def test_two_runs_at_once_make_the_columns_and_fill_them_together(
    make: Callable[..., Library],
):
    async with make().gate.opened() as gate:
        desk, other = Desk(gate), Desk(gate)
        await asyncio.gather(desk.embed(), other.embed())
        job = await embedding_job.plan(desk.handle, "docs", "content")
        assert (await embedding_job.count(desk.handle, job)).current == ROWS


async def test_another_model_fills_a_second_column_that_takes_the_name(
    make: Callable[..., Library], tmp_path: Path
):
    library = make()
    async with library.gate.opened() as gate:
        await Desk(gate).embed()
    other = EmbeddingSettings(provider="hash-test", dimensions=16, model="newer")
    gate = SqliteGate(tmp_path / "state", library.source, embeddings=other)
    async with gate.opened():
        desk = Desk(gate)
        job = await embedding_job.plan(desk.handle, "docs", "content")
        assert (await embedding_job.count(desk.handle, job)).other_model == ROWS
        found = await check_table(desk.handle, "docs")
        assert any("other vectors" in each.text for each in found if each.level == "fault")
        into = f"content_embedding{embedding_job.NEXT}"
        await desk.embed(into=into)
        await embedding_job.switch(
            desk.handle, await embedding_job.plan(desk.handle, "docs", "content", into)
        )
        job = await embedding_job.plan(desk.handle, "docs", "content")
        counts = await embedding_job.count(desk.handle, job)
        assert (counts.current, counts.other_model) == (ROWS, 0)
        result = await search(desk.handle, SimilaritySearch("docs", "boots", 3))
        assert [leg.column for leg in result.vectors] == ["content_embedding"]
        found = await check_table(desk.handle, "docs")
        assert not [each for each in found if each.level == "fault"]


async def test_a_source_that_is_read_only_is_not_changed(make: Callable[..., Library]):
    async with make(access="read").gate.opened() as gate:
        desk = Desk(gate)
        with pytest.raises(TidegateError) as refused:
            await desk.embed()
        assert refused.value.code is Code.POLICY_READ_ONLY
        job = await embedding_job.plan(desk.handle, "docs", "content")
        assert [name for name, _ in job.missing] == [
            "content_embedding",
            "content_embedding_digest",
        ]


async def test_every_batch_is_on_record_before_it_is_written(
    make: Callable[..., Library], tmp_path: Path
):
    async with make().gate.opened() as gate:
        await Desk(gate).embed()
    written = [
        line
        for line in records(tmp_path / "state")
        if (line.get("statement") or "").startswith("UPDATE") and line.get("effect") == "write"
    ]
    phases = [line["phase"] for line in written]
    batches = -(-256 // embedding_job.BATCH) + 1
    assert (phases.count("intent"), phases.count("outcome")) == (batches, batches)


async def test_a_masked_column_is_not_embedded(make: Callable[..., Library]):
    async with make(masks=(Mask("docs.content"),)).gate.opened() as gate:
        with pytest.raises(TidegateError) as refused:
            await Desk(gate).embed()
        assert refused.value.code is Code.POLICY_MASKED


async def test_a_column_that_holds_no_text_is_refused_by_name(make: Callable[..., Library]):
    async with make().gate.opened() as gate:
        with pytest.raises(TidegateError) as refused:
            await embedding_job.plan(Desk(gate).handle, "docs", "year")
        assert refused.value.code is Code.ARGUMENT_INVALID
        assert "content" in refused.value.hint


async def test_the_check_finds_missing_vectors_and_another_dimension(
    make: Callable[..., Library], tmp_path: Path
):
    library = make()
    async with library.gate.opened() as gate:
        desk = Desk(gate)
        assert [each.text for each in await check_table(desk.handle, "docs")] == [
            "there is no column of vectors"
        ]
        await desk.embed()
        assert not [
            each for each in await check_table(desk.handle, "docs") if each.level == "fault"
        ]
        await desk.run("UPDATE docs SET content_embedding = NULL WHERE id <= 7")
        faults = [each for each in await check_table(desk.handle, "docs") if each.level == "fault"]
        assert [each.text for each in faults] == [f"7 of {ROWS} texts have no vector"]
    other = EmbeddingSettings(provider="hash-test", dimensions=8)
    gate = SqliteGate(tmp_path / "state", library.source, embeddings=other)
    async with gate.opened():
        faults = [e for e in await check_table(Desk(gate).handle, "docs") if e.level == "fault"]
        assert "16 dimensions" in faults[0].text


async def test_vectors_of_texts_that_have_changed_or_gone_are_counted_and_found(
    make: Callable[..., Library],
):
    async with make().gate.opened() as gate:
        desk = Desk(gate)
        job = await embedding_job.plan(desk.handle, "docs", "content")
        assert await embedding_job.find_stale(desk.handle, job) is None
        await desk.embed()
        job = await embedding_job.plan(desk.handle, "docs", "content")
        assert await embedding_job.find_stale(desk.handle, job) == (ROWS, 0, 0)
        # Far behind the few rows whose vectors are compared with the model's.
        await desk.run(
            f"UPDATE docs SET content = 'Something new' WHERE id IN ({ROWS - 1}, {ROWS})"
        )
        await desk.run(f"UPDATE docs SET content = NULL WHERE id = {ROWS - 2}")
        assert await embedding_job.find_stale(desk.handle, job) == (ROWS, 2, 1)
        assert await embedding_job.find_stale(desk.handle, job, 1) == (embedding_job.READ, 0, 0)
        faults = [e for e in await check_table(desk.handle, "docs") if e.level == "fault"]
        assert [each.text for each in faults] == [
            "2 vectors are of texts that have changed since",
            "1 vectors are of texts that have gone",
        ]
        assert "tidegate embed SOURCE docs content" in faults[0].hint
        await desk.embed()
        assert await embedding_job.find_stale(desk.handle, job) == (ROWS, 0, 0)


async def test_what_a_run_needs_is_looked_for_before_anyone_is_asked(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    made = make_postgres(DROP, "DROP EXTENSION vector", rows=10, index="")
    async with Library(tmp_path / "a", made, access="write").gate.opened() as gate:
        desk = Desk(gate)
        job = await embedding_job.plan(desk.handle, "docs", "content")
        with pytest.raises(TidegateError) as refused:
            await embedding_job.check_ready(desk.handle, job)
        assert "no type `vector`" in refused.value.message
        assert "CREATE EXTENSION vector" in refused.value.hint
    made = make_postgres(DROP, "ALTER TABLE docs DROP CONSTRAINT docs_pkey", rows=10, index="")
    async with Library(tmp_path / "b", made, access="write").gate.opened() as gate:
        desk = Desk(gate)
        job = await embedding_job.plan(desk.handle, "docs", "content")
        with pytest.raises(TidegateError) as refused:
            await embedding_job.check_ready(desk.handle, job)
        assert "no primary key" in refused.value.message
