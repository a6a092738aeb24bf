"""The identity of a caller in a source's database: role and variables. Sets nothing there."""

from __future__ import annotations

import re

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.model.sources import Identity, Source

_BLANK = re.compile(r"\{(\w+)\.(\w+)\}")


def resolve_run_as(actor: Actor, source: Source) -> Identity | None:
    """The caller's identity there; None if the source maps no caller.

    Raises: TidegateError POLICY_IDENTITY if the source maps callers and this one is not among them.
    """
    run_as = source.run_as
    if run_as is None:
        return None
    role = dict(run_as.roles).get(actor.name, run_as.role)
    if role is None and (run_as.roles or not run_as.variables):
        raise _unmapped(f"No role of this database is named for {actor.name!r}")
    return Identity(
        None if role is None else _filled(role, actor),
        tuple([(name, _filled(value, actor)) for name, value in run_as.variables]),
    )


def _filled(text: str, actor: Actor) -> str:
    values = {"actor.name": actor.name, "actor.id": actor.id}

    def value(blank: re.Match[str]) -> str:
        found = values.get(f"{blank[1]}.{blank[2]}")
        if found is None:
            raise _unmapped(f"The mapping of callers has an unknown blank {blank[0]}")
        return found

    filled = _BLANK.sub(value, text)
    if not filled or "\0" in filled:
        raise _unmapped("The mapping of callers gives this one an empty name")
    return filled


def _unmapped(reason: str) -> TidegateError:
    return TidegateError(Code.POLICY_IDENTITY, reason, details={"rule": "source.run_as"})
