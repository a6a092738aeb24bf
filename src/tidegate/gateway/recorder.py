"""Records a call: its intent, then its outcome or its refusal, and its place in the history.

What could change data is on record before it runs. A read is on record before its reply leaves;
if it cannot be recorded, there is no reply. Where the operator tolerates missing records
(`audit.failure_mode`) the call goes on, and the log counts what is missing.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from tidegate.audit.activity_reading import UNLISTED
from tidegate.audit.event import Event
from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import NO_SOURCE, UNDECIDED, UNJUDGED, CallContext
from tidegate.gateway.open_transactions import Change
from tidegate.model.language import Language
from tidegate.model.replies import HistoryEntry, RecordedPayload
from tidegate.model.requests import JoinedRead, Query, ReadRows, Request, Sample
from tidegate.model.results import Page
from tidegate.model.row_changes import ChangedRows, ChangeRows
from tidegate.model.sources import Source
from tidegate.model.statements import Effect


async def record_intent(ctx: CallContext) -> None:
    """Record that the call may run, and wait until that is durable if it could change data, or
    sends something to a third party.

    A read needs an intent only while the log fails, because its outcome could then not be recorded,
    and where rows are sent before there is an outcome.
    Raises: TidegateError AUDIT_UNAVAILABLE, and then the call must not run.
    """
    audit = ctx.services.audit
    if ctx.judgement.effect > Effect.READ or ctx.call.request.recorded_first:
        if ctx.call.waiter is not None and ctx.may_change and not ctx.dry_run:
            await ctx.call.waiter.note_change()
        try:
            await audit.durable(audit.append(_event(ctx, "intent"), awaited=True))
        except TidegateError as error:
            _tolerate_missing(ctx, error, changes=True)
    elif _streams(ctx.call.request) or (audit.failing and not audit.tolerates(changes=False)):
        audit.append(_event(ctx, "intent"))
    ctx.intent_recorded = True


def _streams(request: Request) -> bool:
    """Whether rows leave before the call has its outcome."""
    return isinstance(request, Query) and request.sink is not None and request.sink.writer is None


async def record_outcome(ctx: CallContext) -> None:
    """Record that the call succeeded, and wait until that is durable if data may have changed. What
    becomes of a change in a transaction is recorded when that ends.

    Raises: TidegateError AUDIT_UNAVAILABLE for a read, and then the reply must not leave;
    AUDIT_OUTCOME for what may have changed data: it ran, and its record follows.
    """
    payload = ctx.payload
    elapsed_ms = payload.elapsed_ms if isinstance(payload, Page) else ctx.elapsed_ms
    event = _event(ctx, "outcome", elapsed_ms, payload)
    _show(ctx, event)
    transaction = ctx.transaction
    if ctx.is_held_back and transaction is not None:
        entry = _history_entry(ctx, event.rows or 0, event.elapsed_ms or 0.0)
        language = ctx.language or _language_of(ctx.source)
        unkept, required = kept_with(ctx)
        transaction.keep(
            Change(
                *(event, entry, language, ctx.change.rows_counted),
                unkept=unkept,
                required=required,
                grant=ctx.approval.grant,
            )
        )
        return
    audit = ctx.services.audit
    try:
        changes = ctx.judgement.effect > Effect.READ
        sequence = audit.append(event, awaited=changes)
        if changes:
            await audit.durable(sequence)
    except TidegateError as error:
        if not ctx.may_change or audit.tolerates(changes=True):
            _tolerate_missing(ctx, error, changes=ctx.may_change)
        else:
            audit.append_later(event)
            raise _unrecorded("The call ran", error) from error


def _show(ctx: CallContext, event: Event) -> None:
    """Have the observers take note of how a call ended, unless it is a part of another one."""
    observers = ctx.services.observers
    if observers and event.request not in UNLISTED:
        for observe in observers:
            observe(event)


def kept_with(ctx: CallContext) -> tuple[str, str]:
    """Why the rows of a change in a transaction cannot be put back, and why they must be; empty if
    they can, and need not."""
    keeper, reversible = ctx.change.keeper, ctx.change.reversible
    if keeper is not None:
        return keeper.reason, keeper.required
    return "" if reversible is None or reversible.possible else reversible.reason, ""


def record_failure(ctx: CallContext, error: TidegateError) -> None:
    """Record a refusal or, if the call was permitted, how it failed.

    Raises: TidegateError AUDIT_UNAVAILABLE or, if the call may have changed data, AUDIT_OUTCOME;
    that is then the answer.
    """
    ran = ctx.intent_recorded
    if error.code is Code.AUDIT_OUTCOME:
        return  # its event follows when the log can be written
    event = _event(ctx, "outcome" if ran else "refusal", ctx.elapsed_ms, error=error)
    _show(ctx, event)
    audit = ctx.services.audit
    changes = ran and ctx.may_change
    try:
        audit.append(event)
    except TidegateError as fault:
        # A call that was refused has changed nothing.
        if not changes or audit.tolerates(changes=True):
            _tolerate_missing(ctx, fault, changes=changes)
        else:
            audit.append_later(event)
            raise _unrecorded(f"The call ended with {error.code.value}", fault) from error
    if ran:
        _add_to_history(ctx, 0, ctx.elapsed_ms, error.message)


def _tolerate_missing(ctx: CallContext, error: TidegateError, *, changes: bool) -> None:
    """Count an event that could not be written. Raises: `error`, if that is not tolerated."""
    if not ctx.services.audit.tolerates(changes=changes):
        raise error
    ctx.services.audit.count_missed()


def _unrecorded(what: str, fault: TidegateError) -> TidegateError:
    return TidegateError(
        Code.AUDIT_OUTCOME, f"{what}, and the audit log could not record it. {fault.message}"
    )


def _event(
    ctx: CallContext,
    phase: Literal["intent", "outcome", "refusal"],
    elapsed_ms: float | None = None,
    payload: Any = None,
    error: TidegateError | None = None,
) -> Event:
    """`payload` is the answer of a call that succeeded, `error` that of another one."""
    call, source, judgement, verdict = ctx.call, ctx.source, ctx.judgement, ctx.verdict
    request = call.request
    statement = request.recorded_text()
    arguments = request.recorded_arguments()
    rows = size = None
    truncated = ""
    if isinstance(payload, Page):
        rows = payload.row_count or payload.affected
        size = len(payload.rows) if payload.size is None else payload.size
        if payload.truncations:
            truncated = ",".join(dict.fromkeys([each.kind for each in payload.truncations]))
    elif payload is not None:
        rows = _rows_of(payload)
        if isinstance(payload, RecordedPayload):
            arguments = {**(arguments or {}), **payload.recorded_arguments()}
    return Event(
        call_id=ctx.call_id,
        phase=phase,
        actor=call.actor.id,
        actor_name=call.actor.name,
        client=call.client,
        address=call.address,
        surface=call.surface,
        tool=call.tool,
        source=source.name or call.source or "",
        request="dry_run" if ctx.dry_run else request.kind,
        effect=judgement.effect.label if judgement is not UNJUDGED else "",
        verdict=verdict.kind if verdict is not UNDECIDED else "",
        rule=_rule_of(ctx, error),
        code="" if error is None else error.code.value,
        statement=statement,
        language=None if statement is None else ctx.language or _language_of(source),
        dialect=source.dialect,
        rows=rows,
        bytes=size,
        elapsed_ms=elapsed_ms,
        error="" if error is None else error.message,
        approval=ctx.approval.id,
        statement_class=judgement.verb,
        arguments=arguments,
        outside_transaction=judgement.outside_transaction,
        on_behalf_of=call.on_behalf_of,
        transaction=call.transaction if ctx.transaction is None else ctx.transaction.id,
        truncated=truncated,
        trace_id="" if ctx.trace is None else ctx.trace.trace_id,
    )


def _rule_of(ctx: CallContext, error: TidegateError | None) -> str:
    """The rule that decided, or the budget that ended the call."""
    if error is not None and error.code is Code.LIMIT_BUDGET:
        return str(error.details["rule"])
    return ctx.verdict.rule if ctx.verdict is not UNDECIDED else ""


def _language_of(source: Source) -> Language | None:
    """The language that redacts the texts for `source`; None if that is unknown."""
    if source is NO_SOURCE:
        return None
    try:
        return language_of(source)
    except TidegateError:  # of an unknown engine, for which the call was refused
        return None


def _rows_of(payload: Any) -> int | None:
    """How many entries a reply that is no page has; None if it does not say."""
    if isinstance(payload, tuple):
        return len(cast("tuple[object, ...]", payload))
    return getattr(payload, "row_count", None)


def add_to_history(ctx: CallContext) -> None:
    """Add a statement that ran to the history; a change in a transaction when that has ended."""
    payload = ctx.payload
    if isinstance(payload, Page) and not ctx.is_held_back:
        _add_to_history(ctx, payload.row_count or payload.affected, payload.elapsed_ms)
    elif isinstance(payload, ChangedRows):
        _add_to_history(ctx, payload.row_count, ctx.elapsed_ms)


def _add_to_history(ctx: CallContext, rows: int, elapsed_ms: float, error: str = "") -> None:
    """`error` says how the statement failed."""
    entry = _history_entry(ctx, rows, elapsed_ms, error)
    if entry is not None:
        ctx.services.history.add((entry, ctx.language or _language_of(ctx.source)))


def _history_entry(
    ctx: CallContext, rows: int, elapsed_ms: float, error: str = ""
) -> HistoryEntry | None:
    call, source = ctx.call, ctx.source
    request = call.request
    if ctx.dry_run or not isinstance(request, (Query, ChangeRows)):
        return None
    if isinstance(request, (JoinedRead, ReadRows, Sample)):
        return None
    return HistoryEntry(
        text=request.shown_statement().text,
        source=source.name,
        at=ctx.started_at,
        actor=call.actor.id,
        surface=call.surface,
        tool=call.tool,
        database=request.database or ctx.database,
        dialect=source.dialect,
        elapsed_ms=elapsed_ms,
        row_count=rows,
        success=not error,
        error=error,
    )
