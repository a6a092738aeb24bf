"""However many processes and calls spend one budget, together they never spend more than it has.

Each process is a thread with a state, an event loop and a ledger of its own, on one real state
file; its calls run in parallel, hold more than they use, fail and stop midway.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.budgets.ledger import BudgetLedger
from tidegate.budgets.spending import Spending, SpendingEnded
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.budgets import Budget
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import Limits
from tidegate.store.sqlite.state import SqliteState

AGENTS = [Actor(f"tok_{name}", name, Scope.READ_ONLY, owner="ann") for name in ("agent", "other")]
NOW = 1_700_000_400.0


class Spent(NamedTuple):
    """What the calls of one process have used."""

    calls: int
    rows: int


async def one_call(ledger: BudgetLedger, chance: random.Random) -> Spent:
    """A call that returns some rows, or none, or streams them."""
    streams, agent = chance.random() < 0.4, chance.choice(AGENTS)
    limits = Limits(max_rows=chance.choice((1, 10, 10, 10, 100)), timeout_s=0.2)
    account = ledger.find(agent, "shop")
    try:
        spending = None if account is None else account.hold_now(limits, NOW, streams)
        if spending is None:
            spending = await ledger.hold(agent, "shop", limits, Cancellation(), streams=streams)
    except TidegateError as error:
        assert error.code is Code.LIMIT_BUDGET
        return Spent(0, 0)
    assert spending is not None
    limits = spending.limits(limits)
    await asyncio.sleep(0)
    if streams:
        return await stream(ledger, spending, chance)
    rows = chance.randrange(limits.max_rows + 1) if chance.random() < 0.8 else 0
    spending.settle(1, rows, 0, 0.0)
    return Spent(1, rows)


async def stream(ledger: BudgetLedger, spending: Spending, chance: random.Random) -> Spent:
    """Send rows as long as there is room, up to some number."""
    room = spending.begin_stream()
    assert room is not None
    sent, most = 0, chance.randrange(1_500)
    while sent < most:
        room = spending.stream or room
        free = (room.rows_room or 0) - room.rows_used
        if free <= 0:
            try:
                await ledger.extend(spending, 0, Cancellation())
            except SpendingEnded:
                room = spending.stream or room
                break
            continue
        part = min(free, most - sent, chance.randrange(1, 200))
        room.rows_used += part
        sent += part
        await asyncio.sleep(0)
    spending.settle(1, room.rows_used, 0, 0.0)
    return Spent(1, sent)


def process(path: Path, seed: int, calls: int, results: list[Spent]) -> None:
    """Some calls, six at a time, and what they used."""
    state = SqliteState(path)
    chance = random.Random(seed)

    async def work() -> None:
        ledger = BudgetLedger(state.budgets, lambda: NOW)
        gate = asyncio.Semaphore(6)

        async def call() -> Spent:
            async with gate:
                return await one_call(ledger, chance)

        results.extend(await asyncio.gather(*(call() for _ in range(calls))))
        await ledger.close()

    asyncio.run(work())
    state.close()


@settings(max_examples=12, deadline=None)
@given(
    rows=st.sampled_from((0, 1, 99, 1_000, 20_000)),
    calls=st.sampled_from((5, 30, 1_000)),
    processes=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_all_that_is_spent_is_within_the_budget_and_was_taken(
    rows: int, calls: int, processes: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        state = SqliteState(path)
        state.budgets.add(Budget("rows", "rows", "minute", rows, source="shop"))
        state.budgets.add(Budget("calls", "calls", "minute", calls, owner="ann"))
        results: list[list[Spent]] = [[] for _ in range(processes)]
        threads = [
            threading.Thread(target=process, args=(path, seed + at, 40, found))
            for at, found in enumerate(results)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [len(found) for found in results] == [40] * processes
        spent = [each for found in results for each in found]
        taken = {id: units for (id, _), units in state.budgets.taken(0).items()}
        state.close()
    spent_rows, spent_calls = sum(each.rows for each in spent), sum(each.calls for each in spent)
    assert spent_rows <= rows and spent_calls <= calls
    assert taken.get("rows", 0) == spent_rows and taken.get("calls", 0) == spent_calls
