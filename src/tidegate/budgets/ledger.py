"""The budgets of one process: which a call costs, and holding what it may use.

Budgets are read again when any process has changed one, which the next call sees.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from tidegate.budgets.account import Account
from tidegate.budgets.meter import ASK_S, Meter
from tidegate.budgets.spending import (
    STREAM_BYTES,
    STREAM_ROWS,
    Spending,
    SpendingEnded,
    Wanted,
    holds_of,
    needs,
)
from tidegate.budgets.words import refusal
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.model.budgets import Budget, Measure, applies
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import Limits
from tidegate.store.budgets import BudgetStore, Taken
from tidegate.store.calls import change_state, read_state

MOST_KNOWN = 10_000
STREAM_PATIENCE_S = 1.0
"""How long a stream that needs more waits for other calls to end."""

_LEAST: dict[Measure, int] = {"calls": 1, "rows": 1, "bytes": 2, "seconds": 10_000}
"""With less of it left a call does not begin."""


_FREE = Account(())
"""Of calls that cost nothing."""


class BudgetLedger:
    """What calls cost. On the event loop only."""

    def __init__(self, store: BudgetStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._generation_of = store.generation
        self._clock = clock
        self._generation = -1
        self._meters: dict[str, Meter] = {}
        self._accounts: dict[tuple[str, str, str], Account] = {}
        self._loading = asyncio.Lock()
        self.failure: TidegateError | None = None
        """Why budgets could not be read the last time: then no call is let through."""

    def find(self, actor: Actor, source: str) -> Account | None:
        """The budgets that a call costs; None if they have to be read. Raises: TidegateError
        STATE_FAILED."""
        if self._generation_of() != self._generation:
            return None
        if not self._meters:
            return _FREE
        if actor.kind == "human":
            key = "", "", source
        else:
            key = actor.name, actor.owner, source
        found = self._accounts.get(key)
        if found is None:
            if len(self._accounts) >= MOST_KNOWN:
                self._accounts.clear()
            meters = [each for each in self._meters.values() if applies(each.budget, *key)]
            found = self._accounts[key] = Account(meters) if meters else _FREE
        return found

    async def hold(
        self,
        actor: Actor,
        source: str,
        limits: Limits,
        cancellation: Cancellation,
        *,
        streams: bool,
    ) -> Spending | None:
        """Hold what a call may use, or what is left if that is less: the state is asked, and other
        calls are waited for that may give some back. None if the call costs nothing.

        Raises: TidegateError LIMIT_BUDGET, CALL_CANCELLED, STATE_FAILED.
        """
        while True:
            account = self.find(actor, source)
            if account is None:
                await self._load()
                continue
            if not account.meters:
                return None
            wanted = needs(account.meters, limits, streams=streams)
            try:
                tight = await self._hold(wanted, limits.timeout_s, cancellation)
            except TidegateError as error:
                if error.code is Code.LIMIT_BUDGET and self._generation_of() != self._generation:
                    continue  # it was changed meanwhile, or removed
                raise
            return Spending(holds_of(wanted), tight)

    async def extend(self, spending: Spending, size: int, cancellation: Cancellation) -> None:
        """Pay what a stream has sent and hold more, `size` bytes or more of them if there are.

        Raises: SpendingEnded, TidegateError CALL_CANCELLED, STATE_FAILED.
        """
        wanted = [
            (meter, STREAM_ROWS if meter.kind == "rows" else max(size, STREAM_BYTES))
            for meter in spending.pay_stream()
        ]
        try:
            tight = await self._hold(wanted, STREAM_PATIENCE_S, cancellation)
        except TidegateError as error:
            if error.code is not Code.LIMIT_BUDGET:
                raise
            raise self.ended([each for each, _ in wanted], error.details["budget"]) from None
        spending.hold_more(wanted, tight)

    def ended(self, meters: Sequence[Meter], id: str = "") -> SpendingEnded:
        """That the budget of that id, or the one with the least left, has no more for a stream."""
        found = [each for each in meters if each.budget.id == id]
        meter = found[0] if found else min(meters, key=lambda each: each.left)
        return SpendingEnded(refusal(meter, self._clock(), cut=True))

    async def _hold(
        self, wanted: Wanted, patience_s: float, cancellation: Cancellation
    ) -> dict[Measure, Meter]:
        """Hold all of it; where less is left, `wanted` is lowered, and the budget is returned."""
        loop = asyncio.get_running_loop()
        until, tight = loop.time() + patience_s, dict[Measure, Meter]()
        while True:
            now = self._clock()
            lacking = _try_hold(wanted, now)
            if lacking < 0:
                return tight
            meter, units = wanted[lacking]
            if meter.leases:  # before more is taken, which others may need
                meter.end_leases()
                continue
            if not meter.is_short:
                await meter.refill(units, now)
                continue
            left_s = until - loop.time()
            if meter.held and left_s > 0 and meter.kind != "calls":  # a call pays for itself
                await meter.wait(min(left_s, ASK_S))
                if cancellation.reason is not None:
                    raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
                continue
            if meter.free < _LEAST[meter.kind]:
                raise refusal(meter, now)
            wanted[lacking] = meter, meter.free
            tight[meter.kind] = meter

    async def _load(self) -> None:
        """Read the budgets again. Slices of those that stay are kept."""
        async with self._loading:
            generation = self._generation_of()
            if generation == self._generation:
                return
            try:
                budgets = await read_state(self._store.list)
            except TidegateError as error:
                self.failure = error
                raise
            self.failure = None
            meters: dict[str, Meter] = {}  # in place once all are there: this may be cancelled
            for budget in budgets:
                meter = self._meters.get(budget.id)
                if meter is None:
                    meter = Meter(budget, self._take, self._give_back)
                elif meter.budget.amount != budget.amount:
                    await meter.change(budget)
                elif meter.budget != budget:
                    meter.budget = budget
                meters[budget.id] = meter
            for meter in self._meters.values():
                meter.end_leases()
            self._meters = meters
            self._accounts.clear()
            self._generation = generation

    @property
    def meters(self) -> Iterable[Meter]:
        """What this process has of each budget, as far as they were read."""
        return self._meters.values()

    async def close(self) -> None:
        """Give back what was not spent, for other processes."""
        for meter in self._meters.values():
            await meter.release()

    async def _take(self, id: str, began: int, need: int) -> Taken | None:
        return await change_state(self._store.take, id, began, need)

    async def _give_back(self, id: str, began: int, units: int) -> None:
        await change_state(self._store.give_back, id, began, units)

    def list(self) -> tuple[Budget, ...]:
        """All budgets. Reads the state. Raises: TidegateError STATE_FAILED."""
        return self._store.list()


def _try_hold(wanted: Wanted, now: float) -> int:
    """Hold all of it, or nothing: then the place of the first that lacks something."""
    for place, (meter, units) in enumerate(wanted):
        if not meter.hold(units, now):
            for held, given in wanted[:place]:
                held.settle(held.began, given, 0)
            return place
    return -1
