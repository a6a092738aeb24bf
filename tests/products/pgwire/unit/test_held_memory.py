"""What the sessions of one caller hold is counted together, and given back when it is closed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tidegate.errors import TidegateError
from tidegate.model.results import Column
from tidegate.products.pgwire.memory_quota import (
    MOST_OF_CALLER,
    MOST_OF_SESSION,
    MemoryQuota,
    SessionMemory,
)
from tidegate.products.pgwire.placeholders import Placed
from tidegate.products.pgwire.portals import Portal, PreparedStatement, SessionObjects


def statement(text: str, types: tuple[int, ...] = ()) -> PreparedStatement:
    return PreparedStatement(text, types, None, Placed(text, (), 0))


def sqlstate(caught: pytest.ExceptionInfo[TidegateError]) -> object:
    return caught.value.details["sqlstate"]


def test_a_session_has_a_limit_and_gets_back_what_it_gives_back():
    held = MemoryQuota()
    memory = SessionMemory(held, "a")
    memory.take(MOST_OF_SESSION)
    with pytest.raises(TidegateError, match="of a session") as caught:
        memory.take(1)
    assert sqlstate(caught) == "53200"
    memory.give_back(1)
    memory.take(1)
    memory.give_back(MOST_OF_SESSION)
    assert held.of("a") == 0


def test_many_sessions_of_one_caller_have_one_limit_and_other_callers_their_own():
    held = MemoryQuota()
    for _ in range(MOST_OF_CALLER // MOST_OF_SESSION):
        SessionMemory(held, "a").take(MOST_OF_SESSION)
    with pytest.raises(TidegateError, match="of one caller") as caught:
        SessionMemory(held, "a").take(1)
    assert sqlstate(caught) == "53200"
    SessionMemory(held, "b").take(MOST_OF_SESSION)


async def test_all_that_a_session_holds_is_counted_until_it_is_dropped():
    held = MemoryQuota()
    objects = SessionObjects(SessionMemory(held, "a"))
    counts: list[int] = []

    def counted() -> None:
        counts.append(held.of("a"))

    counted()
    objects.keep_statement("s", statement("SELECT 1" + " " * 5_000, (23,) * 1_000))
    counted()
    objects.keep_columns(objects.statement("s"), tuple([Column(f"c{i}", "int4") for i in range(9)]))
    counted()
    objects.keep_portal("p", Portal(objects.statement("s"), (b"x" * 3_000,), (), 3_000))
    counted()
    objects.keep_cursor("c", Portal(statement("SELECT 2"), (), ()))
    counted()
    assert counts[1] >= 5_000 + 8 * 1_000
    assert all(later > earlier for earlier, later in pairwise(counts))
    await objects.drop_cursor("c")
    await objects.drop_portal("p")
    objects.drop_statement("s")
    assert held.of("a") == 0


async def test_a_statement_that_takes_another_s_place_is_counted_once():
    held = MemoryQuota()
    objects = SessionObjects(SessionMemory(held, "a"))
    for _ in range(3):
        objects.keep_statement("", statement("x" * 40_000_000))
    assert 40_000_000 < held.of("a") < 41_000_000
    await objects.close()
    assert held.of("a") == 0


def test_a_statement_with_very_many_types_is_counted_by_them():
    objects = SessionObjects(SessionMemory(MemoryQuota(), "a"))
    with pytest.raises(TidegateError, match="of a session"):
        for number in range(1_000):
            objects.keep_statement(str(number), statement("SELECT 1", (23,) * 65_535))
    assert len(objects.statements) < 30
