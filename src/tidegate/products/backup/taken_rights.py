"""What the record says was taken away after a backup, and taking it away again.

It errs on the side of less: a token or a source whose rights were changed afterwards is not what
the backup has, and what the record holds of the change does not say all of it. So it goes, and a
person makes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidegate.budgets.budgets import read_described
from tidegate.errors import TidegateError
from tidegate.identity.operators import roles_text
from tidegate.identity.tokens import described
from tidegate.model.budgets import Budget
from tidegate.store.api import State
from tidegate.store.records import OperatorEntry, TokenEntry

REMINDERS = {
    "operator.passphrase_set": "the operator's passphrase was changed: set it again",
    "operator.passphrase_removed": "the operator's passphrase was removed: it is there again",
    "audit.key_replaced": "the key of the record was replaced: replace it again",
}
"""What is as in the backup all the same, and what to do about it."""


class ServerEventLine(NamedTuple):
    """An event of the record that may be about a right."""

    name: str
    details: Mapping[str, str]


def take_away(events: list[ServerEventLine], state: State, now: float) -> list[str]:
    """Take away again what the events took; a sentence for each. Raises: TidegateError."""
    taker = _Taker(state, now)
    for event in events:
        taker.take(event)
    return taker.finish()


class _Taker:
    def __init__(self, state: State, now: float) -> None:
        self._state = state
        self._now = now
        self._said: list[str] = []
        self._tokens = {each.id: each for each in state.tokens.list()}
        self._changed_tokens: dict[str, Mapping[str, str]] = {}
        self._changed_budgets: dict[str, Mapping[str, str]] = {}
        self._names: dict[str, str] = {}
        """What a source is called in the backup, by a name that it was given afterwards."""

    def take(self, event: ServerEventLine) -> None:
        name, details = event
        if name == "token.revoked":
            self._revoke(details.get("id", ""), "was revoked")
        elif name == "token.changed":
            self._changed_tokens[details.get("id", "")] = details
        elif name == "budget.changed":
            self._changed_budgets[details.get("id", "")] = details
        elif name == "budget.removed":  # that gave more: what the backup has of it stays
            self._changed_budgets.pop(details.get("id", ""), None)
        elif name == "operator.removed":
            self._remove_operator(details.get("operator", ""))
        elif name == "operator.roles_changed":
            self._narrow(details.get("operator", ""), details.get("roles", ""))
        elif name == "operator.passphrase_changed":
            self._forget_passphrase(details.get("operator", ""))
        elif name == "source.renamed":
            old = details.get("source", "")
            self._names[details.get("to", "")] = self._names.get(old, old)
        elif name in REMINDERS:
            self._said.append(REMINDERS[name])
        elif name in ("source.removed", "source.changed", "source.hardened"):
            self._remove_source(details.get("source", ""), name)

    def finish(self) -> list[str]:
        """What was taken away."""
        for id, details in self._changed_tokens.items():
            entry = self._tokens.get(id)
            if entry is not None and described(entry) != dict(details):
                self._revoke(id, "had its rights changed: make another one")
        for id, details in self._changed_budgets.items():
            self._lower_budget(id, details)
        return self._said

    def _lower_budget(self, id: str, details: Mapping[str, str]) -> None:
        """Keep a budget that was made since, or lowered."""
        words = details.get("budget", "")
        try:
            amount, measure, window = read_described(words)
        except TidegateError:
            self._said.append(f"a budget was changed: set it again ({words[:80]})")
            return
        source = details.get("source", "")
        wanted = Budget(
            id, measure, window, amount, details.get("token", ""), details.get("owner", ""),
            self._names.get(source, source), self._now,
        )  # fmt: skip
        budgets = self._state.budgets
        was = next((each for each in budgets.list() if each.what == wanted.what), None)
        if was is None:
            kept = budgets.add(wanted)
        elif amount < was.amount:
            kept = budgets.change(msgspec.structs.replace(wanted, id=was.id), was)
        else:
            return
        if kept:
            self._said.append(f"the budget for {wanted.about} is {wanted.size} again")

    def _revoke(self, id: str, why: str) -> None:
        entry = self._tokens.get(id)
        if entry is None or entry.revoked_at is not None:
            return
        if self._state.tokens.revoke(entry.name, self._now, entry.id) is not None:
            self._tokens[id] = _revoked(entry, self._now)
            self._said.append(f"token {entry.name} {why}")

    def _operator(self, name: str) -> OperatorEntry | None:
        return next((each for each in self._state.operators.list() if each.name == name), None)

    def _remove_operator(self, name: str) -> None:
        operator = self._operator(name)
        if operator is not None and self._state.operators.remove(operator.id):
            self._said.append(f"operator {name} was removed")

    def _narrow(self, name: str, roles: str) -> None:
        """Leave an operator the roles that it had before and after the change."""
        operator = self._operator(name)
        if operator is None:
            return
        given = roles.split("; ")
        kept = tuple(each for each in operator.roles if roles_text((each,)) in given)
        if kept != operator.roles:
            changed = msgspec.structs.replace(operator, roles=kept)
            self._state.operators.change(changed, ("roles",), ends_access=True)
            self._said.append(f"operator {name} lost roles: has {roles_text(kept) or 'none'}")

    def _forget_passphrase(self, name: str) -> None:
        operator = self._operator(name)
        if operator is not None and operator.hash:
            changed = msgspec.structs.replace(operator, salt=b"", hash=b"")
            self._state.operators.change(changed, ("salt", "hash"), ends_access=True)
            self._said.append(f"operator {name} changed the passphrase: set it again")

    def _remove_source(self, name: str, what: str) -> None:
        found = self._names.get(name, name)
        if self._state.sources.remove(found):
            verb = what.partition(".")[2]
            again = "" if verb == "removed" else ": add it again"
            self._said.append(f"source {found} was {verb}{again}")


def _revoked(entry: TokenEntry, at: float) -> TokenEntry:
    return msgspec.structs.replace(entry, revoked_at=at)
