"""A SQLite file that others write, too: long definitions, locks that are held, locks that stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest

from support.permits import permit_for
from tidegate.engines.sqlite.engine import SqliteEngine
from tidegate.errors import TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SqliteEngine]:
    engine = await SqliteEngine.open(_source(path))
    try:
        yield engine
    finally:
        await engine.close()


async def read(engine: SqliteEngine, path: Path, text: str) -> list[tuple[object, ...]]:
    permit = permit_for(_source(path), Query(Statement(text)))
    cursor = await engine.run(permit, NEVER)
    try:
        return [tuple(row) for row in await cursor.fetch(1000)]
    finally:
        await cursor.close()


def _source(path: Path) -> Source:
    return Source("1", "file", f"sqlite:///{path}", "sqlite", "sqlite")


def _made(path: Path) -> apsw.Connection:
    made = apsw.Connection(str(path))
    made.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    return made


LONG_VIEW = f"CREATE VIEW v AS SELECT a, '{'x' * 40_000}' AS x FROM t"


async def test_a_definition_of_any_length_leaves_the_source_usable(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    _made(path).execute(LONG_VIEW)
    async with opened(path) as engine:
        for _ in range(3):
            assert await read(engine, path, "SELECT a FROM t") == [(1,)]
        assert await read(engine, path, "SELECT length(x) FROM v") == [(40_000,)]


@pytest.mark.parametrize("first", ["SELECT a FROM t", "SELECT a FROM t WHERE a LIKE '%1%'"])
async def test_a_long_definition_that_is_made_later_leaves_it_usable(
    tmp_path: Path, first: str
) -> None:
    path = tmp_path / "later.db"
    made = _made(path)
    async with opened(path) as engine:
        for _ in range(3):
            assert await read(engine, path, first) == [(1,)]
        made.execute(LONG_VIEW)
        for _ in range(3):
            assert await read(engine, path, first) == [(1,)]
            assert await read(engine, path, "SELECT a, a FROM t") == [(1, 1)]


async def test_a_read_waits_for_a_lock_also_when_its_connection_is_new(tmp_path: Path) -> None:
    path = tmp_path / "locked.db"
    made = _made(path)
    async with opened(path) as engine:
        made.execute("BEGIN EXCLUSIVE")
        asyncio.get_running_loop().call_later(0.3, made.execute, "COMMIT")
        assert await read(engine, path, "SELECT a FROM t") == [(1,)]


async def test_a_source_opens_when_a_lock_ends(tmp_path: Path) -> None:
    path = tmp_path / "opening.db"
    made = _made(path)
    made.execute("BEGIN EXCLUSIVE")
    asyncio.get_running_loop().call_later(0.3, made.execute, "COMMIT")
    async with opened(path) as engine:
        assert await read(engine, path, "SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize(
    "reads",
    [
        ("PRAGMA integrity_check", "SELECT * FROM ft"),
        ("SELECT * FROM ft",),
        ("SELECT * FROM ft WHERE ft MATCH 'x'", "PRAGMA integrity_check"),
        ("SELECT rank FROM ft WHERE ft MATCH 'x' ORDER BY rank LIMIT 1",),
    ],
)
async def test_no_read_of_a_full_text_table_leaves_a_lock(
    tmp_path: Path, reads: tuple[str, ...]
) -> None:
    path = tmp_path / "ft.db"
    made = _made(path)
    made.execute("CREATE VIRTUAL TABLE ft USING fts5(a); INSERT INTO ft VALUES ('x'), ('y')")
    async with opened(path) as engine:
        for _ in range(3):
            for text in reads:
                with suppress(TidegateError):  # a read that fails must leave no lock either
                    await read(engine, path, text)
                made.execute("INSERT INTO ft VALUES ('x')")
    assert made.execute("SELECT count(*) FROM ft").fetchall() == [(2 + 3 * len(reads),)]
