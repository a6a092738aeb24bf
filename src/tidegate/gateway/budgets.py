"""The steps by which a call costs budgets: it holds what it may use before it runs, and pays what
it used when it has ended, however that was.

A result that reaches a budget is cut there, and says so. Dry runs, samples and the catalog, which
the gate reads for itself, cost nothing (`Request.costs`).
"""

from __future__ import annotations

import time
from typing import Any, NoReturn

from msgspec import structs

from tidegate.budgets.ledger import BudgetLedger
from tidegate.budgets.spending import Spending
from tidegate.budgets.words import note, refusal
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.model.budgets import Measure
from tidegate.model.decisions import Verdict
from tidegate.model.requests import EngineRequest, FetchMore, Query
from tidegate.model.results import Document, Limits, Page, Truncation
from tidegate.model.statements import Effect

_REACHED: dict[Code, Measure] = {Code.LIMIT_TIME: "seconds", Code.LIMIT_BYTES: "bytes"}
"""What ends a call at a limit that was lowered to what a budget has left."""


def reserve(ctx: CallContext) -> Any:
    """Hold what the call may use of its budgets. Raises: TidegateError LIMIT_BUDGET, and then the
    call must not run; CALL_CANCELLED, STATE_FAILED."""
    budgets = ctx.services.budgets
    if budgets is None or ctx.joins is not None:
        return None  # what is read for it comes first, as calls of their own
    account = budgets.find(ctx.call.actor, ctx.source.name)
    if account is not None:
        if not account.meters:
            return None
        request = ctx.call.request
        if type(request) is Query and request.sink is None:
            limits, streams = ctx.rewritten.limits, False  # nearly every call
        else:
            limits, streams = _limits(ctx), _streams(ctx)
        spending = account.hold_now(limits, ctx.started_at, streams)
        if spending is not None:
            ctx.spending = spending
            return None
    return _reserve_late(ctx, budgets)


def reserve_joined(ctx: CallContext) -> Any:
    """As `reserve`, for a statement whose tables of other sources were read. Raises: as that."""
    budgets = ctx.services.budgets
    if budgets is None:
        return None
    account = budgets.find(ctx.call.actor, ctx.source.name)
    return None if account is not None and not account.meters else _reserve_late(ctx, budgets)


async def _reserve_late(ctx: CallContext, budgets: BudgetLedger) -> None:
    call, limits = ctx.call, _limits(ctx)
    try:
        ctx.spending = spending = await budgets.hold(
            call.actor, ctx.source.name, limits, call.cancellation, streams=_streams(ctx)
        )
    except TidegateError as error:
        if error.code is Code.LIMIT_BUDGET:
            rule, reason = error.details["rule"], error.message
            ctx.verdict = Verdict("deny", rule, reason, error.code.value, error.hint)
        raise
    if spending is not None and spending.tight and isinstance(call.request, EngineRequest):
        tight = spending.limits(limits, streams=_streams(ctx))
        plain = ctx.rewritten is ctx.request
        ctx.request = structs.replace(ctx.request, limits=tight)
        ctx.rewritten = ctx.request if plain else structs.replace(ctx.rewritten, limits=tight)


async def check_budgets(ctx: CallContext) -> None:
    """Refuse a call that has no budget left before a person is asked to approve it. Raises: as
    `reserve`."""
    waiting = reserve_joined(ctx)
    if waiting is not None:
        await waiting
    if ctx.spending is not None:
        ctx.spending.settle(0, 0, 0, 0.0)
        ctx.spending = None


def pay(ctx: CallContext) -> None:
    """Pay for a call that was answered; the answer says what is left, if that is little."""
    spending, payload = ctx.spending, ctx.payload
    if spending is None:
        return
    ctx.spending = None
    if isinstance(payload, Page):
        seconds = payload.elapsed_ms / 1_000 or _seconds(ctx)
        stream = spending.stream
        if stream is not None:
            rows, size = stream.rows_used, stream.bytes_used
        else:
            rows = payload.row_count
            size = len(payload.rows) if rows else 0
            if spending.tight:
                ctx.payload = payload = _marked(payload, spending)
        if spending.settle(1, rows, size, seconds):
            ctx.payload = structs.replace(payload, budget=note(spending.meters))
    elif isinstance(payload, Document):
        if spending.settle(1, payload.items or 0, len(payload.json), _seconds(ctx)):
            ctx.payload = structs.replace(payload, budget=note(spending.meters))
    else:
        spending.settle(1, 0, 0, _seconds(ctx))


def pay_failed(ctx: CallContext) -> None:
    """Pay for a call that was not answered: for what it used, if it ran."""
    spending = ctx.spending
    if spending is None:
        return
    ctx.spending = None
    if not ctx.run_began:
        spending.settle(0, 0, 0, 0.0)
        return
    seconds, stream = _seconds(ctx), spending.stream
    rows, size = (0, 0) if stream is None else (stream.rows_used, stream.bytes_used)
    spending.settle(1, rows, size, seconds)


def raise_reached(ctx: CallContext, error: TidegateError) -> NoReturn:
    """Raise what a limit that was lowered to a budget means; any other error as it is."""
    spending, measure = ctx.spending, _REACHED.get(error.code)
    if spending is None or not spending.tight or measure is None:
        raise error
    meter = spending.tight.get(measure)
    if meter is None or ctx.judgement.effect is not Effect.READ:
        raise error  # what became of a change matters more
    raise refusal(meter, ctx.services.clock(), cut=True) from error


def _marked(page: Page, spending: Spending) -> Page:
    """The page; where a budget and no other limit has cut it, it says so."""
    tight = spending.limits(Limits(2**62, 2**62, 2**31))
    cuts = [
        Truncation("budget", cut.limit if cut.kind == "rows" else cut.returned, page.row_count)
        if (cut.kind, cut.limit) in (("rows", tight.max_rows), ("bytes", tight.max_bytes))
        else cut
        for cut in page.truncations
    ]
    return structs.replace(page, truncations=tuple(cuts)) if cuts else page


def _limits(ctx: CallContext) -> Limits:
    request = ctx.call.request
    if type(request) is FetchMore:
        return Limits(max_rows=request.max_rows)
    return ctx.rewritten.limits


def _seconds(ctx: CallContext) -> float:
    """How long the call has run; 0 if it did not."""
    return time.perf_counter() - ctx.run_began if ctx.run_began else 0.0


def _streams(ctx: CallContext) -> bool:
    request = ctx.call.request
    return isinstance(request, Query) and request.sink is not None
