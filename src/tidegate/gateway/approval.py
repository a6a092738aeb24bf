"""Gets the approval of a person for a call that needs one: from a grant that was given for exactly
this call, or by a question that shows what a dry run would change.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from msgspec import structs

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import ApprovalDeclined, ApprovalNeeded
from tidegate.engines.api import can_plan
from tidegate.engines.registry import language_of
from tidegate.errors import OUTCOME_UNKNOWN, Code, TidegateError
from tidegate.gateway.context import CallContext, Services
from tidegate.gateway.masking import separable_under, without_values
from tidegate.gateway.recorder import record_failure, record_intent, record_outcome
from tidegate.gateway.transactions import may_wait
from tidegate.model.changes import Undone
from tidegate.model.requests import Call, EngineRequest, Query
from tidegate.model.results import Limits, Page
from tidegate.model.row_changes import ChangedRows, ChangeRows
from tidegate.model.statements import DryRun, Effect, NewState
from tidegate.store.calls import change_state
from tidegate.store.records import ApprovedRun

_MOST_MESSAGE = 500
_REFUSALS = ("policy.", "limit.rows_changed", "limit.budget")
DRY_RUN_LIMITS = Limits(max_rows=20, max_bytes=16_384, timeout_s=2.0)
"""What a dry run may take: it shows a sample, and must not hold up other callers."""


async def approve(ctx: CallContext) -> None:
    """Return if a person has approved exactly this call, or need not be asked.

    The person is shown the statement as the caller sent it, not as it was rewritten.
    Raises: ApprovalNeeded, ApprovalDeclined, TidegateError APPROVAL_NEEDED, LIMIT_RATE.
    """
    call, approvals = ctx.call, ctx.services.approvals
    request = call.request
    if call.on_behalf_of and call.actor.proxy and ctx.judgement.effect < Effect.ADMIN:
        _note(ctx, granted=True)  # a person was asked at the proxy, if its own gate requires it
        return
    if approvals is None or not isinstance(request, EngineRequest) or not request.asks_person:
        raise TidegateError(Code.APPROVAL_NEEDED, ctx.verdict.reason)
    request = ctx.request
    plan = await _plan_of(ctx)
    _note(ctx, plan=plan)
    change = ctx.change
    approval_request = ApprovalRequest(
        call.actor, ctx.source, request.shown_statement(), ctx.judgement, ctx.verdict,
        request.database, request.schema, call.surface, call.tool, call.client,
        plan, call.reason, change.reversible, change.max_rows, change.uncounted,
        request.settings,
    )  # fmt: skip
    tried: DryRun | None = None
    if isinstance(request, ChangeRows):
        tried = await try_change(ctx)  # what cannot be made as the caller saw it, no person sees
    elif change.max_rows is not None and ctx.engine.capabilities.dry_runs:
        from tidegate.gateway.changes import check_dry_run  # where changes are limited alone

        tried = await try_change(ctx)
        check_dry_run(ctx, tried)

    async def dry_run() -> DryRun:
        return await try_change(ctx) if tried is None else tried

    ctx.stage = "waiting"
    try:
        grant = await approvals.approve(approval_request, call, dry_run, may_wait=may_wait(ctx))
    except (ApprovalNeeded, ApprovalDeclined) as error:
        _note(ctx, id=error.question.id)
        raise
    _note(ctx, id=grant, grant=grant)
    ctx.stage = ""
    if ctx.services.connections.find(call.source, call.actor, call.session).source != ctx.source:
        raise TidegateError(
            Code.POLICY_DENIED,
            "The source was changed while the call waited for a person",
            hint="Send the call again.",
        )
    _note(ctx, granted=True)


def _note(ctx: CallContext, **known: Any) -> None:
    ctx.approval = structs.replace(ctx.approval, **known)


async def _plan_of(ctx: CallContext) -> str:
    """A digest of what the change would send, where the engine knows. Raises: TidegateError for one
    that cannot be sent: no person needs to be asked about that."""
    request, engine = ctx.request, ctx.engine
    if isinstance(request, ChangeRows):
        return request.digest
    if ctx.judgement.effect is Effect.READ or not isinstance(request, Query):
        return ""
    return await engine.plan(request.statement, ctx.source) if can_plan(engine) else ""


async def release_grant(ctx: CallContext, error: TidegateError) -> None:
    """Let the person's approval count again if the call failed before the engine could run it, as
    when its intent could not be recorded or no connection was free. Raises nothing."""
    approvals = ctx.services.approvals
    grant = ctx.approval.grant
    if not grant or approvals is None:
        return
    _note(ctx, grant="")
    if ctx.sent and error.code is not Code.SOURCE_BUSY:
        state = "unknown" if error.code in OUTCOME_UNKNOWN else "failed"
        await _keep_run(ctx, grant, state, message=error.without_secrets().message)
        return
    with suppress(TidegateError):  # the state cannot be written: the person is asked again
        await approvals.give_back(grant)


async def save_refusal(ctx: CallContext, error: TidegateError) -> None:
    """Keep with a person's approval that its call came again and was refused for another reason, as
    when the source was made read-only meanwhile. Raises nothing."""
    approvals, request = ctx.services.approvals, ctx.call.request
    if (
        approvals is None
        or not error.code.value.startswith(_REFUSALS)
        or not isinstance(request, EngineRequest)
        or not request.asks_person
    ):
        return
    statement, source = request.shown_statement(), ctx.source
    if not source.engine:
        return  # the call names no source that is there
    message = error.without_secrets().message[:_MOST_MESSAGE]
    with suppress(TidegateError):  # the audit log has it; this is for the person's card
        text = language_of(source).redact(statement.text, source.dialect)
        await change_state(approvals.save_refusal, ctx.call.actor.id, source.id, text, message)


async def save_start(ctx: CallContext) -> None:
    """Keep with an approval that its call runs."""
    await _keep_run(ctx, ctx.approval.grant, "running")


async def save_outcome(ctx: CallContext) -> None:
    """Keep with an approval that its call has ended, and how. What becomes of a change in a
    transaction is kept when that ends."""
    payload = ctx.payload
    if ctx.is_held_back:
        return
    rows = (payload.affected or payload.row_count) if isinstance(payload, Page) else None
    change = payload.change if isinstance(payload, Page) else ""
    if isinstance(payload, (Undone, ChangedRows)):
        rows, change = payload.row_count, payload.change
    await _keep_run(ctx, ctx.approval.grant, "done", rows=rows, change=change)


async def _keep_run(
    ctx: CallContext,
    grant: str,
    state: Literal["running", "done", "failed", "unknown"],
    *,
    rows: int | None = None,
    message: str = "",
    change: str = "",
) -> None:
    approvals = ctx.services.approvals
    if approvals is None:
        return
    now, message = ctx.services.clock(), message[:_MOST_MESSAGE]
    run = ApprovedRun(state, now, ctx.call_id, rows, message, change)
    with suppress(TidegateError):  # the audit log has it; this is for the person's card
        await change_state(approvals.attach_run, grant, run)


async def record_new_state(ctx: CallContext, state: NewState | None) -> None:
    """Keep the state after an approved change with its approval."""
    approvals = ctx.services.approvals
    if state is None or approvals is None or not ctx.approval.grant:
        return
    with suppress(TidegateError):  # the change took effect, and its outcome is recorded elsewhere
        await approvals.attach_new_state(ctx.approval.grant, state)


async def try_change(ctx: CallContext) -> DryRun:
    """Run the change and roll it back. It is recorded like any statement. If it cannot be tried,
    the dry run says why.

    It holds whole rows, and says which columns are masked for the caller. The change itself uses
    no masked column: `mask` has refused it otherwise. Whether it uses what is hidden from operators
    is noted.
    """
    if ctx.request.names_change:
        from tidegate.gateway.undo import try_undo  # needed only for an undo

        return try_undo(ctx)
    if isinstance(ctx.rewritten, ChangeRows):
        from tidegate.gateway.row_changes import try_rows  # needed only to edit rows

        return await try_rows(ctx, ctx.rewritten)
    dry_run, rewritten = await _try_change(ctx), ctx.rewritten
    masked = rewritten.masked if isinstance(rewritten, Query) else ()
    return structs.replace(
        dry_run,
        withheld=tuple([column for _, column in masked]),
        separable_under=await separable_under(ctx),
    )


async def _try_change(ctx: CallContext) -> DryRun:
    request = ctx.request
    if ctx.judgement.effect is not Effect.WRITE or not request.has_dry_run:
        return DryRun(reason="only INSERT, UPDATE and DELETE are tried.")
    if not ctx.engine.capabilities.dry_runs:
        return DryRun(reason="this engine cannot try a change without harm.")
    request = structs.replace(request, limits=DRY_RUN_LIMITS)
    tried = ctx.for_dry_run(request)
    limiter, actor_id, cancellation = (
        ctx.connection.limiter,
        ctx.call.actor.id,
        ctx.call.cancellation,
    )
    try:
        await record_intent(tried)
        await limiter.acquire(actor_id, DRY_RUN_LIMITS.timeout_s, cancellation)
        try:
            dry_run = await ctx.engine.dry_run(tried.permit(request), cancellation)
        finally:
            limiter.release(actor_id)
        tried.payload = dry_run
        await record_outcome(tried)
    except TidegateError as error:
        shown = without_values(error) if tried.masking.withholds_words else error
        record_failure(tried, shown)
        return DryRun(reason=f"it failed: {shown.message}")
    except asyncio.CancelledError:
        record_failure(tried, TidegateError(Code.CALL_CANCELLED, "The call was cancelled"))
        raise
    return dry_run


async def answer_approval(
    services: Services, needed: ApprovalNeeded, call: Call, allow: bool
) -> None:
    """Record the answer of a person whom the caller's own client asked.

    Raises: TidegateError APPROVAL_NEEDED if such an answer does not count for this source.
    """
    source = services.connections.find(call.source, call.actor, call.session).source
    question = needed.question
    if (
        services.approvals is None
        or not needed.client_may_ask
        or source.approval != "any"
        or source.id != question.subject.source_id
    ):
        place = None if services.approvals is None else services.approvals.place
        raise TidegateError(
            Code.APPROVAL_NEEDED,
            "An answer in the caller's client does not count for this source",
            hint=place and f"The question waits in {place}. Ask the user to answer it there.",
        )
    by = f"the person at {call.client or 'the client'} of {call.actor.name}"
    await services.approvals.record_client_answer(question, call.actor.id, allow, by)
