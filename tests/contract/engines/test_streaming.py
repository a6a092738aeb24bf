"""A result is never held: what a caller has read is let go, in our process and in a worker's."""

import json
import subprocess
import sys

import pytest

from support.engine_cases import CASES
from support.eventually import HANG_S

READ_ALL = """
import asyncio, json, resource, sys
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Query
from tidegate.model.cancellation import NEVER
from tidegate.engines.registry import open_engine
from tidegate.model.results import Limits
from tidegate.model.decisions import Permit
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

def peak(who):
    return resource.getrusage(who).ru_maxrss

async def main(url, name, dialect, text):
    source = Source("s", "s", url, name, dialect)
    engine = await open_engine(source)
    query = Query(Statement(text), limits=Limits(max_rows=10**9, max_bytes=10**12, timeout_s=300))
    permit = Permit(
        "c", Actor("a", "a", Scope.READ_ONLY), source, query, Effect.READ, query.limits,
        judgement=judge(text, dialect), judged_text=text,
    )
    before, read = None, 0
    cursor = await engine.run(permit, NEVER)
    while rows := await cursor.fetch(1000):
        read += sum(len(row[1]) for row in rows)
        before = before or peak(resource.RUSAGE_SELF)
    await cursor.close()
    grown = peak(resource.RUSAGE_SELF) - before
    await engine.close()
    print(json.dumps([read, grown, peak(resource.RUSAGE_CHILDREN)]))

asyncio.run(main(*sys.argv[1:]))
"""

ROWS, WIDTH = 300_000, 1_000


@pytest.mark.parametrize("name", ["postgres", "mysql", "duckdb", "sqlite"])
def test_reading_a_large_result_takes_no_more_memory_than_its_beginning(name, tmp_path):
    case = CASES[name].prepare(tmp_path)
    text = case.spelling.wide_rows.format(n=ROWS, width=WIDTH)
    source = case.source
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, source.url, source.engine, source.dialect, text],
        capture_output=True, check=True, timeout=HANG_S,
    )  # fmt: skip
    read, grown_kib, worker_kib = json.loads(done.stdout)
    assert read == ROWS * WIDTH
    assert grown_kib * 1024 < ROWS * WIDTH / 10
    assert worker_kib * 1024 < ROWS * WIDTH
