"""What can happen to a database file under us. Each ends in a coded error; the next call works."""

import asyncio
import shutil
import subprocess
import sys

import duckdb
import pytest

from support.eventually import HANG_S
from support.permits import permit_for
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement

COUNT = "SELECT count(*) FROM items"
POINT = "SELECT name FROM items WHERE id = 3"
ADD = "INSERT INTO void VALUES (1, 'one')"


async def error_of(awaitable):
    with pytest.raises(TidegateError) as caught:
        await awaitable
    return caught.value


async def code_of(awaitable):
    return (await error_of(awaitable)).code


async def test_a_file_that_another_process_writes_is_reported_and_passes(
    hurried_shop, opened_elsewhere
):
    with opened_elsewhere(hurried_shop.path, read_only=False) as pid:
        error = await error_of(open_engine(hurried_shop.source))
        assert error.code is Code.SOURCE_BUSY
        assert f"process {pid}" in error.message
        assert "one process" in error.hint
    async with hurried_shop.opened() as engine:
        assert await hurried_shop.ask(engine, POINT) == [("item 3",)]


async def test_a_file_that_another_process_reads_can_be_read_but_not_written(
    hurried_shop, opened_elsewhere
):
    async with hurried_shop.opened() as engine:
        with opened_elsewhere(hurried_shop.path, read_only=True):
            assert await hurried_shop.ask(engine, POINT) == [("item 3",)]
            refused = hurried_shop.ask(engine, ADD, effect=Effect.WRITE)
            assert await code_of(refused) is Code.SOURCE_BUSY
            assert await hurried_shop.ask(engine, COUNT) == [(10,)]
        await hurried_shop.ask(engine, ADD, effect=Effect.WRITE)


async def test_waiting_for_a_lock_ends_with_the_time_limit(shop, opened_elsewhere):
    shop.source = Source("s1", "shop", f"{shop.url}?timeout=600", "duckdb", "duckdb")
    async with shop.opened() as engine:
        await shop.ask(engine, POINT)
        with opened_elsewhere(shop.path, read_only=True):
            limits = Limits(timeout_s=0.2)
            refused = shop.ask(engine, ADD, effect=Effect.WRITE, limits=limits)
            assert await code_of(refused) is Code.LIMIT_TIME
        await shop.ask(engine, ADD, effect=Effect.WRITE)


async def test_an_idle_source_lets_others_write_and_sees_what_they_wrote(shop):
    write = (
        "import duckdb, time\n"
        "while True:\n"
        "    try:\n"
        f"        c = duckdb.connect({str(shop.path)!r})\n"
        "        break\n"
        "    except duckdb.IOException:\n"
        "        time.sleep(0.05)\n"
        "c.execute(\"UPDATE items SET name = 'theirs' WHERE id = 3\")\n"
        "c.execute('CREATE TABLE new (a INTEGER)')\n"
    )
    async with shop.opened() as engine:
        stamp = await engine.schema_version()
        assert await shop.ask(engine, POINT) == [("item 3",)]
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", write], check=True, timeout=HANG_S
        )
        assert await shop.ask(engine, POINT) == [("theirs",)]
        assert await engine.schema_version() != stamp


