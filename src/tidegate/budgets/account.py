"""The budgets that calls of one caller on one source cost, together.

On the path of every call: what a call holds is worked out once for calls of the same limits in the
same windows, and held for many of them at once where budgets have plenty, so that a call makes
nothing of its own and changes no meter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tidegate.budgets.meter import Meter
from tidegate.budgets.spending import Lease, Spending, holds_of, needs
from tidegate.model.results import Limits

LEAST_LEASED, MOST_LEASED = 4, 64
"""Calls for which an account holds at once; for fewer than these it costs more than it saves."""


class Account:
    """The meters of these budgets. On the event loop only."""

    __slots__ = ("_ends_at", "_lease", "_limits", "_shared", "meters")

    def __init__(self, meters: Sequence[Meter]) -> None:
        self.meters = meters
        self._limits: Limits | None = None
        self._shared = Spending([])
        self._lease = Lease([], 0)
        self._ends_at = -inf
        """When the first of the windows ends in which `_shared` holds something."""

    def hold_now(self, limits: Limits, now: float, streams: bool) -> Spending | None:
        """Hold what a call may use at most, if all of it is here. `now` is when it came, in Unix
        seconds: it counts in the window of that time."""
        if streams:
            if any(now >= meter.ends_at for meter in self.meters):
                return None
            return _hold(Spending(holds_of(needs(self.meters, limits, streams=True))))
        if now >= self._ends_at or (limits is not self._limits and limits != self._limits):
            self._share(limits)
            return None if now >= self._ends_at else self._hold_for_one()
        lease = self._lease
        if lease.ready:
            lease.ready -= 1
            return lease
        return self._hold_for_many() or self._hold_for_one()

    def _share(self, limits: Limits) -> None:
        """Work out what calls of these limits hold. Only if they come again there is a lease."""
        self._lease.end()
        self._limits = limits
        self._shared = Spending(holds_of(needs(self.meters, limits, streams=False)))
        self._ends_at = min(meter.ends_at for meter in self.meters)

    def _hold_for_many(self) -> Spending | None:
        self._lease.end()
        count = MOST_LEASED
        for meter, began, units, _ in self._shared.holds:
            count = min(count, meter.spare // units)
            if count < LEAST_LEASED or meter.began != began:
                return None
        self._lease = lease = Lease(self._shared.holds, count)
        lease.ready -= 1
        return lease

    def _hold_for_one(self) -> Spending | None:
        spending = _hold(self._shared)
        if spending is None:
            self._limits = None  # worked out again: a window may have begun
        return spending


def _hold(spending: Spending) -> Spending | None:
    """Hold all of it, or nothing."""
    holds = spending.holds
    for meter, began, units, _ in holds:
        if meter.free < units or began != meter.began:
            return None
    for meter, _, units, _ in holds:
        meter.free -= units
        meter.check_leases()
    return spending
