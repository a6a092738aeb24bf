"""Asks the policy about a call, and acts on its verdict."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import NO_SOURCE, CallContext
from tidegate.policy.decision import decide as decide_by_rules


def decide(ctx: CallContext) -> None:
    """Get the verdict. The call goes on if it is allow or ask.

    A call about several sources has no verdict: each of its sources was checked when they were
    found, and it may read metadata only.
    Raises: TidegateError with the code and the rule of any other verdict.
    """
    judgement = ctx.judgement
    if ctx.source is NO_SOURCE:
        if judgement.metadata:
            return
        raise TidegateError(
            Code.POLICY_DENIED, "The call names no source", hint="Name one source in the call."
        )
    call = ctx.call
    ctx.verdict = verdict = decide_by_rules(
        call.actor,
        ctx.source,
        call.scope,
        judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
    )
    if verdict.kind in ("deny", "confirm"):
        raise TidegateError(
            Code(verdict.code) if verdict.code else Code.POLICY_DENIED,
            verdict.reason,
            hint=verdict.hint,
            details={"rule": verdict.rule, "effect": judgement.effect.label},
        )
