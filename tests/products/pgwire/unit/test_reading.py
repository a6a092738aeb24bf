"""Long texts of one caller are read one at a time, so that those of others wait for one of them."""

from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.pgwire.reading import StatementReader, reading_turns

LONG = "x" * 5_000


async def test_one_caller_with_many_sessions_stands_in_the_queue_once():
    turns = reading_turns()
    order: list[str] = []
    greedy = [
        asyncio.ensure_future(StatementReader(turns, "a").compute(LONG, order.append, "a"))
        for _ in range(8)
    ]
    await asyncio.sleep(0)
    other = asyncio.ensure_future(StatementReader(turns, "b").compute(LONG, order.append, "b"))
    await asyncio.gather(*greedy, other)
    assert order.index("b") <= 1
    assert order.count("a") == 8


async def test_a_text_that_waits_can_be_cancelled_and_the_next_one_is_read():
    turns = reading_turns()
    waiting = StatementReader(turns, "a")
    order: list[str] = []
    first = asyncio.ensure_future(StatementReader(turns, "a").compute(LONG, order.append, "first"))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(waiting.compute(LONG, order.append, "second"))
    await asyncio.sleep(0)
    waiting.cancel("the client asked for it")
    with pytest.raises(TidegateError) as caught:
        await second
    assert caught.value.code is Code.CALL_CANCELLED
    await first
    await waiting.compute(LONG, order.append, "third")
    assert order == ["first", "third"]


async def test_short_texts_wait_for_no_turn():
    turns = reading_turns()
    assert turns.try_acquire("a")
    assert await StatementReader(turns, "a").compute("short", len, "short") == 5
