"""Whether a server can do its work: what is tried, how often, and what is said of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.eventually import PATIENCE_S
from tidegate import readiness
from tidegate.errors import Code, TidegateError
from tidegate.readiness import PAUSE_S, Readiness


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Part:
    """Counts the writes, which fail while `failure` is set, and wait while `held`."""

    def __init__(self) -> None:
        self.writes = 0
        self.failure: TidegateError | None = None
        self.free = threading.Event()
        self.free.set()

    def write(self) -> None:
        self.writes += 1
        assert self.free.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def part() -> Iterator[Part]:
    made = Part()
    yield made
    made.free.set()


def run(part: Part, scenario: Callable[[Readiness, Clock], Any], **known: TidegateError) -> None:
    clock = Clock()
    made = Readiness(lambda: known, {"state": part.write}, clock)
    asyncio.run(scenario(made, clock))


def test_a_write_is_tried_once_a_second_however_often_it_is_asked(part: Part) -> None:
    async def scenario(checks: Readiness, clock: Clock) -> None:
        for _ in range(50):
            assert await checks.tried() == {}
        await asyncio.gather(*(checks.tried() for _ in range(50)))
        assert part.writes == 1
        clock.now += PAUSE_S
        await checks.tried()
        assert part.writes == 2

    run(part, scenario)


def test_a_failed_write_fails_until_one_succeeds(part: Part) -> None:
    async def scenario(checks: Readiness, clock: Clock) -> None:
        part.failure = TidegateError(Code.STATE_FAILED, "no space in `/secret/place`")
        assert (await checks.tried())["state"].code is Code.STATE_FAILED
        part.failure = None
        assert "state" in checks.failures(), "nothing was tried since"
        clock.now += PAUSE_S
        assert await checks.tried() == {} == checks.failures()

    run(part, scenario)


def test_a_disk_that_hangs_counts_as_one_that_cannot_be_written(
    part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "PATIENCE_S", 0.01)

    async def scenario(checks: Readiness, clock: Clock) -> None:
        part.free.clear()
        assert (await checks.tried())["state"].code is Code.STATE_FAILED
        clock.now += 10 * PAUSE_S
        assert "state" in await checks.tried()
        assert part.writes == 1, "a second thread would hang as well"
        part.free.set()
        monkeypatch.setattr(readiness, "PATIENCE_S", PATIENCE_S)
        assert await checks.tried() == {}

    run(part, scenario)


def test_what_is_known_and_the_stop_are_failures_without_a_try(part: Part) -> None:
    async def scenario(checks: Readiness, clock: Clock) -> None:
        assert list(checks.failures()) == ["audit"]
        checks.stopping = True
        assert (await checks.tried())["server"].code is Code.SERVER_STOPPING
        assert checks.reasons() == {"audit": "it is full", "server": "The server is stopping"}
        assert part.writes == 0

    run(part, scenario, audit=TidegateError(Code.AUDIT_UNAVAILABLE, "it is full"))
