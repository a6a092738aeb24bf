"""What changes under a permit to write. An engine that lacks it must refuse."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect


async def refuses_writes(case, engine, text, params=None):
    """Whether the engine declares that it never writes; it must then refuse, and change nothing."""
    if engine.capabilities.writes:
        return False
    before = await case.digest(engine)
    with pytest.raises(TidegateError) as caught:
        await case.ask(engine, text, params, effect=Effect.WRITE)
    assert caught.value.code is Code.POLICY_READ_ONLY
    assert await case.digest(engine) == before
    return True


async def count(case, engine, name="void"):
    return (await case.ask(engine, case.spelling.count.format(name=name)))[0][0]


async def test_a_write_is_there_for_everyone_afterwards(case):
    async with case.opened() as engine:
        if not engine.capabilities.writes:
            with pytest.raises(TidegateError):
                await case.ask(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)
            return
        await case.ask(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)
        assert await count(case, engine) == 1
        assert await case.ask(engine, case.spelling.table.format(name="void")) == [(1, "one")]


async def test_a_write_tells_how_many_rows_it_changed(case):
    async with case.opened() as engine:
        if await refuses_writes(case, engine, case.spelling.add, (1, "one")):
            return
        cursor = await case.start(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)
        while await cursor.fetch(10):
            pass
        assert cursor.affected == 1
        await cursor.close()


async def test_a_write_can_return_rows(case):
    async with case.opened() as engine:
        text = case.spelling.add_and_return
        if not text:
            pytest.skip("changes of this database return no rows")
        if await refuses_writes(case, engine, text, (2, "two")):
            return
        assert await case.ask(engine, text, (2, "two"), effect=Effect.WRITE) == [(2, "two")]
        assert await count(case, engine) == 1


async def test_a_write_whose_rows_were_not_fetched_is_undone(case):
    async with case.opened() as engine:
        text = case.spelling.add_and_return
        if not engine.capabilities.transactions or not text:
            pytest.skip("changes of this database cannot be undone, or return no rows")
        cursor = await case.start(engine, text, (2, "two"), effect=Effect.WRITE)
        await cursor.close()
        assert await count(case, engine) == 0


async def test_a_failed_write_changes_nothing(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        with pytest.raises(TidegateError):
            await case.ask(engine, case.spelling.broken, effect=Effect.WRITE)
        assert await case.digest(engine) == before
        if await refuses_writes(case, engine, case.spelling.add, (1, "one")):
            return
        await case.ask(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)


async def test_a_permit_to_read_does_not_write_even_after_a_write(case):
    async with case.opened() as engine:
        if await refuses_writes(case, engine, case.spelling.add, (1, "one")):
            return
        await case.ask(engine, case.spelling.add, (1, "one"), effect=Effect.WRITE)
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, case.spelling.add, (2, "two"))
        assert caught.value.code is Code.POLICY_READ_ONLY
        assert await count(case, engine) == 1


async def test_a_permit_to_write_also_reads(case):
    async with case.opened() as engine:
        text = case.spelling.table.format(name="items")
        assert len(await case.ask(engine, text, effect=Effect.WRITE)) == 10
