"""Calls that wait for a person learn of the answer, and read the state together."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eventually import HANG_S
from tidegate.approvals.awaited_answers import AwaitedAnswers
from tidegate.store.records import ApprovalBounds, PendingApproval, Subject
from tidegate.store.sqlite.state import SqliteState

SUBJECT = Subject(
    *("claude", "client/1", "core", "query", "shop", "id-shop", "UPDATE t SET a = 1"),
    *("write", "source.approval", "A person must approve this call."),
)
BOUNDS = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=999, most_of_actor=999)
MANY = 200


class Counted:
    """The store, with how often it was asked who has an answer."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.asked = 0

    def answered(self, ids: Collection[str]) -> frozenset[str]:
        self.asked += 1
        found: frozenset[str] = self._store.answered(ids)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def states(tmp_path: Path) -> Iterator[tuple[SqliteState, SqliteState]]:
    here, elsewhere = (SqliteState(tmp_path / "state.db") for _ in range(2))
    for n in range(MANY):
        question = PendingApproval(f"q{n}", f"d{n}", "pending", "tok_1", SUBJECT, 100.0)
        here.approvals.admit(question, BOUNDS)
    yield here, elsewhere
    here.close()
    elsewhere.close()


def resolve(state: SqliteState, id: str) -> None:
    assert state.approvals.resolve(id, "denied", "ada", "", 110.0)


@pytest.mark.parametrize("followed", [True, False])
async def test_an_answer_ends_the_wait_of_its_call_alone(
    states: tuple[SqliteState, SqliteState], followed: bool
) -> None:
    here, elsewhere = states
    if followed:
        await asyncio.to_thread(here.versions.follow)
    awaited = AwaitedAnswers(here.approvals, here.versions)
    gone = asyncio.Event()
    first = asyncio.ensure_future(awaited.wait("q1", gone, HANG_S))
    second = asyncio.ensure_future(awaited.wait("q2", gone, HANG_S))
    await asyncio.to_thread(resolve, elsewhere, "q1")
    assert await first
    assert not second.done()
    gone.set()
    assert not await second


async def test_a_question_that_was_answered_before_the_wait_is_seen(
    states: tuple[SqliteState, SqliteState],
) -> None:
    here, _ = states
    await asyncio.to_thread(here.versions.follow)
    awaited = AwaitedAnswers(here.approvals, here.versions)
    other = asyncio.ensure_future(awaited.wait("q2", asyncio.Event(), HANG_S))
    await asyncio.to_thread(resolve, here, "q1")
    assert await awaited.wait("q1", asyncio.Event(), HANG_S)
    other.cancel()


async def test_many_calls_that_wait_read_the_state_together(
    states: tuple[SqliteState, SqliteState],
) -> None:
    here, elsewhere = states
    await asyncio.to_thread(here.versions.follow)
    store = Counted(here.approvals)
    awaited = AwaitedAnswers(store, here.versions)
    waits = [
        asyncio.ensure_future(awaited.wait(f"q{n}", asyncio.Event(), HANG_S)) for n in range(MANY)
    ]
    await asyncio.to_thread(lambda: [resolve(elsewhere, f"q{n}") for n in range(MANY)])
    assert all(await asyncio.gather(*waits))
    assert store.asked < MANY / 4


async def test_a_wait_without_an_answer_ends_in_time(
    states: tuple[SqliteState, SqliteState],
) -> None:
    awaited = AwaitedAnswers(states[0].approvals, states[0].versions)
    assert not await awaited.wait("q1", asyncio.Event(), 0.01)
