"""A line that is cut, stalled or corrupted, a server that goes away, a pool that is empty.

Each ends in a coded error, nothing runs twice, no connection leaks, and the next call works.
"""

import asyncio
import contextlib
import socket

import pytest

from support.eventually import HANG_S, until
from support.loop_server import loop_server
from support.surface_gateway import SqliteGate
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

LONG = "SELECT SUM(a.seq ^ b.seq) FROM seq_1_to_10000000 AS a, seq_1_to_10000000 AS b"
ROWS = "SELECT seq, REPEAT('x', 1000) FROM seq_1_to_100000"


async def failure(task):
    with pytest.raises(TidegateError) as caught:
        await task
    return caught.value


def running(shop, server, text=LONG):
    """What the server does of it for this shop; to prepare it is not yet to run it."""
    database = shop.url.partition("?")[0].rpartition("/")[2]
    return [
        info
        for (info,) in server.script(
            "SELECT INFO FROM information_schema.PROCESSLIST"
            f" WHERE DB = '{database}' AND COMMAND IN ('Query', 'Execute')"
        )
        if info == text
    ]


async def begun(shop, engine, server, text=LONG, **options):
    task = asyncio.ensure_future(shop.ask(engine, text, **options))
    await until(lambda: running(shop, server, text) or task.done(), "the statement in the server")
    assert not task.done()
    return task


async def test_a_line_cut_at_any_step_of_opening_is_reported(proxied):
    reported = 0
    for portions in range(1, 40):
        try:
            async with proxied(portions=portions):
                break
        except TidegateError as error:
            assert error.code is Code.SOURCE_UNREACHABLE
            reported += 1
    assert 4 < reported < 39


async def test_a_cut_line_ends_the_call_and_the_next_one_works(shop, server, proxied):
    async with proxied() as (engine, proxy):
        task = await begun(shop, engine, server, limits=Limits(timeout_s=HANG_S))
        proxy.cut()
        assert (await failure(task)).code is Code.SOURCE_UNREACHABLE
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


async def test_a_line_cut_in_the_middle_of_rows_is_reported(shop, proxied):
    async with proxied() as (engine, proxy):
        cursor = await shop.start(engine, ROWS)
        assert len(await cursor.fetch(10)) == 10
        proxy.cut()

        async def rest():
            while await cursor.fetch(1000):
                pass

        assert (await failure(rest())).code is Code.SOURCE_UNREACHABLE
        await cursor.close()
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


async def test_a_change_on_a_cut_line_runs_once_at_most(shop, server, proxied):
    async with proxied() as (engine, proxy):
        text = "INSERT INTO void SELECT id, SLEEP(0.05) FROM items"
        task = await begun(shop, engine, server, text, effect=Effect.WRITE)
        proxy.cut()
        error = await failure(task)
        assert error.code is Code.SOURCE_UNREACHABLE
        assert "Check what was changed" in error.hint
        await until(lambda: not running(shop, server, text), "the statement's end in the server")
        assert await shop.ask(engine, "SELECT COUNT(*) FROM void") == [(0,)]


@pytest.mark.parametrize("how", ["time", "cancel"])
async def test_a_stalled_line_does_not_hold_the_call(shop, server, proxied, how, monkeypatch):
    monkeypatch.setattr("tidegate.products.mysql.engine.connection.MysqlSession.grace_s", 0.2)
    cancellation = Cancellation()
    async with proxied() as (engine, proxy):
        limits = Limits(timeout_s=HANG_S)
        task = await begun(shop, engine, server, cancellation=cancellation, limits=limits)
        proxy.stall()
        if how == "cancel":
            cancellation.cancel()
        else:  # as its alarm does when the time is over
            (running,) = engine._server.running
            running.stop("time")
        expected = Code.LIMIT_TIME if how == "time" else Code.CALL_CANCELLED
        assert (await failure(task)).code is expected
        proxy.flow()
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("after", [0, 3, 4, 5, 40, 200, 5000])
async def test_a_corrupted_line_gives_nothing_but_coded_errors(shop, proxied, after):
    # The protocol has no checksum: a spoilt value looks like any other. TLS can.
    async with proxied() as (engine, proxy):
        assert await shop.ask(engine, "SELECT 1") == [(1,)]
        proxy.corrupt(after)
        with contextlib.suppress(TidegateError):
            await shop.ask(engine, ROWS.replace("100000", "100"), limits=Limits(timeout_s=0.5))
        proxy.corrupt(-1)
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


