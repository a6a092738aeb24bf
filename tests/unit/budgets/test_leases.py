"""What is held for calls that have not come: no one else lacks it, and it is never spent twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.budget_gate import START, agent, budget_gate
from tidegate.budgets import meter as meters
from tidegate.budgets.account import Account
from tidegate.budgets.meter import Meter
from tidegate.budgets.spending import Lease, Spending
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import Budget
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page, Truncation
from tidegate.model.statements import Statement
from tidegate.store.budgets import Taken

ONE = "SELECT 1"
LIMITS = Limits(max_rows=10)


class Slices:
    """A budget of so many rows, of which a process gets all at once."""

    def __init__(self, amount: int) -> None:
        self.amount, self.taken = amount, 0
        self.returned = asyncio.Event()
        budget = Budget("bud_1", "rows", "day", amount, source="shop")
        self.meter = Meter(budget, self.take, self.give_back)
        self.account = Account([self.meter])

    async def take(self, id: str, began: int, need: int) -> Taken | None:
        granted = self.amount - self.taken
        self.taken = self.amount
        return Taken(granted, self.taken, self.amount) if granted else None

    async def give_back(self, id: str, began: int, units: int) -> None:
        self.taken -= units
        self.returned.set()

    async def hold(self) -> Spending:
        held = self.account.hold_now(LIMITS, START, streams=False)
        if held is None:
            await self.meter.refill(LIMITS.max_rows, START)
            held = self.account.hold_now(LIMITS, START, streams=False)
        assert held is not None
        return held


async def test_callers_who_take_turns_are_told_what_is_left_and_refused_to_the_call(
    tmp_path: Path,
) -> None:
    async with budget_gate(tmp_path) as desk:
        budget = desk.set("calls", "hour", 400, source="shop")
        callers = [agent(name) for name in ("one", "two", "three")]
        pages: list[Page] = [await desk.ask(ONE, callers[n % 3]) for n in range(400)]
        told = [page.budget.partition(" call")[0] for page in pages]
        assert told == [""] * 319 + [str(left) for left in range(80, -1, -1)]
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE, callers[0])
        assert raised.value.code is Code.LIMIT_BUDGET
        assert desk.taken() == {budget.id: 400}


async def test_another_caller_gets_all_that_no_call_has_used(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "hour", 2_000, source="shop")
        for _ in range(5):
            await desk.ask("SELECT id FROM item LIMIT 1")
        all_rows = Query(Statement("SELECT id FROM item"), limits=Limits(max_rows=2_000))
        page: Page = await desk.ask(all_rows, agent("second"))
        assert (page.row_count, page.truncations) == (1_995, (Truncation("budget", 1_995, 1_995),))


async def test_calls_of_the_next_window_pay_there(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "minute", 1_000, token="agent")
        for now in (START, START + 60):
            desk.clock.now = now
            for _ in range(7):
                await desk.ask(ONE)
        await desk.ledger.close()
        assert list(desk.state.budgets.taken(int(START) + 60).values()) == [7]


async def test_a_call_under_way_pays_for_itself_when_what_was_held_for_many_has_ended() -> None:
    slices = Slices(1_000)
    (await slices.hold()).settle(1, 0, 0, 0.0)
    first, second = await slices.hold(), await slices.hold()
    assert isinstance(first, Lease) and second is first
    first.settle(1, 3, 0, 0.0)
    slices.meter.end_leases()
    assert (slices.meter.held, slices.meter.left) == (10, 997)
    second.settle(1, 4, 0, 0.0)
    assert (slices.meter.held, slices.meter.free, slices.meter.left) == (0, 993, 993)


async def test_what_no_call_uses_goes_back_to_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meters, "IDLE_S", 0.001)
    slices = Slices(1_000)
    (await slices.hold()).settle(1, 3, 0, 0.0)
    for _ in range(2):
        held = await slices.hold()
        assert isinstance(held, Lease)
        held.settle(1, 3, 0, 0.0)
    await asyncio.wait_for(slices.returned.wait(), 10)
    assert slices.taken == 9
    assert slices.meter.held == 0


async def test_near_the_end_a_call_holds_for_itself_alone() -> None:
    slices = Slices(200)
    held = [await slices.hold() for _ in range(20)]
    assert [isinstance(each, Lease) for each in held] == [False] + [True] * 7 + [False] * 12
    assert slices.meter.free == 0
