"""Explains what the gate would say to a call. Runs nothing and records nothing."""

from __future__ import annotations

from tidegate.errors import TidegateError
from tidegate.gateway.connections import connect, find
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import bind_caller, classify
from tidegate.gateway.masking import mask
from tidegate.model.requests import Query
from tidegate.policy.data_rules import verdict_of
from tidegate.policy.explanation import Explanation, explain, under_data_rules


async def explain_call(ctx: CallContext) -> Explanation:
    """The verdict with every rule that was checked. For a query that is not refused, the
    database's opinion and the caller's data rules count as well. `ctx.judgement` is set.

    Raises: TidegateError SOURCE_UNKNOWN, POLICY_IDENTITY, and what opening the source raises.
    """
    find(ctx)
    classify(ctx)
    explanation = _explain(ctx)
    if explanation.verdict.kind == "deny" or not isinstance(ctx.call.request, Query):
        return explanation
    bind_caller(ctx)
    await connect(ctx)
    opinion = await ctx.engine.inspect(ctx.call.request.statement)
    if opinion is not None and opinion.effect > ctx.judgement.effect:
        ctx.judgement = opinion
        explanation = _explain(ctx)
        if explanation.verdict.kind == "deny":
            return explanation
    try:
        await mask(ctx)
    except TidegateError as refusal:
        return under_data_rules(explanation, verdict_of(refusal))
    return explanation if ctx.data_rules is None else under_data_rules(explanation, None)


def _explain(ctx: CallContext) -> Explanation:
    call = ctx.call
    explanation = explain(
        call.actor,
        ctx.source,
        call.scope,
        ctx.judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
    )
    ctx.verdict = explanation.verdict
    return explanation
