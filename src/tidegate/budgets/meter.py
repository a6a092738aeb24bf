"""What this process has of one budget: slices that it took from the state, spent in memory.

A call holds what it may need before it runs, and pays what it used when it has ended: what is held
and what is paid together never exceed what was taken. On the event loop only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf

from tidegate.errors import TidegateError
from tidegate.model.budgets import Budget, Measure, window_of
from tidegate.store.budgets import Taken

logger = logging.getLogger("tidegate.budgets")

ASK_S = 0.25
"""How long after the state had too little it is asked again: what others give back counts then."""
IDLE_S = 0.5
"""A slice of which no call has used any for so long is given back, for other processes."""
_LOW_PART = 5
"""Replies say what is left from the last fifth of a budget on."""

Take = Callable[[str, int, int], Awaitable[Taken | None]]
GiveBack = Callable[[str, int, int], Awaitable[None]]


class Meter:
    """One budget in this process, in the window from `began` to `ends_at` (Unix seconds). `free`
    units were taken and no call holds them, `untaken` are in the state as far as is known, and
    `unspent` are both, and what calls hold: others may hold slices. Callers are shown what is left
    from `low` on. Its fields are public for `Account` and `Spending`, on the path of every call:
    holding changes one of them, paying two.
    """

    __slots__ = (
        "_asked_at",
        "_give_back",
        "_own",
        "_refilling",
        "_short",
        "_take",
        "_timer",
        "began",
        "budget",
        "ends_at",
        "free",
        "kind",
        "leases",
        "low",
        "unspent",
        "untaken",
        "waiters",
    )

    def __init__(self, budget: Budget, take: Take, give_back: GiveBack) -> None:
        self.budget = budget
        self.kind: Measure = budget.measure
        self.free = 0
        self._take = take
        self._give_back = give_back
        self.began, self.ends_at = 0, 0
        self._own = 0
        """What this process has taken in this window and not given back: as much is gone, whatever
        the state says."""
        self.untaken = self.unspent = budget.amount
        self.low = budget.amount // _LOW_PART
        self._short = False
        self._asked_at = -inf
        self._refilling: asyncio.Future[None] | None = None
        self.waiters: list[asyncio.Future[None]] = []
        self.leases: set[Callable[[], None]] = set()
        """Each ends what an account holds for calls that have not come."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def left(self) -> int:
        """The units that no process has spent, as far as is known."""
        return max(0, self.unspent)

    @property
    def held(self) -> int:
        """The units that calls of this process hold."""
        return self.unspent - self.untaken - self.free

    @property
    def is_low(self) -> bool:
        """Whether replies say what is left."""
        return self.unspent <= self.low

    @property
    def spare(self) -> int:
        """The units that an account may hold for calls that have not come: half of those here, so
        that other accounts go on with the rest, and none once replies say what is left."""
        return 0 if self.waiters else min(self.free, self.free + self.untaken - self.low - 1) // 2

    def end_leases(self) -> None:
        """Have every account hold no more than its calls need, and pay what they have used."""
        for end in tuple(self.leases):
            end()

    def hold(self, units: int, now: float) -> bool:
        """Hold units for a call, if there are so many here. `now` is Unix seconds."""
        if now >= self.ends_at:
            self._turn(now)
        if self.free < units:
            return False
        self.free -= units
        self.check_leases()
        return True

    def check_leases(self) -> None:
        """End the leases once there is no plenty any more."""
        if self.leases and self.spare < 0:
            self.end_leases()

    def settle(self, began: int, held: int, paid: int) -> None:
        """Pay for a call that held units in the window that began then. A call may pay more than it
        held, as a database is not stopped at once: then there is less for the next ones."""
        if began != self.began:
            return  # that window is over
        self.free += held - paid
        self.unspent -= paid
        if self.waiters:
            self.wake()

    @property
    def is_short(self) -> bool:
        """Whether the state had no more, not long ago."""
        return self._short and time.monotonic() - self._asked_at < ASK_S

    async def refill(self, units: int, now: float) -> None:
        """Take from the state so that there are so many units, if it has them. A call that is
        cancelled meanwhile loses nothing of what was taken. Raises: TidegateError STATE_FAILED."""
        if self._refilling is None:
            self._refilling = asyncio.ensure_future(self._refill(units, now))
            self._refilling.add_done_callback(_retrieve)
        await asyncio.shield(self._refilling)

    async def _refill(self, units: int, now: float) -> None:
        try:
            if now >= self.ends_at:
                self._turn(now)
            began, need = self.began, units - self.free
            taken = await self._take(self.budget.id, began, need)
            self._asked_at = time.monotonic()
            if began != self.began:
                return
            self._short = taken is None or taken.granted < need
            granted = untaken = 0
            if taken is not None:
                granted, untaken = await self._check(taken)
            if began != self.began:
                return
            self.unspent += granted + untaken - self.untaken
            self.free += granted
            self.untaken = untaken
            self.check_leases()
            if granted:
                self._watch()
        finally:
            self._refilling = None

    async def _check(self, taken: Taken) -> tuple[int, int]:
        """What was granted, and what is left, less what the state has forgotten of what this
        process took: that is put into it again."""
        self._own += taken.granted
        left, forgotten = taken.amount - taken.taken, self._own - taken.taken
        if forgotten <= 0:
            return taken.granted, left
        logger.warning(
            "budget %s: the state has forgotten %d units of its use; it was changed past the"
            " gates, or is of another server",
            *(self.budget.id, forgotten),
        )
        too_many = max(0, self._own - taken.amount)
        granted = max(0, taken.granted - too_many)
        with suppress(TidegateError):
            await self._give_back(self.budget.id, self.began, -forgotten)
        return granted, max(0, left - forgotten)

    async def wait(self, seconds: float) -> bool:
        """Wait until another call has paid; False if none has by then."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        done, _ = await asyncio.wait((waiter,), timeout=seconds)
        return bool(done)

    async def change(self, budget: Budget) -> None:
        """Be of another amount: what was taken of the old one and is not held goes back."""
        self.budget, self.low, self._short = budget, budget.amount // _LOW_PART, False
        await self.release()

    async def release(self) -> None:
        """Give back what is not held. Never raises: what cannot be given back is lost to this
        window."""
        self.end_leases()
        units, self.free = self.free, 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if units > 0:
            self.untaken += units
            self._own -= units
            with suppress(TidegateError):
                await self._give_back(self.budget.id, self.began, units)

    def _turn(self, now: float) -> None:
        """Begin another window; a clock that was set back goes on in the one that is open."""
        self.began, self.ends_at = window_of(self.budget.window, now)
        self.free = self._own = 0
        self.untaken = self.unspent = self.budget.amount
        self._short = False
        self.wake()

    def wake(self) -> None:
        """Let calls go on that wait for units."""
        waiters, self.waiters = self.waiters, []
        for each in waiters:
            if not each.done():
                each.set_result(None)

    def _watch(self) -> None:
        """Give the slice back when no call has used any of it for a while."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(IDLE_S, self._look, self.unspent)

    def _look(self, unspent: int) -> None:
        self._timer = None
        self.end_leases()
        if self.unspent <= self.untaken:
            return  # nothing of it is here
        if self.unspent == unspent and not self.held:
            task = asyncio.ensure_future(self.release())
            _RETURNING.add(task)
            task.add_done_callback(_RETURNING.discard)
        else:
            self._watch()


def _retrieve(refilling: asyncio.Future[None]) -> None:
    """Look at the failure, which no call may be left to see."""
    if not refilling.cancelled():
        refilling.exception()


_RETURNING: set[asyncio.Task[None]] = set()
"""Keeps the tasks from being collected."""
