"""How a call joins the trace of its request, or has one of its own; needed only while a product
traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.tracing import CURRENT, OTHER, Statement, Tracer, current_trace

if TYPE_CHECKING:
    from tidegate.gateway.context import CallContext


def join_trace(ctx: CallContext, tracer: Tracer) -> None:
    """Have the call belong to the trace of the request that sends it. What came by no request, such
    as a statement of PostgreSQL's wire protocol, begins one."""
    trace = current_trace()
    if trace is None:
        trace = tracer.begin_call(ctx.call.surface, ctx.call.request.kind)
        CURRENT.set(trace)
        ctx.begins_trace = True
    trace.note_call(ctx.call_id)
    ctx.trace = trace


def leave_trace(ctx: CallContext) -> None:
    """End the trace that the call has begun."""
    if ctx.trace is not None:
        CURRENT.set(None)  # not `reset`, which fails for a call that another task ends
        ctx.trace.end_call()


def begin_statement(ctx: CallContext, operation: str = "") -> None:
    """Note that the database begins to do this, or else what the call asks for."""
    if ctx.trace is not None:
        operation = operation or ctx.judgement.verb or ctx.rewritten.kind
        source = ctx.source
        name = OTHER if source.temporary else source.name  # its caller has named it
        ctx.statement_trace = ctx.trace.begin_statement(
            Statement(ctx.call_id, name, source.dialect, operation)
        )


def end_statement(ctx: CallContext, error: BaseException | None = None) -> None:
    """Note that the database has ended, with this error."""
    if ctx.statement_trace is not None:
        ctx.statement_trace.end(error)
        ctx.statement_trace = None
