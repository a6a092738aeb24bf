"""Explains what the gate would say to a call. Runs nothing and records nothing."""

from __future__ import annotations

from tidegate.errors import TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import as_read, bind_caller, classify, with_setting
from tidegate.gateway.joined_tables import call_for, other_tables, whole_read
from tidegate.gateway.masking import mask
from tidegate.gateway.source_connections import connect, find
from tidegate.model.joined_tables import JoinedTable
from tidegate.model.requests import JoinedRead, Query
from tidegate.policy.data_rules import verdict_of
from tidegate.policy.explanation import Explanation, explain, under_data_rules


async def explain_call(ctx: CallContext) -> Explanation:
    """The verdict with every rule that was checked, in the order in which the gate asks. For a
    query that is not refused, the caller's data rules and the database's opinion count as well.
    `ctx.judgement` is set.

    Raises: TidegateError SOURCE_UNKNOWN, POLICY_IDENTITY, and what opening the source raises.
    """
    explanation = await explain_text(ctx)
    if _refuses(explanation) or not isinstance(ctx.call.request, Query):
        return explanation
    bind_caller(ctx)
    await connect(ctx)
    refused = await _explain_joined(ctx) or await _explain_mask(ctx, explanation)
    if refused is not None:
        return refused
    request = ctx.call.request
    opinion = await ctx.engine.inspect(request.statement, ctx.judgement, request.limits.timeout_s)
    if opinion is not None and opinion.effect > ctx.judgement.effect:
        ctx.judgement = with_setting(ctx, as_read(ctx.judgement, opinion))
        explanation = _explain(ctx)
        if _refuses(explanation):
            return explanation
    return explanation if ctx.data_rules is None else under_data_rules(explanation, None)


async def explain_under_rules(ctx: CallContext) -> Explanation:
    """The verdict on what the text shows and, where something is hidden from the caller, by the
    rules that hide it: these need the names of the database, which is asked for no more. Without
    such rules no source is opened. `ctx.judgement` is set.

    Raises: TidegateError SOURCE_UNKNOWN.
    """
    explanation = await explain_text(ctx)
    if explanation.verdict.kind == "deny" or not isinstance(ctx.call.request, Query):
        return explanation
    try:
        bind_caller(ctx)
    except TidegateError as refusal:
        return under_data_rules(explanation, verdict_of(refusal))
    if ctx.data_rules is None:
        return explanation
    try:
        await connect(ctx)
    except TidegateError:
        return explanation  # the call itself will say what is wrong with the source
    refused = await _explain_joined(ctx) or await _explain_mask(ctx, explanation)
    return refused or explanation


async def explain_text(ctx: CallContext) -> Explanation:
    """The verdict of the policy on what the text shows. `ctx.judgement` is set.

    Raises: TidegateError SOURCE_UNKNOWN.
    """
    find(ctx)
    await classify(ctx)
    return _explain(ctx)


async def _explain_mask(ctx: CallContext, explanation: Explanation) -> Explanation | None:
    """What the rules that hide something from the caller refuse."""
    try:
        await mask(ctx)
    except TidegateError as refusal:
        return under_data_rules(explanation, verdict_of(refusal))
    return None


async def _explain_joined(ctx: CallContext) -> Explanation | None:
    """What refuses the first table of another source that the statement may not read."""
    needs = await other_tables(ctx)
    for table in needs.tables if needs is not None else ():
        read = whole_read(ctx, table)
        call = call_for(ctx, table.source, JoinedRead(read))
        explanation = await explain_call(CallContext.begin(ctx.services, call, ctx.call_id))
        if _refuses(explanation):
            return explanation
        ctx.joined = (*ctx.joined, JoinedTable(table.source, table.names, (), read.text))
    return None


def _refuses(explanation: Explanation) -> bool:
    return explanation.verdict.kind in ("deny", "confirm")


def _explain(ctx: CallContext) -> Explanation:
    call = ctx.call
    explanation = explain(
        call.actor,
        ctx.source,
        call.scope,
        ctx.judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
        statements=ctx.services.statement_rules(ctx.source),
    )
    ctx.verdict = explanation.verdict
    return explanation
