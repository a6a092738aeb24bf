"""Decides on one call: allow, ask, confirm or deny. Knows who asks, of which source, and what the
statement would do; knows neither its text nor the database.
"""

from __future__ import annotations

from tidegate.actors import Actor, Scope
from tidegate.permits import Verdict
from tidegate.policy.model import Case
from tidegate.policy.requests import METADATA
from tidegate.policy.rules import RULES
from tidegate.sources import Source
from tidegate.statements import Judgement

ALLOWED = Verdict("allow", "all", "Every rule admits the call")

_LOOKS = tuple(rule.look for rule in RULES)


def decide(
    actor: Actor,
    source: Source,
    scope: Scope,
    judgement: Judgement,
    *,
    confirmed: bool = False,
    reads_only: bool = False,
) -> Verdict:
    """The verdict of the first rule that has one, else `ALLOWED`. Raises nothing.

    `scope` is what the tool demands whatever the statement does. Destructive and unqualified
    changes are `confirm` until they are `confirmed`, and then `ask`.
    """
    case = Case(actor, source, scope, judgement, confirmed, reads_only)
    for look in _LOOKS:
        verdict = look(case)
        if verdict is not None:
            return verdict
    return ALLOWED


def is_visible(actor: Actor, source: Source) -> bool:
    """Whether the actor may know of the source: whether it may read its names."""
    return decide(actor, source, Scope.READ_ONLY, METADATA).kind != "deny"
