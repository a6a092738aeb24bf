"""A result streams through the gate into a slow reader, in bounded memory, on every engine."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from support.documents import ROOT
from support.engine_cases import ACTOR, CASES
from support.eventually import HANG_S
from support.surface_gateway import SqliteGate
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.statements import Statement
from tidegate.results.row_stream import CHUNK_ROWS, RowChannel

READ_SLOWLY = """
import asyncio, json, resource, sys
from pathlib import Path
from support.engine_cases import ACTOR
from support.surface_gateway import SqliteGate
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.results.row_stream import RowChannel

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main(directory, url, engine, dialect, text, one):
    gate = SqliteGate(Path(directory), Source("s", "shop", url, engine, dialect))
    limits = Limits(max_rows=10**9, timeout_s=300)
    def call(request):
        return Call(ACTOR, "core", "query", request, "shop")
    async with gate.opened():
        channel = RowChannel()
        query = Query(Statement(text), limits=limits, sink=channel)
        task = asyncio.ensure_future(gate.handle(call(query)))
        task.add_done_callback(lambda _: channel.end())
        read, chunks, before = 0, 0, None
        async for rows in channel:
            read += sum(len(row[1]) for row in rows)
            if chunks < 20:  # the reader has other work to do, and the statement waits for it
                await gate.handle(call(Query(Statement(one))))
            chunks += 1
            if chunks == 10:
                before = peak()
        page = (await task).payload
        print(json.dumps([read, page.row_count, peak() - before]))

asyncio.run(main(*sys.argv[1:]))
"""
ROWS, WIDTH = 200_000, 1_000


def call(request):
    return Call(ACTOR, "core", "query", request, "shop")


@pytest.mark.parametrize("name", ["postgres", "mysql", "duckdb", "sqlite"])
def test_a_slow_reader_of_a_large_result_takes_no_more_memory_than_a_few_chunks(name, tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    case = CASES[name].prepare(tmp_path / "shop")
    source, spelling = case.source, case.spelling
    text = spelling.wide_rows.format(n=ROWS, width=WIDTH)
    done = subprocess.run(
        [sys.executable, "-c", READ_SLOWLY, str(tmp_path / "state"), source.url, source.engine,
         source.dialect, text, spelling.one],
        capture_output=True, timeout=HANG_S, env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    read, count, grown_kib = json.loads(done.stdout)
    assert (read, count) == (ROWS * WIDTH, ROWS)
    assert grown_kib * 1024 < ROWS * WIDTH / 10


@pytest.fixture
def gate(tmp_path, shop):
    (tmp_path / "state").mkdir(mode=0o700)
    return SqliteGate(tmp_path / "state", shop.source)


async def test_the_statement_waits_for_its_reader(gate, shop):
    async with gate.opened():
        channel = RowChannel()
        text = shop.spelling.rows.format(n=100_000)
        query = Query(Statement(text), limits=Limits(max_rows=1_000_000), sink=channel)
        task = asyncio.ensure_future(gate.handle(call(query)))
        task.add_done_callback(lambda _: channel.end())
        first = await anext(channel)
        for _ in range(20):  # the server does other work; the stream does not move
            await gate.handle(call(Query(Statement(shop.spelling.one))))
        assert not task.done()
        assert [column.name for column in channel.columns] == ["i", "'x'"]
        numbers = [row[0] for row in first]
        async for rows in channel:
            assert len(rows) <= CHUNK_ROWS
            numbers += [row[0] for row in rows]
        assert numbers == list(range(1, 100_001))
        assert (await task).payload.row_count == 100_000


async def test_the_limit_of_rows_holds_for_a_stream(gate, shop):
    async with gate.opened():
        channel = RowChannel()
        text = shop.spelling.rows.format(n=1_000)
        query = Query(Statement(text), limits=Limits(max_rows=70), sink=channel)
        task = asyncio.ensure_future(gate.handle(call(query)))
        task.add_done_callback(lambda _: channel.end())
        rows = [row async for chunk in channel for row in chunk]
        page = (await task).payload
        assert len(rows) == page.row_count == 70
        assert [cut.kind for cut in page.truncations] == ["rows"]


async def test_a_reader_who_leaves_ends_the_statement(gate, shop):
    async with gate.opened():
        channel = RowChannel()
        text = shop.spelling.runaway.replace("count(*)", "i")
        query = Query(Statement(text), limits=Limits(max_rows=10**9), sink=channel)
        task = asyncio.ensure_future(gate.handle(call(query)))
        await anext(channel)
        channel.close()
        with pytest.raises(TidegateError) as caught:
            await task
        assert caught.value.code is Code.CALL_CANCELLED
        assert (await gate.handle(call(Query(Statement("SELECT 1"))))).payload.rows == b"[[1]]"
