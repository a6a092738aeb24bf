"""Large values come whole; one that is too large is given up before it fills our memory."""

import asyncio
import json
import subprocess
import sys

import pytest

from support.eventually import HANG_S, until
from support.tcp_proxy import between
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

MIB = 2**20

PEAK = """
import asyncio, json, resource, sys
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Query
from tidegate.model.cancellation import NEVER
from tidegate.engines.registry import open_engine
from tidegate.errors import TidegateError
from tidegate.model.results import Limits
from tidegate.model.decisions import Permit
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

async def main(url, text):
    source = Source("s", "s", url, "postgres", "postgres")
    engine = await open_engine(source)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    query = Query(Statement(text), limits=Limits(timeout_s=300))
    actor = Actor("a", "a", Scope.READ_ONLY)
    code = None
    try:
        permit = Permit(
            "c", actor, source, query, Effect.READ, query.limits,
            judgement=judge(text, "postgres"), judged_text=text,
        )
        cursor = await engine.run(permit, NEVER)
        await cursor.fetch(10)
    except TidegateError as error:
        code = error.code.value
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await engine.close()
    print(json.dumps([code, after - before]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT repeat('x', 600000000)", Code.LIMIT_BYTES.value),
        ("SELECT repeat('x', 30000000) FROM generate_series(1, 20)", None),
    ],
    ids=["one value too large", "rows read one by one"],
)
def test_rows_of_hundreds_of_megabytes_are_read_within_bounded_memory(case, text, expected):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, case.url, text],
        capture_output=True,
        check=True,
        timeout=HANG_S,
    )
    code, grown_kib = json.loads(done.stdout)
    assert code == expected
    assert grown_kib < 400 * 1024


@pytest.mark.parametrize("way", ["socket", "tcp"])
async def test_large_values_come_whole_and_the_next_call_works(case, by_tcp, way):
    if way == "tcp":
        case = by_tcp()
    async with case.opened() as engine:
        text = (
            "SELECT repeat(chr(65 + i % 26), CASE i WHEN 30 THEN 20000000 ELSE i * 977 END)"
            " FROM generate_series(1, 90) AS i"
        )
        for _ in range(2):
            rows = await case.ask(engine, text)
            sizes = [20_000_000 if i == 30 else i * 977 for i in range(1, 91)]
            assert [len(value) for (value,) in rows] == sizes
            assert [set(value) for (value,) in rows] == [{chr(65 + i % 26)} for i in range(1, 91)]
            assert await case.ask(engine, "SELECT 1") == [(1,)]


async def test_after_a_value_that_is_too_large_the_next_call_works(case, activity):
    async with case.opened() as engine:
        for _ in range(2):
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, f"SELECT repeat('x', {150 * MIB})")
            assert caught.value.code is Code.LIMIT_BYTES
            assert "left(" in caught.value.hint
        assert await case.ask(engine, "SELECT 1") == [(1,)]
        await until(
            lambda: all(state != "active" for state, _ in activity()),
            "the statement's end in the server",
        )


async def test_a_change_that_returns_too_large_a_value_is_undone(case, server, database):
    from tidegate.model.statements import Effect

    async with case.opened() as engine:
        text = f"INSERT INTO void VALUES (1, 'x') RETURNING repeat('x', {150 * MIB})"
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, text, effect=Effect.WRITE)
        assert caught.value.code is Code.LIMIT_BYTES
        assert server.ask("SELECT count(*) FROM void", database) == [(0,)]


async def test_a_call_is_cancelled_in_the_middle_of_a_large_value(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            cancellation = Cancellation()
            text = f"SELECT repeat('x', {100 * MIB})"
            task = asyncio.ensure_future(case.ask(engine, text, cancellation=cancellation))
            while not any(running.held.line.taking for running in engine._server.running):
                await asyncio.sleep(0)  # a moment in between: looked for at every turn of the loop
            cancellation.cancel()
            with pytest.raises(TidegateError) as caught:
                await task
            assert caught.value.code is Code.CALL_CANCELLED
            assert await case.ask(engine, "SELECT 1") == [(1,)]


async def test_a_line_cut_in_the_middle_of_a_large_value_is_reported(by_tcp, server):
    async with between("127.0.0.1", server.port) as proxy:
        case = by_tcp(proxy.port)
        async with case.opened() as engine:
            task = asyncio.ensure_future(case.ask(engine, f"SELECT repeat('x', {100 * MIB})"))
            while not any(running.held.line.taking for running in engine._server.running):
                await asyncio.sleep(0)  # a moment in between: looked for at every turn of the loop
            proxy.cut()
            with pytest.raises(TidegateError) as caught:
                await task
            assert caught.value.code is Code.SOURCE_UNREACHABLE
            assert await case.ask(engine, "SELECT 1") == [(1,)]


async def test_a_line_that_is_given_up_just_when_more_has_come_is_reported(case):
    """As happens when a cancelled statement's time to end is over."""
    async with case.opened() as engine:
        task = asyncio.ensure_future(case.ask(engine, f"SELECT repeat('x', {100 * MIB})"))
        while not any(running.held.line.taking for running in engine._server.running):
            await asyncio.sleep(0)
        (running,) = engine._server.running
        running.held.line._readable()
        running.held.line.close()
        with pytest.raises(TidegateError) as caught:
            await task
        assert caught.value.code is Code.SOURCE_UNREACHABLE
        assert await case.ask(engine, "SELECT 1") == [(1,)]
