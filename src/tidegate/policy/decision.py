"""Decides on one call: allow, ask, confirm or deny. Knows who asks, of which source, and what the
statement would do; knows neither its text nor the database.
"""

from __future__ import annotations

from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import METADATA
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.model import PolicyInput
from tidegate.policy.rules import RULES

ALLOWED = Verdict("allow", "all", "Every rule admits the call")

_LOOKS = tuple(rule.check for rule in RULES)

_MAX_KEPT = 1_024
_KEPT_EFFECTS = (Effect.READ, Effect.WRITE)
_kept: dict[tuple[int, int, int, bool, bool, bool, bool], tuple[Verdict, Actor, Source]] = {}
"""The verdicts on reads and plain changes, by the identity of what they were about."""


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
    effect = judgement.effect
    if effect not in _KEPT_EFFECTS or judgement.unqualified:
        return _first(PolicyInput(actor, source, scope, judgement, confirmed, reads_only))
    # All statements that read are one case, and so are all that change the rows they name: no rule
    # looks at more of them. Actors, sources and scopes are frozen and the entry keeps them, so that
    # their identity says all about them.
    reads = effect is Effect.READ
    key = (id(actor), id(source), id(scope), reads, judgement.metadata, confirmed, reads_only)
    kept = _kept.get(key)
    if kept is None:
        verdict = _first(PolicyInput(actor, source, scope, judgement, confirmed, reads_only))
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        kept = _kept[key] = (verdict, actor, source)
    return kept[0]


def _first(case: PolicyInput) -> Verdict:
    for look in _LOOKS:
        verdict = look(case)
        if verdict is not None:
            return verdict
    return ALLOWED


def is_visible(actor: Actor, source: Source) -> bool:
    """Whether the actor may know of the source: whether it may read its names."""
    return decide(actor, source, Scope.READ_ONLY, METADATA).kind != "deny"
