"""Budgets as operators see and change them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import structs

from tidegate.budgets.amounts import parse_size
from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import WINDOW_S, Budget, Measure, Window, in_words, window_of
from tidegate.store.budgets import BudgetStore

Note = Callable[[str, Mapping[str, str]], None]


class Records(NamedTuple):
    """Where changes go on record: `before` what gives more, `after` what takes away."""

    before: Note
    after: Note


class BudgetState(NamedTuple):
    """A budget, what processes have taken of it in the window that ends at `ends_at`, and what is
    left; a process may have taken more than it has spent."""

    budget: Budget
    taken: int
    left: int
    ends_at: int


class Budgets:
    """The budgets in `store`. Safe to call from any thread; every method reads the state."""

    def __init__(
        self, store: BudgetStore, records: Records, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._records = records
        self._clock = clock

    def list(self) -> list[BudgetState]:
        """All of them, by what they are about. Raises: TidegateError STATE_FAILED."""
        now = self._clock()
        taken = self._store.taken(int(now) - max(WINDOW_S.values()))
        found: list[BudgetState] = []
        for budget in self._store.list():
            began, ends_at = window_of(budget.window, now)
            used = taken.get((budget.id, began), 0)
            found.append(BudgetState(budget, used, max(0, budget.amount - used), ends_at))
        return found

    def find(self, like: Budget) -> Budget | None:
        """The budget about the same. Raises: TidegateError STATE_FAILED."""
        return next((each for each in self._store.list() if each.what == like.what), None)

    def of(self, id: str) -> Budget:
        """The budget of that id. Raises: TidegateError ACCESS_CHANGED if there is none."""
        found = next((each for each in self._store.list() if each.id == id), None)
        if found is None:
            raise TidegateError(Code.ACCESS_CHANGED, "There is no such budget, or it was removed.")
        return found

    def set(
        self, wanted: Budget, was: Budget | None, by: str, *, records: Records | None = None
    ) -> Budget:
        """Keep a budget, in place of the one that `was` about the same.

        Raises: TidegateError ACCESS_CHANGED if it was changed meanwhile; ARGUMENT_INVALID,
        AUDIT_UNAVAILABLE, STATE_FAILED.
        """
        if not (wanted.token or wanted.owner or wanted.source):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "A budget is about a token, an operator or a source.",
                hint="Name one of them, or a source together with one.",
            )
        id = f"bud_{os.urandom(6).hex()}" if was is None else was.id
        now = structs.replace(wanted, id=id, changed_at=self._clock(), changed_by=by)
        gives = gives_more(was, now)
        before, after = records or self._records
        if gives:
            before("budget.changed", described(now))
        kept = self._store.add(now) if was is None else self._store.change(now, was)
        if not kept:
            raise _changed()
        if not gives:
            after("budget.changed", described(now))
        return now

    def remove(self, was: Budget, *, records: Records | None = None) -> None:
        """Let calls be free of a budget. Raises: as `set`."""
        (records or self._records).before("budget.removed", described(was))
        if not self._store.remove(was):
            raise _changed()


def gives_more(was: Budget | None, now: Budget) -> bool:
    """Whether callers may do more than before."""
    return was is not None and now.amount > was.amount


def described(budget: Budget) -> dict[str, str]:
    """A budget as few words for the record."""
    about = {"token": budget.token, "owner": budget.owner, "source": budget.source}
    return {
        "id": budget.id,
        **{name: value for name, value in about.items() if value},
        "budget": f"{in_words(budget.measure, budget.amount)}/{budget.window}",
    }


def read_described(words: str) -> tuple[int, Measure, Window]:
    """The amount in what `described` says of a budget. Raises: TidegateError ARGUMENT_INVALID."""
    size, _, window = words.partition("/")
    return parse_size(f"{size if size.endswith('s') else f'{size}s'}/{window}")


def _changed() -> TidegateError:
    return TidegateError(
        Code.ACCESS_CHANGED,
        "The budget was changed or removed by another process at the same time.",
        hint="Look at it, then do it again.",
    )
