"""Transactions over several statements, on the engines that have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from support.engine_cases import CASES
from support.eventually import until
from tidegate.engines.api import EngineTransaction
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement
from tidegate.model.transactions import (
    CommitTransaction,
    MarkTransaction,
    TransactionModes,
)

WRITES = TransactionModes(reads_only=False)
READS = TransactionModes(reads_only=True)
IN_LINE = 24
"""More callers than an engine has connections."""


@pytest.fixture(params=["mysql", "postgres", "sqlite"])
def shop(request, tmp_path):
    """An engine with transactions, with a shop of its own."""
    return CASES[request.param].prepare(tmp_path)


async def test_an_engine_has_transactions_as_it_says(case):
    async with case.opened() as engine:
        assert hasattr(engine, "begin") == engine.capabilities.multi_statement_transactions
        has_them = case.name in ("mysql", "postgres", "postgres-debian", "sqlite")
        assert engine.capabilities.multi_statement_transactions == has_them


@asynccontextmanager
async def begun(case, engine, modes=WRITES) -> AsyncIterator[EngineTransaction]:
    """A transaction, which is rolled back at the end if it has not been ended."""
    permit = case.permit(Query(Statement(case.spelling.one)))
    transaction = await engine.begin(permit, modes, NEVER)
    try:
        yield transaction
    finally:
        await transaction.rollback()


async def ask(case, transaction, text, params=None, *, effect=Effect.READ, in_parts=False):
    request = Query(Statement(text, params), limits=Limits(max_rows=100_000), in_parts=in_parts)
    cursor = await transaction.run(case.permit(request, effect), NEVER)
    try:
        rows = []
        while batch := await cursor.fetch(1000):
            rows += [tuple(row) for row in batch]
        return rows
    finally:
        await cursor.close()


async def count(case, transaction):
    return (await ask(case, transaction, case.spelling.count.format(name="void")))[0][0]


async def counted(case, engine):
    return (await case.ask(engine, case.spelling.count.format(name="void")))[0][0]


def commit(case, transaction):
    return transaction.commit(case.permit(CommitTransaction()), NEVER)


def mark(case, transaction, action, name):
    return transaction.mark(case.permit(MarkTransaction(action=action, name=name)), NEVER)


async def test_what_was_changed_is_there_for_others_after_the_commit(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        await ask(shop, transaction, shop.spelling.add, (2, "two"), effect=Effect.WRITE)
        assert await count(shop, transaction) == 2
        assert await counted(shop, engine) == 0
        await commit(shop, transaction)
        assert await counted(shop, engine) == 2
        await transaction.rollback()
        assert await counted(shop, engine) == 2


async def test_nothing_is_left_of_what_was_rolled_back(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        before = await shop.digest(engine)
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        await transaction.rollback()
        assert await shop.digest(engine) == before
        with pytest.raises(TidegateError):
            await ask(shop, transaction, shop.spelling.one)
        assert await counted(shop, engine) == 0


async def test_closing_the_engine_undoes_what_is_not_committed(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        await engine.close()
        with pytest.raises(TidegateError):
            await commit(shop, transaction)
        async with shop.opened() as other:
            assert await counted(shop, other) == 0


async def test_a_savepoint_undoes_what_came_behind_it(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        await mark(shop, transaction, "savepoint", 'odd "name`')
        await ask(shop, transaction, shop.spelling.add, (2, "two"), effect=Effect.WRITE)
        with pytest.raises(TidegateError):
            await ask(shop, transaction, shop.spelling.add, (1, "again"), effect=Effect.WRITE)
        await mark(shop, transaction, "rollback to", 'odd "name`')
        await ask(shop, transaction, shop.spelling.add, (3, "three"), effect=Effect.WRITE)
        await mark(shop, transaction, "release", 'odd "name`')
        await commit(shop, transaction)
        text = shop.spelling.table.format(name="void")
        assert sorted(await shop.ask(engine, text)) == [(1, "one"), (3, "three")]


async def test_the_database_refuses_changes_in_a_transaction_that_reads(shop):
    async with shop.opened() as engine, begun(shop, engine, READS) as transaction:
        before = await shop.digest(engine)
        assert await count(shop, transaction) == 0
        with pytest.raises(TidegateError) as caught:
            await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        assert caught.value.code is Code.POLICY_READ_ONLY
        await transaction.rollback()
        assert await shop.digest(engine) == before


async def test_a_change_under_a_permit_to_read_is_refused_in_a_transaction_that_writes(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        before = await shop.digest(engine)
        with pytest.raises(TidegateError) as caught:
            await ask(shop, transaction, shop.spelling.add, (1, "one"))
        assert caught.value.code is Code.POLICY_READ_ONLY
        await transaction.rollback()
        assert await shop.digest(engine) == before


async def test_results_are_read_in_parts_while_other_statements_run(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        query = Query(
            Statement(shop.spelling.table.format(name="items")), in_parts=True, limits=Limits()
        )
        cursor = await transaction.run(shop.permit(query), NEVER)
        first = await cursor.fetch(4)
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        rest = await cursor.fetch(100)
        await cursor.close()
        assert sorted(row[0] for row in [*first, *rest]) == list(range(1, 11))
        assert await count(shop, transaction) == 1


async def test_a_statement_that_is_not_read_to_its_end_spoils_nothing(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        for in_parts in (False, True):
            text = shop.spelling.table.format(name="items")
            query = Query(Statement(text), limits=Limits(), in_parts=in_parts)
            cursor = await transaction.run(shop.permit(query), NEVER)
            await cursor.fetch(1)
            await cursor.close()
        await commit(shop, transaction)
        assert await counted(shop, engine) == 1


async def test_a_statement_is_stopped_in_time_and_by_its_caller(shop):
    async with shop.opened() as engine:
        for stop in ("time", "caller"):
            async with begun(shop, engine) as transaction:
                await ask(shop, transaction, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
                seconds = 0.3 if stop == "time" else 30.0
                query = Query(Statement(shop.spelling.runaway), limits=Limits(timeout_s=seconds))
                cancellation = Cancellation()
                if stop == "caller":
                    asyncio.get_running_loop().call_later(0.3, cancellation.cancel)
                with pytest.raises(TidegateError) as caught:
                    cursor = await transaction.run(shop.permit(query), cancellation)
                    await cursor.fetch(1)
                expected = Code.LIMIT_TIME if stop == "time" else Code.CALL_CANCELLED
                assert caught.value.code is expected
            assert await counted(shop, engine) == 0


async def test_a_caller_leaves_the_line_for_a_connection_when_cancelled(shop):
    add, callers = shop.spelling.add, [Cancellation() for _ in range(IN_LINE)]

    async def change(number: int) -> EngineTransaction:
        permit = shop.permit(Query(Statement(shop.spelling.one)))
        transaction = await engine.begin(permit, WRITES, callers[number])
        if shop.name != "postgres":  # there it has its connection already
            request = Query(Statement(add, (number, "x")))
            cursor = await transaction.run(shop.permit(request, Effect.WRITE), callers[number])
            await cursor.close()
        return transaction

    async with shop.opened() as engine:
        asked = [asyncio.create_task(change(number)) for number in range(IN_LINE)]
        await until(lambda: any(each.done() for each in asked), "a transaction to begin")
        for caller in callers:
            caller.cancel("they asked for it")
        ended = await asyncio.gather(*asked, return_exceptions=True)
        left = [each for each in ended if isinstance(each, TidegateError)]
        assert left and {each.code for each in left} == {Code.CALL_CANCELLED}
        for each in ended:
            if not isinstance(each, BaseException):
                await each.rollback()
        assert await counted(shop, engine) == 0


async def test_two_transactions_do_not_see_each_others_changes(shop):
    async with shop.opened() as engine, begun(shop, engine) as one:
        await ask(shop, one, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        async with begun(shop, engine, READS) as two:
            assert await count(shop, two) == 0
        await commit(shop, one)


async def test_a_repeatable_read_sees_one_snapshot(shop):
    modes = structs.replace(READS, isolation="repeatable read")
    if shop.name == "sqlite":  # its writer waits for the reader until its time is over
        shop.source = structs.replace(shop.source, options=(("timeout", "0.2"),))
    async with shop.opened() as engine, begun(shop, engine, modes) as transaction:
        assert await count(shop, transaction) == 0
        try:
            await shop.ask(engine, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        except TidegateError as busy:  # a database may make its writers wait instead
            assert busy.code is Code.SOURCE_BUSY
        assert await count(shop, transaction) == 0


async def test_what_does_not_run_in_a_transaction_is_refused_or_undone(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        for text in shop.spelling.refused_reads[:2]:
            with pytest.raises(TidegateError):
                await ask(shop, transaction, text)
        with pytest.raises(TidegateError):
            await ask(shop, transaction, shop.spelling.two)
        await transaction.rollback()
        assert await counted(shop, engine) == 0


async def test_a_transaction_says_for_how_long_it_is_idle(shop):
    async with shop.opened() as engine, begun(shop, engine) as transaction:
        await asyncio.sleep(0.02)
        idle = transaction.idle_s
        assert idle > 0
        await ask(shop, transaction, shop.spelling.one)
        assert transaction.idle_s < idle + 0.02