async def test_connections_that_are_killed_are_replaced(shop, server):
    async with shop.opened() as engine:
        assert await shop.ask(engine, "SELECT 1") == [(1,)]
        task = await begun(shop, engine, server)
        server.end_connections("USER = 'root'")
        assert (await failure(task)).code is Code.SOURCE_UNREACHABLE
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("how", ["restart", "kill"])
async def test_a_server_that_comes_back_is_used_again(shop, server, how):
    async with shop.opened() as engine:
        task = await begun(shop, engine, server)
        if how == "restart":
            await asyncio.to_thread(server.restart)
        else:
            await asyncio.to_thread(server.kill)
        assert (await failure(task)).code is Code.SOURCE_UNREACHABLE
        if how == "kill":
            assert (await failure(shop.ask(engine, "SELECT 1"))).code is Code.SOURCE_UNREACHABLE
            await asyncio.to_thread(server.start)
        stamp = await engine.schema_version()
        assert await shop.ask(engine, "SELECT COUNT(*) FROM items") == [(10,)]
        assert await engine.schema_version() == stamp


async def test_a_pool_that_is_empty_says_so_and_heals(shop):
    shop.source = Source("s1", "shop", f"{shop.url}&pool=1", "mysql", "mysql")
    async with shop.opened() as engine:
        cursor = await shop.start(engine, ROWS)
        error = await failure(shop.ask(engine, "SELECT 2 + 1", limits=Limits(timeout_s=0.05)))
        assert error.code is Code.SOURCE_BUSY
        await cursor.close()
        assert await shop.ask(engine, "SELECT 2 + 1") == [(3,)]


async def test_no_connection_is_left_behind(shop, server):
    def ours():
        return server.script(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"
            f" AND DB = '{shop.url.partition('?')[0].rpartition('/')[2]}'"
        )[0][0]

    async with shop.opened() as engine:
        for _ in range(20):
            cursor = await shop.start(engine, ROWS)
            await cursor.fetch(5)
            await cursor.close()
        assert 1 <= ours() <= 10
    await until(lambda: ours() == 0, "the end of our connections")


async def test_a_large_result_waits_in_the_server(shop):
    async with shop.opened() as engine:
        cursor = await shop.start(engine, ROWS.replace("100000", "1000000"))
        assert len(await cursor.fetch(5)) == 5
        for _ in range(50):
            await asyncio.sleep(0)
        assert cursor._running.connection().line.unread < 4_000_000
        await cursor.close()


async def test_a_server_that_does_not_answer_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as quiet:
        where = f"127.0.0.1:{quiet.getsockname()[1]}"
        source = Source("s", "s", f"mysql://u@{where}/d?connect_timeout=1", "mysql", "mysql")
        assert (await failure(open_engine(source))).code is Code.SOURCE_UNREACHABLE


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"", b"\x05\0\0\0\xff\x01\x02\x03"])
async def test_a_server_that_is_no_mysql_is_reported(answer):
    async def greet(_, writer):
        writer.write(answer)

    async with loop_server(greet) as port:
        url = f"mysql://u@127.0.0.1:{port}/d?connect_timeout=60"
        source = Source("s", "s", url, "mysql", "mysql")
        assert (await failure(open_engine(source))).code is Code.SOURCE_UNREACHABLE


async def test_a_line_that_stalls_before_the_first_look_names_the_calls_own_limit(
    shop, proxied, monkeypatch
):
    monkeypatch.setattr("tidegate.products.mysql.engine.connection.MysqlSession.grace_s", 0.1)
    async with proxied() as (engine, proxy):
        assert await shop.ask(engine, "SELECT 1") == [(1,)]
        proxy.stall()
        statement = Statement("SELECT 2 AS never_seen FROM items")
        looked = engine.inspect(statement, judge(statement.text, "mysql"), 0.2)
        error = await failure(asyncio.ensure_future(asyncio.wait_for(looked, 5)))
        assert (error.code, "after 0.2 s" in error.message) == (Code.LIMIT_TIME, True)
        proxy.flow()
        assert await shop.ask(engine, "SELECT 1") == [(1,)]


async def test_an_explanation_over_a_stalled_line_has_the_calls_own_limit(
    shop, proxied, monkeypatch, tmp_path
):
    monkeypatch.setattr("tidegate.products.mysql.engine.connection.MysqlSession.grace_s", 0.1)
    async with proxied() as (_, proxy):
        gate = SqliteGate(tmp_path, shop.source)
        async with gate.opened():
            limits = Limits(timeout_s=0.2)

            def asked(text):
                query = Query(Statement(text), limits=limits)
                return Call(Actor("a", "a", Scope.READ_ONLY), "test", "test", query, "shop")

            await gate.explain(asked("SELECT 1 AS seen FROM items"))
            proxy.stall()
            looked = gate.explain(asked("SELECT 2 AS never_seen FROM items"))
            error = await failure(asyncio.ensure_future(asyncio.wait_for(looked, 5)))
            assert (error.code, "after 0.2 s" in error.message) == (Code.LIMIT_TIME, True)
            proxy.flow()
            await gate.explain(asked("SELECT 3 AS seen FROM items"))
