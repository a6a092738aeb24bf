"""How tables wait to be sampled, and what happens when a sample fails."""

from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.gateway import profile_views
from tidegate.gateway.profile_views import CompareJoins, ProfileView
from tidegate.model.profiles import ColumnProfile, TableProfile
from tidegate.model.schema import ColumnInfo, Table

TABLE = Table("main", "orders", "table", (ColumnInfo("state", "text"),))
LEARNED: TableProfile = {"state": ColumnProfile(("open",))}


def attempts(view: ProfileView, faults: list[Code], times: int) -> int:
    """How many samples were tried when the table was wanted so many times."""
    tried = 0

    async def sample(table: Table) -> TableProfile:
        nonlocal tried
        tried += 1
        if faults:
            raise TidegateError(faults.pop(0), "It failed")
        return LEARNED

    async def want() -> None:
        for _ in range(times):
            view.want([TABLE], 1, sample)
            await view.settle()

    asyncio.run(want())
    return tried


def test_a_passing_fault_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_views, "RETRY_S", 0.0)
    view = ProfileView()
    assert attempts(view, [Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY], 4) == 3
    assert view.known([TABLE]) == {("main", "orders"): LEARNED}


def test_while_a_fault_lasts_it_is_tried_less_and_less() -> None:
    view = ProfileView()
    fault = TidegateError(Code.SOURCE_UNREACHABLE, "It failed")
    pauses = [view.pause_after(fault) for _ in range(12)]
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert pauses[-1] == profile_views.FRESH_S


def test_a_refusal_is_not_tried_again() -> None:
    view = ProfileView()
    assert attempts(view, [Code.POLICY_SCOPE], 3) == 1
    assert view.pause_after(TidegateError(Code.APPROVAL_NEEDED, "Ask")) == profile_views.FRESH_S
    assert view.known([TABLE]) == {}


def test_others_are_sampled_once_and_their_joins_are_compared_after_all_values() -> None:
    view = ProfileView()
    others = tuple([Table("main", f"t{n}", "table", TABLE.columns) for n in range(3)])
    done: list[str] = []

    async def sample(table: Table) -> TableProfile:
        done.append(table.name)
        return LEARNED

    async def compare(table: Table, profile: TableProfile) -> TableProfile:
        assert profile == LEARNED
        done.append(f"{table.name} joins")
        return profile

    async def want(times: int, compared: CompareJoins | None = None) -> None:
        for _ in range(times):
            view.want([TABLE], 1, sample, compared, others=others)
            await view.settle()

    asyncio.run(want(3))
    assert done == ["orders", "t0", "t1", "t2"]
    asyncio.run(want(2, compare))
    assert done[4:] == ["orders joins", "t0 joins", "t1 joins", "t2 joins"]


def test_a_table_that_a_caller_waits_for_is_finished_before_the_others() -> None:
    view = ProfileView()
    other = Table("main", "other", "table", TABLE.columns)
    done: list[str] = []

    async def sample(table: Table) -> TableProfile:
        done.append(table.name)
        await asyncio.sleep(0)
        return LEARNED

    async def compare(table: Table, profile: TableProfile) -> TableProfile:
        done.append(f"{table.name} joins")
        return profile

    async def want() -> None:
        (first,) = view.want([TABLE], 1, sample, compare, others=(other,))
        assert view.is_waiting(TABLE) and view.is_waiting(other)
        await first
        assert not view.is_waiting(TABLE)
        await view.settle()

    asyncio.run(want())
    assert done == ["orders", "orders joins", "other", "other joins"]


def test_a_refusal_of_one_table_leaves_the_others_and_ten_in_turn_end_the_sampling() -> None:
    tables = [Table("main", f"t{n}", "table", TABLE.columns) for n in range(30)]
    asked: list[str] = []

    async def sample_but(refused: set[int]) -> ProfileView:
        view = ProfileView()
        asked.clear()

        async def sample(table: Table) -> TableProfile:
            asked.append(table.name)
            if int(table.name[1:]) in refused:
                raise TidegateError(Code.POLICY_MASKED, "The row filter cannot be used")
            return LEARNED

        view.want(tables, 1, sample)
        await view.settle()
        return view

    view = asyncio.run(sample_but({0, 1, 2, *range(5, 14)}))
    assert len(asked) == 30
    assert view.known([tables[0], tables[3]]) == {("main", "t0"): {}, ("main", "t3"): LEARNED}
    asyncio.run(sample_but(set(range(30))))
    assert len(asked) == 10
