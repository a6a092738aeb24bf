"""What is stopped here has stopped in the server, by its own activity view; nothing leaks."""

import asyncio

import pytest

from support.eventually import until
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import Limits
from tidegate.results.page import PageBuilder

RUNAWAY = "SELECT count(*) FROM generate_series(1, 100000000000) AS i"


@pytest.fixture
def runs(activity):
    return lambda: sum(state == "active" for state, _ in activity())


async def test_a_cancelled_statement_is_gone_from_the_server(case, runs):
    cancellation = Cancellation()
    async with case.opened() as engine:
        task = asyncio.ensure_future(case.ask(engine, RUNAWAY, cancellation=cancellation))
        await until(runs, "the statement in the server")
        cancellation.cancel()
        with pytest.raises(TidegateError) as caught:
            await task
        assert caught.value.code is Code.CALL_CANCELLED
        await until(lambda: not runs(), "the statement's end in the server")


async def test_a_statement_out_of_time_is_gone_from_the_server(case, runs):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, RUNAWAY, limits=Limits(timeout_s=1))
        assert caught.value.code is Code.LIMIT_TIME
        await until(lambda: not runs(), "the statement's end in the server")


async def test_a_page_that_is_full_ends_its_statement(case, activity):
    async with case.opened() as engine:
        limits = Limits(max_rows=10)
        text = "SELECT generate_series(1, 1000000000), repeat('x', 1000)"
        for _ in range(5):
            cursor = await case.start(engine, text, limits=limits)
            builder = PageBuilder(cursor.columns, limits)
            await cursor.fetch_into(builder)
            await cursor.close()
            assert builder.page().row_count == 10
            await until(lambda: engine._server.home._idle, "the connection, ready again")
        await until(lambda: all(state == "idle" for state, _ in activity()), "connections at rest")
        assert len(activity()) == 1


async def test_no_transaction_is_left_open(case, activity):
    async with case.opened() as engine:
        await case.ask(engine, "SELECT 1")
        for text in ("SELECT 1/0", "SELEC", "DELETE FROM items"):
            with pytest.raises(TidegateError):
                await case.ask(engine, text)
        await until(lambda: all(state == "idle" for state, _ in activity()), "connections at rest")


async def test_an_exhausted_pool_is_reported_and_recovers(by_tcp, runs):
    case = by_tcp(options="?pool=2")
    async with case.opened() as engine:
        await case.ask(engine, "SELECT 1")
        cancellation = Cancellation()
        tasks = [
            asyncio.ensure_future(case.ask(engine, RUNAWAY, cancellation=cancellation))
            for _ in range(2)
        ]
        await until(lambda: runs() == 2, "both statements in the server")
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT 1", limits=Limits(timeout_s=0.1))
        assert caught.value.code is Code.SOURCE_BUSY
        waiting = asyncio.ensure_future(case.ask(engine, "SELECT 5"))
        await asyncio.sleep(0)
        cancellation.cancel()
        for task in tasks:
            with pytest.raises(TidegateError):
                await task
        assert await waiting == [(5,)]


async def test_what_a_write_sets_is_gone_for_the_next_caller(case):
    from tidegate.model.statements import Effect

    async with case.opened() as engine:
        await case.ask(engine, "SET search_path = nowhere", effect=Effect.ADMIN)
        with pytest.raises(TidegateError, match="temporary"):
            await case.ask(engine, "CREATE TEMP TABLE mine (a int)", effect=Effect.ADMIN)
        for _ in range(3):
            assert len(await case.ask(engine, "SELECT * FROM items")) == 10
            with pytest.raises(TidegateError):
                await case.ask(engine, "SELECT * FROM mine")


async def test_closing_leaves_no_connection(case, activity):
    async with case.opened() as engine:
        await asyncio.gather(*[case.ask(engine, "SELECT 1") for _ in range(5)])
    await until(lambda: activity() == [], "the end of our connections")
