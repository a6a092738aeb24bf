"""Permits as the gateway makes them: with the judgement of the statement that they are for."""

from __future__ import annotations

from tidegate.engines.registry import language_of
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Permit
from tidegate.model.requests import EngineRequest, Explain, Prepare, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect

READER = Actor("a", "a", Scope.READ_ONLY)


def permit_for(
    source: Source,
    request: EngineRequest,
    effect: Effect = Effect.READ,
    *,
    limits: Limits | None = None,
    actor: Actor = READER,
) -> Permit:
    """A permit of `effect`, whatever the judgement is: engines have a fence of their own."""
    limits = limits or request.limits
    permit = Permit("call", actor, source, request, effect, limits)
    if not isinstance(request, (Query, Explain, Prepare)):
        return permit
    judgement = language_of(source).classify(request, source)
    return Permit(
        *(permit.call_id, actor, source, request, effect, limits),
        judgement=judgement,
        judged_text=request.statement.text,
    )
