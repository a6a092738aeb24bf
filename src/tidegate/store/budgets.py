"""State of budgets: what they are, and what processes have taken of them.

`api.py` says what holds of every area.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidegate.model.budgets import Budget

SHARE = 8
"""A process gets this part of what is left, or what it needs at once if that is more: what lies
unspent with others is little, and less near the end."""


class Taken(NamedTuple):
    """What a process was given of a budget, and what all have taken now, of how much."""

    granted: int
    taken: int
    amount: int


class BudgetStore(Protocol):
    """Budgets, and their use by window, which begins at a Unix second."""

    def generation(self) -> int:
        """A number that differs after any change of a budget; its use is none. From memory."""
        ...

    def list(self) -> tuple[Budget, ...]:
        """All budgets, by what they are about."""
        ...

    def add(self, budget: Budget) -> bool:
        """Keep a budget; False if there is one about the same."""
        ...

    def change(self, budget: Budget, was: Budget) -> bool:
        """Give a budget another amount; False if it is not what it `was`."""
        ...

    def remove(self, was: Budget) -> bool:
        """Remove a budget and its use; False if it is not what it `was`."""
        ...

    def take(self, id: str, began: int, need: int) -> Taken | None:
        """Take a slice of what is left in a window: `need` units or more, and less only if less is
        left. None if nothing is left, or there is no such budget. One conditional write: two
        processes never take the same unit."""
        ...

    def give_back(self, id: str, began: int, units: int) -> None:
        """Return units that were taken and not spent; a negative number: that many were taken, and
        are not there."""
        ...

    def taken(self, began: int) -> dict[tuple[str, int], int]:
        """What was taken, by budget and window, of windows that began then or later."""
        ...
