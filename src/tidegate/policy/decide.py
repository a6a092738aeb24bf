"""Decides on one call: allow, ask, confirm or deny. Knows who asks, of which source, and what the
statement would do; knows neither its text nor the database.
"""

from __future__ import annotations

from tidegate.policy.model import Case
from tidegate.policy.rules import RULES
from tidegate.types import Actor, Judgement, Scope, Source, Verdict

ALLOWED = Verdict("allow", "all", "Every rule admits the call")

_LOOKS = tuple(rule.look for rule in RULES)


def decide(
    actor: Actor,
    source: Source,
    scope: Scope,
    judgement: Judgement,
    *,
    writes_open: bool = False,
) -> Verdict:
    """The verdict of the first rule that has one, else `ALLOWED`. Raises nothing.

    `scope` is what the tool demands whatever the statement does. Writes are refused unless
    `writes_open`; then destructive and unqualified ones are `confirm`.
    """
    case = Case(actor, source, scope, judgement, writes_open)
    for look in _LOOKS:
        verdict = look(case)
        if verdict is not None:
            return verdict
    return ALLOWED
