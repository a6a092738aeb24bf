"""Budgets in the console: seen, set and changed by operators with rights over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from tidegate.budgets.amounts import parse_amount
from tidegate.budgets.budgets import Budgets, BudgetState, Records, gives_more
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import BUILTIN
from tidegate.identity.operators import Operators, SignedIn
from tidegate.identity.tokens import Tokens
from tidegate.model.budgets import MEASURES, UNITS, WINDOWS, Budget, Measure, Window, in_words
from tidegate.model.sources import Source
from tidegate.products.console.admins import (
    Consent,
    check_admin,
    check_may_give,
    is_admin,
    may_give,
)
from tidegate.store.records import TokenEntry

Name = Annotated[str, msgspec.Meta(max_length=200)]


class SetBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `access/budgets`. `amount` is as a person writes it, and `was` the units of the
    budget about the same that was shown, None: none."""

    measure: Measure
    window: Window
    amount: Annotated[str, msgspec.Meta(max_length=40)]
    token: Name = ""
    owner: Name = ""
    source: Name = ""
    was: int | None = None
    passphrase: str = ""


class RemoveBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `remove`: the units that were shown."""

    was: int
    passphrase: str = ""


class BudgetForms:
    """What an operator may see and do of budgets."""

    def __init__(
        self,
        budgets: Budgets,
        tokens: Tokens,
        operators: Operators,
        sources: Callable[[], Sequence[Source]],
        consent: Consent,
    ) -> None:
        self._budgets = budgets
        self._tokens = tokens
        self._operators = operators
        self._sources = sources
        self._consent = consent

    def show(self, signed_in: SignedIn) -> dict[str, Any]:
        """The budgets that the operator may change, and what it may choose for another one."""
        tokens = self._active()
        whole = is_admin(signed_in)
        named = [each for each in tokens.values() if may_give(signed_in, each.sources, each.tags)]
        sources = [each.name for each in self._sources() if may_give(signed_in, [each.name], None)]
        return {
            "budgets": [
                _shown(each)
                for each in self._budgets.list()
                if _may(each.budget, tokens, signed_in)
            ],
            "measures": MEASURES,
            "windows": WINDOWS,
            "tokens": sorted([*(each.name for each in named), *(_UNNAMED if whole else ())]),
            "owners": sorted(each.name for each in self._operators.list()) if whole else [],
            "sources": sources,
            "may": {"set": whole or bool(sources), "whole": whole},
        }

    def set(self, body: SetBudget, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Set a budget, or change the one that was shown; to raise it needs the passphrase.

        Raises: TidegateError POLICY_DENIED, OPERATOR_CONSENT, ACCESS_CHANGED, ARGUMENT_INVALID,
        SOURCE_UNKNOWN, AUDIT_UNAVAILABLE, STATE_FAILED.
        """
        amount = parse_amount(body.measure, body.amount)
        wanted = Budget("", body.measure, body.window, amount, body.token, body.owner, body.source)
        tokens = self._active()

        def check(by: SignedIn) -> None:
            _check(wanted, tokens, by)

        check(signed_in)
        was = self._budgets.find(wanted)
        if (None if was is None else was.amount) != body.was:
            raise TidegateError(
                Code.ACCESS_CHANGED, f"The budget for {wanted.about} is another one by now."
            )
        if was is None:
            self._check_names(wanted, tokens)
        if gives_more(was, wanted):
            signed_in = self._consent.require(signed_in, body.passphrase, address, check)
        records = Records(*self._consent.records(signed_in, address))
        now = self._budgets.set(wanted, was, signed_in.operator.name, records=records)
        found = [each for each in self._budgets.list() if each.budget.id == now.id]
        return _shown(found[0]) if found else {}

    def remove(self, id: str, body: RemoveBudget, signed_in: SignedIn, address: str) -> None:
        """Remove a budget. Raises: as `set`."""
        tokens = self._active()
        was = next((each.budget for each in self._budgets.list() if each.budget.id == id), None)
        if was is None or not _may(was, tokens, signed_in):
            check_may_give(signed_in, [], None)
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such budget")
        if was.amount != body.was:
            raise TidegateError(
                Code.ACCESS_CHANGED, f"The budget for {was.about} is another one by now."
            )
        budget = was

        def check(by: SignedIn) -> None:
            _check(budget, tokens, by)

        signed_in = self._consent.require(signed_in, body.passphrase, address, check)
        records = Records(*self._consent.records(signed_in, address))
        self._budgets.remove(was, records=records)

    def _active(self) -> dict[str, TokenEntry]:
        return {each.name: each for each in self._tokens.list() if each.revoked_at is None}

    def _check_names(self, wanted: Budget, tokens: dict[str, TokenEntry]) -> None:
        """Raises: TidegateError ARGUMENT_INVALID, SOURCE_UNKNOWN: a misspelt name would limit
        nothing without a message."""
        if wanted.token and wanted.token not in tokens and wanted.token not in BUILTIN:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"There is no active token {wanted.token[:80]!r}"
            )
        if wanted.owner:
            self._operators.find(wanted.owner)
        if wanted.source and all(each.name != wanted.source for each in self._sources()):
            raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {wanted.source[:80]!r}")


_UNNAMED = ("anonymous", "bridge", "stdio")
"""Callers without a token, for whom there may be a budget."""


def _may(budget: Budget, tokens: dict[str, TokenEntry], signed_in: SignedIn) -> bool:
    """Whether the operator has rights over a budget: over its source, or over its token."""
    if budget.source:
        return may_give(signed_in, [budget.source], None)
    token = tokens.get(budget.token)
    if token is not None:
        return may_give(signed_in, token.sources, token.tags)
    return is_admin(signed_in)


def _check(budget: Budget, tokens: dict[str, TokenEntry], signed_in: SignedIn) -> None:
    """Raises: TidegateError POLICY_DENIED unless the operator has rights over the budget."""
    token = tokens.get(budget.token)
    if budget.source:
        check_may_give(signed_in, [budget.source], None)
    elif token is not None:
        check_may_give(signed_in, token.sources, token.tags)
    else:
        check_admin(signed_in)


def _shown(state: BudgetState) -> dict[str, Any]:
    budget = state.budget
    return {
        "id": budget.id,
        "token": budget.token,
        "owner": budget.owner,
        "source": budget.source,
        "about": budget.about,
        "measure": budget.measure,
        "window": budget.window,
        "units": budget.amount,
        "amount": _typed(budget.measure, budget.amount),
        "size": budget.size,
        "left": in_words(budget.measure, state.left),
        "share": 0.0 if not budget.amount else round(state.left / budget.amount, 4),
        "renews_at": state.ends_at,
        "changed_at": budget.changed_at,
        "changed_by": budget.changed_by,
    }


def _typed(measure: Measure, units: int) -> str:
    """An amount as a person types it."""
    unit = UNITS[measure]
    return str(units) if unit == 1 else f"{units / unit:.6f}".rstrip("0").rstrip(".")
