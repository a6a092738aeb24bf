"""The budgets that calls of one caller on one source cost, together.

On the path of every call: what a call holds is worked out once for calls of the same limits in the
same windows, and shared by them, so that a call makes nothing of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tidegate.budgets.meter import Meter
from tidegate.budgets.spending import Spending, holds_of, needs
from tidegate.model.results import Limits


class Account:
    """The meters of these budgets. On the event loop only."""

    __slots__ = ("_ends_at", "_limits", "_shared", "meters")

    def __init__(self, meters: Sequence[Meter]) -> None:
        self.meters = meters
        self._limits: Limits | None = None
        self._shared = Spending([])
        self._ends_at = -inf
        """When the first of the windows ends in which `_shared` holds something."""

    def hold_now(self, limits: Limits, now: float, streams: bool) -> Spending | None:
        """Hold what a call may use at most, if all of it is here. `now` is when it came, in Unix
        seconds: it counts in the window of that time."""
        if streams:
            spending = Spending(holds_of(needs(self.meters, limits, streams=True)))
            if any(now >= meter.ends_at for meter in self.meters):
                return None
        elif now >= self._ends_at or (limits is not self._limits and limits != self._limits):
            spending = self._share(limits)
            if now >= self._ends_at:
                return None
        else:
            spending = self._shared
        holds = spending.holds
        for meter, began, units, _ in holds:
            if meter.free < units or began != meter.began:
                self._limits = None  # worked out again: a window may have begun
                return None
        for meter, _, units, _ in holds:
            meter.free -= units
            meter.held += units
        return spending

    def _share(self, limits: Limits) -> Spending:
        self._limits = limits
        self._shared = Spending(holds_of(needs(self.meters, limits, streams=False)))
        self._ends_at = min(meter.ends_at for meter in self.meters)
        return self._shared
