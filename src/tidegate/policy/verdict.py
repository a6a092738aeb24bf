"""The verdict on one call: allow, ask, confirm or deny. Its inputs are the caller, the source and
the effect of the statement, but neither its text nor the database.
"""

from __future__ import annotations

from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import METADATA
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.rules import RULES, PolicyInput

ALLOWED = Verdict("allow", "all", "Every rule admits the call")

_LOOKS = tuple(rule.check for rule in RULES)

_MAX_KEPT = 1_024
_kept: dict[tuple[int, int, int, int, bool, bool], tuple[Verdict, PolicyInput]] = {}
"""Verdicts on reads. The key has every field of the `PolicyInput`, by identity where it is frozen;
the entry keeps the input, so that no other object can take the place of one of them in memory."""


def evaluate(
    actor: Actor,
    source: Source,
    scope: Scope,
    judgement: Judgement,
    *,
    confirmed: bool = False,
    reads_only: bool = False,
    statements: StatementRules | None = None,
) -> Verdict:
    """The verdict of the first rule that has one, else `ALLOWED`. Raises nothing.

    `statements` are the source's rules for classes of statements, if it has them: they are about
    changes alone, so a verdict on a read does not depend on them. `scope` is what the tool demands
    whatever the statement does. Destructive and unqualified changes are `confirm` until they are
    `confirmed`, and then `ask`.
    """
    key = (id(actor), id(source), id(scope), id(judgement), confirmed, reads_only)
    kept = _kept.get(key)
    if kept is not None:
        return kept[0]
    case = PolicyInput(actor, source, scope, judgement, confirmed, reads_only, statements)
    verdict = first_verdict(case)
    if judgement.effect is Effect.READ:
        # The judge gives all reads of one template the same judgement; changes have their own.
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[key] = verdict, case
    return verdict


def first_verdict(case: PolicyInput) -> Verdict:
    """The verdict of the first rule that has one, else `ALLOWED`; nothing of it is kept."""
    for look in _LOOKS:
        verdict = look(case)
        if verdict is not None:
            return verdict
    return ALLOWED


def is_visible(actor: Actor, source: Source) -> bool:
    """Whether the actor may know of the source: whether it may read its names."""
    return evaluate(actor, source, Scope.READ_ONLY, METADATA).kind != "deny"