async def test_a_change_waits_for_those_who_read_and_later_ones_see_it(shop):
    async with shop.opened() as engine:
        reading = await shop.start(engine, "SELECT * FROM range(1000000)")
        assert await reading.fetch(1)
        change = asyncio.ensure_future(shop.ask(engine, ADD, effect=Effect.WRITE))
        count = asyncio.ensure_future(shop.ask(engine, "SELECT count(*) FROM void"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not change.done()
        assert not count.done()
        await reading.close()
        await change
        assert await count == [(1,)]


async def test_a_change_that_gives_up_waiting_lets_the_others_pass(shop):
    async with shop.opened() as engine:
        reading = await shop.start(engine, "SELECT * FROM range(1000000)")
        assert await reading.fetch(1)
        limits = Limits(timeout_s=0.1)
        change = shop.ask(engine, ADD, effect=Effect.WRITE, limits=limits)
        refused, counted = await asyncio.gather(
            error_of(change), shop.ask(engine, "SELECT count(*) FROM void")
        )
        assert refused.code is Code.SOURCE_BUSY
        assert counted == [(0,)]
        await reading.close()


async def test_a_replaced_file_is_read_again(shop, tmp_path):
    copy = tmp_path / "copy.duckdb"
    shutil.copy(shop.path, copy)
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE items SET name = 'replaced' WHERE id = 3")
        connection.execute("CREATE VIEW seen AS SELECT 1 AS a")
    async with shop.opened() as engine:
        stamp = await engine.schema_version()
        assert await shop.ask(engine, POINT) == [("item 3",)]
        copy.replace(shop.path)
        assert await shop.ask(engine, POINT) == [("replaced",)]
        assert await engine.schema_version() != stamp


async def test_a_removed_file_is_reported_and_found_again(shop, tmp_path):
    async with shop.opened() as engine:
        await shop.ask(engine, POINT)
        away = shop.path.rename(tmp_path / "away.duckdb")
        for text in (POINT, COUNT):
            error = await error_of(shop.ask(engine, text))
            assert error.code is Code.SOURCE_UNREACHABLE
            assert str(shop.path) in error.message
            assert str(shop.path.parent) not in repr(vars(error.without_secrets()))
        assert not shop.path.exists()
        away.rename(shop.path)
        assert await shop.ask(engine, POINT) == [("item 3",)]


async def test_calls_on_a_file_that_is_gone_keep_no_process_of_the_source(shop, tmp_path):
    change = Query(Statement(ADD))
    async with shop.opened() as engine:
        shop.path.rename(tmp_path / "away.duckdb")
        for _ in range(3):
            assert await code_of(shop.ask(engine, POINT)) is Code.SOURCE_UNREACHABLE
            assert await code_of(shop.ask(engine, ADD, effect=Effect.WRITE)) is (
                Code.SOURCE_UNREACHABLE
            )
            permit = permit_for(shop.source, change, Effect.WRITE)
            assert await code_of(engine.dry_run(permit, NEVER)) is Code.SOURCE_UNREACHABLE
            assert len(engine._running) == 0
            assert engine._turns.quiet


@pytest.mark.parametrize("content", [b"", b"Dear Sir or Madam, " * 1000], ids=["empty", "letter"])
async def test_a_file_of_something_else_is_no_database_and_is_left_alone(tmp_path, content):
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    source = Source("s1", "shop", f"duckdb:///{path}", "duckdb", "duckdb")
    error = await error_of(open_engine(source))
    assert error.code is Code.SOURCE_URL
    assert "not a DuckDB database" in error.message
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


async def test_a_missing_file_is_named_and_not_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = Source("s1", "shop", "duckdb:///nowhere.duckdb", "duckdb", "duckdb")
    error = await error_of(open_engine(source))
    assert error.code is Code.SOURCE_UNREACHABLE
    assert str(tmp_path / "nowhere.duckdb") in error.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    ["memory_limit=lots", "memory_limit=1MB", "threads=0", "workers=x", "timeout=-1", "a=1"],
)
async def test_an_option_with_a_wrong_value_is_refused(shop, query):
    source = Source("s1", "shop", f"{shop.url}?{query}", "duckdb", "duckdb")
    assert await code_of(open_engine(source)) is Code.SOURCE_URL


async def test_a_file_cut_short_is_reported(shop):
    shop.path.write_bytes(shop.path.read_bytes()[:20_000])

    async def read():
        async with shop.opened() as engine:
            return await shop.ask(engine, "SELECT count(name) FROM items")

    assert await code_of(read()) is Code.SOURCE_UNREACHABLE


async def test_what_a_crash_left_to_be_done_is_read_and_left_alone(shop):
    crash = (
        "import duckdb, os\n"
        f"c = duckdb.connect({str(shop.path)!r})\n"
        "c.execute(\"INSERT INTO void VALUES (7, 'kept')\")\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", crash], check=False)
    async with shop.opened() as engine:
        before = await shop.digest(engine)
        assert await shop.ask(engine, "SELECT id FROM void") == [(7,)]
        assert await shop.digest(engine) == before


async def test_a_database_in_memory_keeps_what_is_written_and_reads_only_read(shop):
    shop.source = Source("s1", "shop", "duckdb:///:memory:", "duckdb", "duckdb")
    async with shop.opened() as engine:
        for text in ("CREATE TABLE t (a INTEGER)", "CREATE SEQUENCE s"):
            await shop.ask(engine, text, effect=Effect.WRITE)
        await shop.ask(engine, "INSERT INTO t VALUES (1)", effect=Effect.WRITE)
        for text in (
            "INSERT INTO t VALUES (2)",
            "SELECT nextval('s')",
            "WITH w AS (INSERT INTO t VALUES (2) RETURNING a) SELECT * FROM w",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (2)",
        ):
            assert await code_of(shop.ask(engine, text)) is Code.POLICY_READ_ONLY
        assert await shop.ask(engine, "SELECT a FROM t") == [(1,)]
        limits = Limits(timeout_s=0.1)
        runaway = shop.ask(engine, shop.spelling.runaway, limits=limits)
        assert await code_of(runaway) is Code.LIMIT_TIME
        assert await shop.ask(engine, "SELECT a FROM t") == [(1,)]


async def test_a_source_with_one_worker_serves_its_callers_in_turn(shop):
    shop.source = Source("s1", "shop", f"{shop.url}?workers=1", "duckdb", "duckdb")
    cancellation = Cancellation()
    async with shop.opened() as engine:
        runaway = asyncio.ensure_future(
            shop.ask(engine, shop.spelling.runaway, cancellation=cancellation)
        )
        for _ in range(5):
            await asyncio.sleep(0)
        point = asyncio.ensure_future(shop.ask(engine, POINT))
        await asyncio.sleep(0)
        cancellation.cancel()
        assert await code_of(runaway) is Code.CALL_CANCELLED
        assert await point == [("item 3",)]
