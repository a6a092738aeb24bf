"""What replies say of budgets."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.budgets.meter import Meter
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import in_words, moment


def refusal(meter: Meter, now: float, *, cut: bool = False) -> TidegateError:
    """The error for a call that a budget does not cover; `cut`: it has run, and ends here."""
    budget, wait_s = meter.budget, max(1.0, meter.ends_at - now)
    what = f"The budget of {budget.size} for {budget.about}"
    reached = "is used up"
    if cut and meter.kind == "seconds":
        reached = "ends here: the call took the time that was left"
    elif cut:
        reached = "ends here: more rows than these would exceed it"
    elif meter.held:
        reached = "is held by other calls that have not ended"
        wait_s = 1.0
    return TidegateError(
        Code.LIMIT_BUDGET,
        f"{what} {reached}. It renews at {moment(meter.ends_at)}.",
        hint=f"Wait {wait_s:.0f} seconds; {who_raises(meter)} can raise it.",
        retry_after_s=round(wait_s, 3),
        details={"rule": budget.rule, "budget": budget.id},
    )


def who_raises(meter: Meter) -> str:
    """Who may change the budget in the console, or at the command line."""
    budget = meter.budget
    if budget.source:
        return f"an admin of the source {budget.source}"
    return "an admin who gives such tokens" if budget.token else "an admin of all sources"


def note(meters: Iterable[Meter]) -> str:
    """What is left of budgets that are nearly used up; empty if there is enough."""
    return "; ".join(
        [
            f"{in_words(each.kind, each.left)} left of the budget of {each.budget.size} for"
            f" {each.budget.about}, until {moment(each.ends_at)}"
            for each in meters
            if each.is_low
        ]
    )
