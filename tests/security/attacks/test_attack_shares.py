"""TRIALS B14: two callers cannot take all places of a source."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.eventually import HANG_S
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.statements import Statement

ENGINES = [name for name in CASES if name not in ("memory", "postgres-debian")]
ACTORS = {name: Actor(name, name, Scope.READ_ONLY) for name in ("first", "second", "third")}


@pytest.mark.parametrize("places", [4, 8, 10, 100])
def test_b14_two_actors_leave_room_for_a_third(places: int) -> None:
    limiter = ConcurrencyLimiter()
    limiter.share(places)
    for actor in "a" * places + "b" * places:
        limiter.try_acquire(actor)
    assert limiter.running < places
    assert limiter.try_acquire("c")
    assert limiter.running <= places


def test_b14_a_turn_goes_to_who_has_the_fewest_under_way() -> None:
    async def play() -> list[str]:
        limiter = ConcurrencyLimiter()
        limiter.share(8)
        assert [limiter.try_acquire("a") for _ in range(7)] == [True] * 6 + [False]
        assert limiter.try_acquire("b")
        order: list[str] = []

        async def wait(actor: str) -> None:
            await limiter.acquire(actor, HANG_S, NEVER)
            order.append(actor)

        waiting = [asyncio.ensure_future(wait(actor)) for actor in "aab"]
        for _ in range(5):
            limiter.release("a")
            for _ in range(3):
                await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        return order

    assert asyncio.run(play())[0] == "b"


def test_who_waits_longest_for_a_turn_has_it_unless_refused_or_cancelled_before() -> None:
    async def play() -> list[str]:
        limiter = ConcurrencyLimiter(1)
        assert limiter.try_acquire("a")
        said: list[str] = []

        async def wait(name: str, timeout_s: float, cancellation: Cancellation) -> None:
            try:
                await limiter.acquire("a", timeout_s, cancellation)
            except TidegateError as error:
                said.append(f"{name} {error.code.value}")
            else:
                said.append(name)

        gone = Cancellation()
        tasks = [
            asyncio.ensure_future(wait(*each))
            for each in (
                ("long", HANG_S, NEVER),
                ("second", 0.03, NEVER),
                ("first", 0.01, NEVER),
                ("gone", HANG_S, gone),
                ("last", HANG_S, NEVER),
            )
        ]
        await asyncio.gather(*tasks[1:3])
        gone.cancel()
        await tasks[3]
        limiter.release("a")
        await tasks[0]
        assert not tasks[4].done()
        assert not limiter.try_acquire("a")
        limiter.release("a")
        await tasks[4]
        limiter.release("a")
        assert limiter.running == 0
        return said

    assert asyncio.run(play()) == [
        "first source.busy",
        "second source.busy",
        "gone call.cancelled",
        "long",
        "last",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_b14_a_third_actor_is_answered_beside_two_with_endless_statements(
    tmp_path: Path, engine: str
) -> None:
    case = CASES[engine].prepare(tmp_path)
    count = case.spelling.count.format(name="items")

    def call(name: str, text: str, cancellation: Cancellation) -> Call:
        request = Query(Statement(text), limits=Limits(timeout_s=HANG_S))
        return Call(
            *(ACTORS[name], "core", "query", request, "shop"),
            scope=Scope.READ_ONLY,
            cancellation=cancellation,
        )

    async def play() -> None:
        app = App.open(Config(state=str(tmp_path / "state")))
        app.state.sources.add(case.source)
        cancellation = Cancellation()
        try:
            await app.gateway.handle(call("third", case.spelling.one, NEVER))
            connection = app.connections.find("shop", ACTORS["first"])
            assert connection.engine is not None
            assert connection.engine.capabilities.max_concurrency >= 4
            endless = [
                asyncio.ensure_future(
                    app.gateway.handle(call(name, case.spelling.runaway, cancellation))
                )
                for name in ("first", "second")
                for _ in range(6)
            ]
            while connection.limiter.running < 3:
                await asyncio.sleep(0)
            answered = await app.gateway.handle(call("third", count, NEVER))
            assert answered.payload.row_count == 1
            assert not any(each.done() for each in endless)
            cancellation.cancel()
            await asyncio.gather(*endless, return_exceptions=True)
            assert connection.limiter.running == 0
        finally:
            cancellation.cancel()
            await app.close()

    asyncio.run(play())
