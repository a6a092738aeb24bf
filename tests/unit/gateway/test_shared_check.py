"""Callers at the same time share a question to the database, and never get an old answer."""

from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.gateway.shared_check import SharedCheck


def test_those_who_come_meanwhile_share_the_next_answer() -> None:
    asked = 0

    async def version() -> str:
        nonlocal asked
        asked += 1
        mine = str(asked)
        await asyncio.sleep(0)
        return mine

    async def whole() -> list[str]:
        check = SharedCheck()
        first = asyncio.create_task(check.ask(version))
        await asyncio.sleep(0)  # its question is under way
        return [await first, *await asyncio.gather(*[check.ask(version) for _ in range(5)])]

    assert asyncio.run(whole()) == ["1", "2", "3", "3", "3", "3"]
    asked = 0

    async def at_once() -> list[str]:
        check = SharedCheck()
        return await asyncio.gather(*[check.ask(version) for _ in range(50)])

    assert asyncio.run(at_once()) == ["1", *["2"] * 49]


def test_a_caller_that_is_cancelled_or_fails_leaves_the_others() -> None:
    fails = True

    async def version() -> str:
        await asyncio.sleep(0)
        if fails:
            raise TidegateError(Code.SOURCE_UNREACHABLE, "gone")
        return "a"

    async def whole() -> None:
        nonlocal fails
        check = SharedCheck()
        found = await asyncio.gather(
            *[check.ask(version) for _ in range(4)], return_exceptions=True
        )
        assert all(isinstance(each, TidegateError) for each in found)
        assert len(set(map(id, found))) == 4
        fails = False
        first, second, third = (asyncio.create_task(check.ask(version)) for _ in range(3))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        assert await third == "a"
        assert await check.ask(version) == "a"
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(whole())
