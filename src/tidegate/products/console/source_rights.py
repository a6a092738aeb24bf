"""What each caller may do on a source before a change of it and after, by the policy's own code."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.gateway.access import cells_of, hidden_from
from tidegate.gateway.gateway import Gateway
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.policy.access_matrix import VERBS
from tidegate.products.console.access_matrix import caller_fields, cell_fields
from tidegate.products.console.callers import Caller, Callers

MOST_ROWS = 200


class SourceRights:
    """The rights on a source, compared."""

    def __init__(self, gateway: Gateway, callers: Callers) -> None:
        self._gateway = gateway
        self._callers = callers

    def compare(
        self, before: Source | None, after: Source | None, signed_in: SignedIn
    ) -> dict[str, Any]:
        """The rows of all callers, those that change first; None is a source that is not there.
        Both are as they are served, with the rules of the settings. Reads the state."""
        rows = [self._row(each, before, after) for each in self._callers.on_source(signed_in)]
        rows.sort(key=lambda row: not row["changed"])
        return {
            "verbs": [{"name": verb.name, "label": verb.label} for verb in VERBS],
            "rows": rows[:MOST_ROWS],
            "total": len(rows),
            "changed": sum(row["changed"] for row in rows),
        }

    def _row(self, caller: Caller, before: Source | None, after: Source | None) -> dict[str, Any]:
        was, now = self._rights(caller, before), self._rights(caller, after, before)
        return {"caller": caller_fields(caller), "before": was, "after": now, "changed": was != now}

    def _rights(
        self, caller: Caller, source: Source | None, renamed: Source | None = None
    ) -> dict[str, Any] | None:
        """The cells of a caller on a source, and what is hidden from it there; `renamed` is the
        source under the name that the caller's lists have, which follow."""
        if source is None:
            return None
        actor = caller.actor_on(source)
        if renamed is not None and renamed.name != source.name:
            actor = _following(actor, renamed.name, source.name)
        try:
            cells = cells_of(actor, source, self._gateway.statement_rules(source))
            rules = hidden_from(actor, source)
        except TidegateError as error:
            return {"cells": None, "hidden": [], "problem": error.without_secrets().message}
        hidden: list[str] = []
        if rules is not None:
            hidden = [f"{column} shows {show}" for column, show in rules.masks]
            hidden += [f"{table} where {where}" for table, where in rules.filters]
        return {"cells": [cell_fields(each) for each in cells], "hidden": hidden, "problem": ""}


def _following(actor: Actor, old: str, new: str) -> Actor:
    """A caller whose lists have the source under its new name, as `SourceStore.rename` does it;
    roles of operators keep the old one."""
    if actor.kind == "human":
        return actor
    return structs.replace(
        actor,
        sources=_renamed(actor.sources, old, new),
        tables=_renamed(actor.tables, f"{old}:", f"{new}:"),
    )


def _renamed(names: Collection[str] | None, old: str, new: str) -> frozenset[str] | None:
    if names is None:
        return None
    prefix = old.endswith(":")
    return frozenset(
        new + name[len(old) :] if name == old or (prefix and name.startswith(old)) else name
        for name in names
    )
