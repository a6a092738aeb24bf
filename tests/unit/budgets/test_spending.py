"""What calls cost, and what happens where a budget ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from support.budget_gate import PERSON, ROWS, START, agent, budget_gate
from tidegate.budgets.meter import Meter
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import Budget
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, Explain, FetchMore, Prepare, Query, Sample
from tidegate.model.results import Limits, Page, Truncation
from tidegate.model.statements import Statement
from tidegate.results.row_stream import WriterSink
from tidegate.store.budgets import Taken

ONE = "SELECT 1"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
ALL = "SELECT id, name FROM item ORDER BY id"


class Kept:
    """Takes rows of a stream (`model.results.RowWriter`)."""

    def __init__(self) -> None:
        self.rows: list[Sequence[Any]] = []

    def begin(self, columns: object) -> None:
        self.rows.clear()

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows += rows


def streamed(text: str, *, whole: bool, most: int = ROWS) -> tuple[Query, Kept]:
    kept = Kept()
    limits = Limits(max_rows=most)
    return Query(Statement(text), limits=limits, sink=WriterSink(kept), is_whole=whole), kept


def refused(raised: pytest.ExceptionInfo[TidegateError]) -> TidegateError:
    assert raised.value.code is Code.LIMIT_BUDGET
    return raised.value


async def test_a_call_beyond_the_budget_is_refused_until_the_window_is_over(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "minute", 3, token="agent")
        for _ in range(3):
            await desk.ask(ONE)
        desk.clock.now = START + 20
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE)
        error = refused(raised)
        assert error.message == (
            "The budget of 3 calls a minute for the token agent is used up. It renews at"
            " 2023-11-14 22:21:00 UTC."
        )
        assert error.retry_after_s == 40.0 and "Wait 40 seconds" in error.hint
        assert "admin" in error.hint and error.mapping.sqlstate == "53400"
        desk.clock.now = START + 60
        await desk.ask(ONE)


async def test_a_refusal_is_on_record_with_its_rule_and_nothing_ran(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "hour", 0, token="agent")
        with pytest.raises(TidegateError):
            await desk.ask("DELETE FROM item WHERE id = 1")
        (event,) = desk.events
        assert (event.phase, event.code) == ("refusal", "limit.budget")
        assert (event.verdict, event.rule) == ("deny", "budget.calls.hour")
        page: Page = await desk.ask("SELECT count(*) FROM item", agent("other"))
        assert page.rows == b"[[%d]]" % ROWS


@pytest.mark.parametrize(
    ("about", "costs"),
    [
        ({"token": "agent"}, [True, False, False, True]),
        ({"owner": "ann"}, [True, True, False, True]),
        ({"source": "shop"}, [True, True, True, False]),
        ({"token": "agent", "source": "shop"}, [True, False, False, False]),
        ({"owner": "ann", "source": "other"}, [False, False, False, True]),
    ],
)
async def test_a_budget_is_of_a_token_of_an_operators_tokens_of_a_source_or_of_both(
    tmp_path: Path, about: dict[str, str], costs: list[bool]
) -> None:
    async with budget_gate(tmp_path) as desk:
        calls = [
            (agent(), "shop"), (agent("second"), "shop"), (PERSON, "shop"), (agent(), "other"),
        ]  # fmt: skip
        for (actor, source), cost in zip(calls, costs, strict=True):
            budget = desk.set("calls", "minute", 100, **about)
            before = desk.state.budgets.list()
            await desk.ask(ONE, actor, source)
            await desk.ledger.close()
            assert desk.taken().get(budget.id, 0) == int(cost)
            desk.state.budgets.remove(before[0])


async def test_parallel_calls_never_exceed_the_sum(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "minute", 10, token="agent")
        desk.set("rows", "minute", 150, source="shop")
        found = await asyncio.gather(
            *(desk.ask("SELECT id FROM item LIMIT 20") for _ in range(30)), return_exceptions=True
        )
        pages = [each for each in found if isinstance(each, Page)]
        assert sum(page.row_count for page in pages) == 150 and len(pages) <= 10
        assert {type(each) for each in found} == {Page, TidegateError}
        cut = [page for page in pages if page.truncations]
        assert [page.truncations for page in cut] == [(Truncation("budget", 10, 10),)]


async def test_what_is_held_and_not_used_is_there_for_the_next_calls(tmp_path: Path) -> None:
    """Each may return 100 rows, and returns one."""
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", 120, token="agent")
        await asyncio.gather(*(desk.ask("SELECT id FROM item LIMIT 1") for _ in range(60)))
        page: Page = await desk.ask(ALL)
        assert (page.row_count, page.truncations) == (60, (Truncation("budget", 60, 60),))


async def test_a_result_that_reaches_its_budget_says_so_and_what_is_left(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "hour", 60, token="agent", source="shop")
        page: Page = await desk.ask(ALL)
        assert (page.row_count, page.truncations) == (60, (Truncation("budget", 60, 60),))
        assert page.budget == (
            "0 rows left of the budget of 60 rows an hour for the token agent on shop, until"
            " 2023-11-14 23:00:00 UTC"
        )
        assert desk.events[-1].truncated == "budget"
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ALL)
        assert refused(raised).details["rule"] == "budget.rows.hour"


async def test_bytes_are_those_of_the_rows_that_are_returned(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        budget = desk.set("bytes", "day", 1_000, token="agent")
        size = 0
        while True:
            page: Page = await desk.ask("SELECT id, name FROM item LIMIT 10")
            size += len(page.rows)
            if page.truncations:
                break
        assert page.truncations[0].kind == "budget" and 900 < size <= 1_000
        await desk.ledger.close()
        assert desk.taken()[budget.id] == size


async def test_from_four_fifths_on_the_reply_says_what_is_left(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "minute", 10, token="agent")
        said = [(await desk.ask(ONE)).budget.partition(" left ")[0] for _ in range(10)]
        assert said == [""] * 7 + ["2 calls", "1 call", "0 calls"]


async def test_a_change_counts_on_the_next_call(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        await desk.ask(ONE)
        desk.set("calls", "minute", 1_000, token="agent")
        for _ in range(5):
            await desk.ask(ONE)
        desk.set("calls", "minute", 5, token="agent")
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE)
        refused(raised)
        budget = desk.set("calls", "minute", 6, token="agent")
        await desk.ask(ONE)
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE)
        refused(raised)
        assert desk.state.budgets.remove(budget)
        await desk.ask(ONE)


async def test_failed_and_cancelled_calls_pay_what_they_used(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        calls = desk.set("calls", "hour", 100, token="agent")
        seconds = desk.set("seconds", "hour", 100, token="agent")
        with pytest.raises(TidegateError) as raised:
            await desk.ask("SELECT nothing FROM item")
        assert raised.value.code is not Code.LIMIT_BUDGET
        cancellation = Cancellation()
        running = asyncio.ensure_future(desk.ask(ENDLESS, cancellation=cancellation))
        while not any(ctx.sent for ctx in desk.gate.running.values()):
            await asyncio.sleep(0)
        cancellation.cancel("enough")
        with pytest.raises(TidegateError) as raised:
            await running
        assert raised.value.code is Code.CALL_CANCELLED
        await desk.ledger.close()
        taken = desk.taken()
        assert taken[calls.id] == 2 and 0 < taken[seconds.id] < 50_000_000


async def test_a_call_that_was_refused_before_it_ran_pays_nothing(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        budget = desk.set("calls", "hour", 100, token="agent")
        for text in ("SELEC", "DROP TABLE item", "SELECT 1; SELECT 2"):
            with pytest.raises(TidegateError):
                await desk.ask(text)
        cancellation = Cancellation()
        cancellation.cancel("gone")
        with pytest.raises(TidegateError):
            await desk.ask(ONE, cancellation=cancellation)
        await desk.ledger.close()
        assert desk.taken().get(budget.id, 0) == 0


async def test_what_the_gate_reads_for_itself_costs_nothing(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "hour", 1, token="agent")
        for request in (
            Browse("catalog"),
            Prepare(statement=Statement(ALL)),
            Sample(Statement("SELECT name FROM item LIMIT 5")),
            Browse("counts", names=("item",)),
        ):
            await desk.ask(request)
        await desk.ask(Explain(Statement(ALL)))  # a plan is the caller's own
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE)
        refused(raised)


async def test_a_database_is_stopped_when_the_seconds_are_used_up(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("seconds", "minute", 0.2, token="agent")
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ENDLESS)
        assert "0.2 seconds a minute" in refused(raised).message
        assert desk.events[-1].rule == "budget.seconds.minute"
        with pytest.raises(TidegateError) as raised:
            await desk.ask(ONE)
        assert "is used up" in refused(raised).message


async def test_more_of_a_result_costs_its_rows_and_waits_for_the_budget(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", 130, token="agent")
        request = Query(Statement(ALL), limits=Limits(max_rows=100), keep_rest=True)
        page: Page = await desk.ask(request)
        more: Page = await desk.ask(FetchMore(page.more or "", 100))
        assert (more.row_count, more.truncations) == (30, (Truncation("budget", 30, 30),))
        with pytest.raises(TidegateError) as raised:
            await desk.ask(FetchMore(more.more or "", 100))
        refused(raised)
        desk.clock.now = START + 60
        last: Page = await desk.ask(FetchMore(more.more or "", 100))
        assert (last.row_count, last.rows[:8]) == (100, b'[[130,"i')


async def test_an_export_that_reaches_its_budget_fails_and_paid_for_its_rows(
    tmp_path: Path,
) -> None:
    async with budget_gate(tmp_path) as desk:
        budget = desk.set("rows", "minute", 700, token="agent")
        request, kept = streamed(ALL, whole=True)
        with pytest.raises(TidegateError) as raised:
            await desk.ask(request)
        assert "ends here" in refused(raised).message and len(kept.rows) <= 700
        await desk.ledger.close()
        assert desk.taken()[budget.id] == len(kept.rows)


@pytest.mark.parametrize("most", [1, 3, 511, 512, 513])
async def test_an_export_never_ends_as_if_it_were_whole(tmp_path: Path, most: int) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", most, token="agent")
        request, kept = streamed(ALL, whole=True)
        with pytest.raises(TidegateError) as raised:
            await desk.ask(request)
        refused(raised)
        assert len(kept.rows) <= most


async def test_a_stream_that_may_be_cut_ends_at_its_budget(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", 700, token="agent")
        request, kept = streamed(ALL, whole=False)
        page: Page = await desk.ask(request)
        assert len(kept.rows) == page.row_count == 700
        assert page.truncations == (Truncation("budget", 700, 700),)


async def test_a_stream_of_bytes_ends_before_the_row_that_would_exceed_them(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        budget = desk.set("bytes", "minute", 20_000, token="agent")
        request, kept = streamed(ALL, whole=False)
        page: Page = await desk.ask(request)
        await desk.ledger.close()
        assert page.truncations[0].kind == "budget" and page.row_count == len(kept.rows) > 700
        assert 19_000 < desk.taken()[budget.id] <= 20_000


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("most", [ROWS, 700])
async def test_a_result_that_just_fits_is_whole(tmp_path: Path, whole: bool, most: int) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", most, token="agent")
        request, kept = streamed(f"{ALL} LIMIT {most}", whole=whole, most=5_000)
        page: Page = await desk.ask(request)
        assert len(kept.rows) == most and page.truncations == ()


async def test_the_limit_of_the_call_itself_is_no_budget(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", 600, token="agent")
        request, kept = streamed(ALL, whole=True, most=600)
        page: Page = await desk.ask(request)
        assert len(kept.rows) == 600 and page.truncations == (Truncation("rows", 600, 600),)


async def test_a_call_that_waits_for_others_goes_on_with_what_they_give_back(
    tmp_path: Path,
) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("rows", "minute", 100, token="agent")
        first = asyncio.gather(*(desk.ask("SELECT id FROM item LIMIT 2") for _ in range(20)))
        assert [page.row_count for page in await first] == [2] * 20


async def test_two_processes_share_a_budget_and_none_spends_more(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        desk.set("calls", "minute", 50, token="agent")
        others = [_second_ledger(desk) for _ in range(3)]
        done = 0
        for _ in range(40):
            for ledger in (desk.ledger, *others):
                limits = Limits()
                try:
                    spending = await ledger.hold(
                        agent(), "shop", limits, Cancellation(), streams=False
                    )
                except TidegateError as error:
                    assert error.code is Code.LIMIT_BUDGET
                    continue
                assert spending is not None
                spending.settle(1, 0, 0, 0.0)
                done += 1
        assert done == 50


def _second_ledger(desk: Any) -> Any:
    from tidegate.budgets.ledger import BudgetLedger

    return BudgetLedger(desk.state.budgets, desk.clock)


async def test_a_budget_keeps_what_was_used_when_its_amount_changes(tmp_path: Path) -> None:
    async with budget_gate(tmp_path) as desk:
        was = desk.set("rows", "minute", 100, token="agent")
        await desk.ask("SELECT id FROM item LIMIT 30")
        desk.set("rows", "minute", 40, token="agent")
        page: Page = await desk.ask(ALL)
        assert page.row_count == 10 and desk.state.budgets.list()[0].id == was.id
        assert structs.replace(desk.state.budgets.list()[0], amount=100) == was


async def test_a_slice_is_not_lost_with_the_call_that_asked_for_it() -> None:
    """Else a caller who cancels calls could use up what others share."""
    asked, goes_on = asyncio.Event(), asyncio.Event()
    taken: list[int] = []

    async def write() -> Taken:
        asked.set()
        await goes_on.wait()
        taken.append(40)
        return Taken(40, sum(taken), 100)

    async def take(id: str, began: int, need: int) -> Taken | None:
        return await asyncio.shield(asyncio.ensure_future(write()))  # a thread ends what it began

    async def give_back(id: str, began: int, units: int) -> None:
        taken.append(-units)

    meter = Meter(Budget("bud_1", "rows", "day", 100, source="shop"), take, give_back)
    call = asyncio.ensure_future(meter.refill(10, START))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    goes_on.set()
    await meter.refill(10, START)
    assert meter.free == sum(taken)
    await meter.release()
    assert sum(taken) == 0
