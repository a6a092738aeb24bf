"""Time limits, cancellation, and many statements at once. No clock is read here."""

import asyncio

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.results import Limits

MANY = 40


async def stopped(task):
    with pytest.raises(TidegateError) as caught:
        await task
    return caught.value.code


async def test_the_time_limit_ends_a_statement(case):
    async with case.opened() as engine:
        limits = Limits(timeout_s=0.05)
        text = case.spelling.runaway
        assert await stopped(case.ask(engine, text, limits=limits)) is Code.LIMIT_TIME
        assert await case.ask(engine, case.spelling.one)


async def test_each_statement_has_a_time_limit_of_its_own(case):
    cancellation = Cancellation()
    async with case.opened() as engine:
        long = asyncio.ensure_future(
            case.ask(engine, case.spelling.runaway, cancellation=cancellation)
        )
        await case.ask(engine, case.spelling.one)
        # On the connection that is free now: to open another one could take longer than that.
        limits = Limits(timeout_s=0.05)
        task = case.ask(engine, case.spelling.runaway, limits=limits)
        assert await stopped(task) is Code.LIMIT_TIME
        if not engine.capabilities.cancels:
            # What cannot be cancelled is ended with its process, and with what else runs there.
            assert await stopped(long) is Code.SOURCE_UNREACHABLE
            assert await case.ask(engine, case.spelling.one)
            return
        assert not long.done()
        cancellation.cancel()
        assert await stopped(long) is Code.CALL_CANCELLED


async def test_cancelling_ends_a_statement(case):
    cancellation = Cancellation()
    async with case.opened() as engine:
        task = asyncio.ensure_future(
            case.ask(engine, case.spelling.runaway, cancellation=cancellation)
        )
        await case.ask(engine, case.spelling.rows.format(n=2000))
        assert not task.done()
        cancellation.cancel()
        assert await stopped(task) is Code.CALL_CANCELLED
        assert await case.ask(engine, case.spelling.one)


async def test_a_call_that_is_already_cancelled_does_not_run(case):
    cancellation = Cancellation()
    cancellation.cancel()
    async with case.opened() as engine:
        task = case.ask(engine, case.spelling.one, cancellation=cancellation)
        assert await stopped(task) is Code.CALL_CANCELLED


async def test_cancelling_between_two_fetches_ends_the_statement(case):
    cancellation = Cancellation()
    async with case.opened() as engine:
        text = case.spelling.rows.format(n=100_000)
        cursor = await case.start(engine, text, cancellation=cancellation)
        assert await cursor.fetch(5)
        cancellation.cancel()
        with pytest.raises(TidegateError) as caught:
            while await cursor.fetch(10_000):
                pass
        assert caught.value.code is Code.CALL_CANCELLED
        await cursor.close()


async def test_cancelling_after_the_end_does_nothing(case):
    cancellation = Cancellation()
    async with case.opened() as engine:
        assert await case.ask(engine, case.spelling.one, cancellation=cancellation)
        cancellation.cancel()
        assert await case.ask(engine, case.spelling.one)


async def test_a_caller_that_goes_away_ends_its_statement(case):
    async with case.opened() as engine:
        # Where a driver cannot cancel, each statement that is stopped costs a process.
        for _ in range(MANY if engine.capabilities.cancels else 3):
            task = asyncio.ensure_future(case.ask(engine, case.spelling.runaway))
            await asyncio.sleep(0)
            await case.ask(engine, case.spelling.one)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await case.ask(engine, case.spelling.rows.format(n=2000))


async def test_a_runaway_blocks_no_one(case):
    async with case.opened() as engine:
        cancellation = Cancellation()
        runaways = [
            asyncio.ensure_future(
                case.ask(engine, case.spelling.runaway, cancellation=cancellation)
            )
            for _ in range(3)
        ]
        for _ in range(5):
            assert await case.ask(engine, case.spelling.one)
            assert len(await case.ask(engine, case.spelling.rows.format(n=3000))) == 3000
        assert not any(task.done() for task in runaways)
        cancellation.cancel()
        assert {await stopped(task) for task in runaways} == {Code.CALL_CANCELLED}


async def test_many_statements_at_once_each_get_their_own_answer(case):
    async with case.opened() as engine:
        texts = [case.spelling.rows.format(n=count) for count in range(1, MANY)]
        answers = await asyncio.gather(*[case.ask(engine, text) for text in texts])
    assert [len(rows) for rows in answers] == list(range(1, MANY))


async def test_several_cursors_may_be_open_at_once(case):
    async with case.opened() as engine:
        text = case.spelling.rows.format(n=2000)
        first, second = await case.start(engine, text), await case.start(engine, text)
        for _ in range(2):
            assert len(await first.fetch(1000)) == len(await second.fetch(1000)) == 1000
        await first.close()
        await second.close()


async def test_closing_the_engine_ends_what_runs(case):
    async with case.opened() as engine:
        task = asyncio.ensure_future(case.ask(engine, case.spelling.runaway))
        await case.ask(engine, case.spelling.rows.format(n=2000))
        await engine.close()
        assert await stopped(task) is Code.SOURCE_NOT_CONNECTED


async def test_a_closed_engine_says_so(case):
    async with case.opened() as engine:
        await engine.close()
        await engine.close()
        assert await stopped(case.ask(engine, case.spelling.one)) is Code.SOURCE_NOT_CONNECTED
        assert await stopped(engine.schema_version()) is Code.SOURCE_NOT_CONNECTED
        described = engine.describe(case.permit(_catalog()), NEVER)
        assert await stopped(described) is Code.SOURCE_NOT_CONNECTED


async def test_a_source_opens_again_after_it_was_closed(case):
    for _ in range(3):
        async with case.opened() as engine:
            assert await case.ask(engine, case.spelling.one)


async def test_a_cursor_that_no_one_closed_does_not_hold_up_close(case):
    async with case.opened() as engine:
        cursor = await case.start(engine, case.spelling.rows.format(n=100_000))
        assert await cursor.fetch(1)


def _catalog():
    from tidegate.model.requests import Browse

    return Browse("catalog")
