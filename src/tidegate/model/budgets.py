"""Budgets: how much callers may use of sources in a minute, an hour or a day. Frozen.

A budget is about a token, or all tokens of an operator, or every caller; and about one source, or
all of them. What is counted is whole: a second is a million units.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, get_args

import msgspec

Measure = Literal["calls", "rows", "bytes", "seconds"]
"""What is counted: calls; rows and bytes that are returned; seconds for which a database works."""
Window = Literal["minute", "hour", "day"]
"""In which time; each begins with the minute, hour or day of UTC."""

MEASURES: tuple[Measure, ...] = get_args(Measure)
WINDOWS: tuple[Window, ...] = get_args(Window)
WINDOW_S: dict[Window, int] = {"minute": 60, "hour": 3_600, "day": 86_400}
UNITS: dict[Measure, int] = {"calls": 1, "rows": 1, "bytes": 1, "seconds": 1_000_000}
"""How many of the units that are counted one of a measure has."""
MOST = 10**15
"""The largest budget, in units: sums of it are exact everywhere."""
RULE = "budget"
"""What the rule of a refusal begins with: `budget.calls.minute`."""


class Budget(msgspec.Struct, frozen=True):
    """One budget. `token` is the name of a caller, `owner` an operator, `source` the name of a
    source; empty: any. `amount` is in units (`UNITS`). Times are Unix seconds."""

    id: str
    measure: Measure
    window: Window
    amount: int
    token: str = ""
    owner: str = ""
    source: str = ""
    changed_at: float = 0.0
    changed_by: str = ""

    @property
    def rule(self) -> str:
        """The rule that a refusal names."""
        return f"{RULE}.{self.measure}.{self.window}"

    @property
    def what(self) -> tuple[str, str, str, Measure, Window]:
        """What it is about: there is one budget of each."""
        return self.token, self.owner, self.source, self.measure, self.window

    @property
    def about(self) -> str:
        """Whose it is and where, in words: `the token agent on shop`."""
        if self.token:
            who = f"the token {self.token}"
        elif self.owner:
            who = f"the tokens of {self.owner}"
        else:
            return f"all callers on {self.source}"
        return f"{who} on {self.source}" if self.source else who

    @property
    def size(self) -> str:
        """How much it is: `100 calls a minute`."""
        article = "an" if self.window == "hour" else "a"
        return f"{in_words(self.measure, self.amount)} {article} {self.window}"


def applies(budget: Budget, token: str, owner: str, source: str) -> bool:
    """Whether a call costs this budget. `token` and `owner` are empty for a person."""
    return (
        (not budget.token or budget.token == token)
        and (not budget.owner or budget.owner == owner)
        and (not budget.source or budget.source == source)
    )


def window_of(window: Window, now: float) -> tuple[int, int]:
    """When the window of `now` began, and when the next one does, in Unix seconds."""
    span = WINDOW_S[window]
    began = int(now // span) * span
    return began, began + span


def in_words(measure: Measure, units: int) -> str:
    """An amount as a person reads it: `1 call`, `2,500 rows`, `1.5 seconds`."""
    if measure == "seconds":
        number = f"{units / UNITS['seconds']:,.3f}".rstrip("0").rstrip(".")
    else:
        number = f"{units:,}"
    return f"{number} {measure[:-1] if number == '1' else measure}"


def moment(at: float) -> str:
    """A time of UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
