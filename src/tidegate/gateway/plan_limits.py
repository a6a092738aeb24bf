"""The step that has the database plan a statement before it runs, where a source limits what plans
may cost, or how many rows they may go through.

The very text runs that was planned, with the caller's values and role: a plan without them can be
another one. What is only planned, such as EXPLAIN, is not limited; EXPLAIN ANALYZE, COPY of a query
and CREATE TABLE AS run what is in them.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from tidegate.engines.api import Cursor
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.judging import judge_text
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Document, Limits
from tidegate.model.statements import Effect, Statement
from tidegate.product import load
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.plan_figures import PlanFigures
from tidegate.sql.planned_text import planned_text

MOST_BYTES = 8_388_608
"""Of a plan."""
_SHORT = 2_048
_EXPLAIN = "EXPLAIN "
"""What an engine writes before the text of an `Explain`."""
_LIMITS = (("max_plan_cost", "cost", ""), ("max_plan_rows", "rows", " rows"))


async def limit_plan(ctx: CallContext) -> None:
    """Refuse a statement of which the database expects too much, or have a person asked. Raises:
    TidegateError LIMIT_PLAN, and what planning it raises."""
    request, source = ctx.rewritten, ctx.source
    if not isinstance(request, Query):
        return
    dialect = find(source.dialect)
    if dialect.plan_prefixes is None or not dialect.plan_figures:
        raise TidegateError(Code.UNSUPPORTED, "The plans of this source have no figures.")
    text = planned_text(request.statement.text, dialect)
    if text is None:
        return
    figures = await _plan(ctx, request, dialect.plan_prefixes[0], text)
    for name, figure, unit in _LIMITS:
        most, expected = getattr(source, name), getattr(figures, figure)
        if most is None or expected is None or expected <= most:
            continue
        details: dict[str, Any] = {"rule": f"source.{name}"}
        if ctx.data_rules:  # a figure would tell of what is hidden, as a plan would
            reason = "The database expects more of the statement than the source allows:"
        else:
            details["expected"] = expected
            what = f"go through {expected:,.0f} rows" if unit else f"cost {expected:,.0f}"
            reason = f"The database expects the statement to {what}, and"
        reason += f" `{name}` of the source is {most:,}"
        if source.costly_plans == "ask":
            if ctx.verdict.kind != "ask":
                ctx.verdict = Verdict("ask", f"source.{name}", reason)
            return
        raise TidegateError(Code.LIMIT_PLAN, reason, details=details)


async def _plan(ctx: CallContext, request: Query, prefix: str, text: str) -> PlanFigures:
    """What the database expects. Raises: TidegateError."""
    source, limiter = ctx.source, ctx.connection.limiter
    bounds = Limits(1_000, MOST_BYTES, request.limits.timeout_s)
    params = request.statement.params
    plan: Query | Explain
    if ctx.judgement.effect > Effect.READ and ctx.engine.capabilities.explains_changes:
        written = Statement((prefix + text).removeprefix(_EXPLAIN), params)
        plan = Explain(
            written,
            limits=bounds,
            database=request.database,
            schema=request.schema,
            settings=request.settings,
        )
    else:
        plan = structs.replace(
            request,
            statement=Statement(prefix + text, params),
            limits=bounds,
            cells="json",
            keep_rest=False,
            sink=None,
            offset=0,
            in_parts=False,
        )
    judgement = await judge_text(
        ctx, _SHORT, judge, prefix + text, source.dialect, source.functions
    )
    permit = ctx.permit_plan(plan, judgement)
    held = None if ctx.transaction is None else ctx.transaction.held
    cancellation = ctx.call.cancellation
    await limiter.acquire(ctx.call.actor.id, plan.limits.timeout_s, cancellation)
    try:
        runner = ctx.engine if held is None else held
        cells = await _read(await runner.run(permit, cancellation))
    except TidegateError as error:
        position = error.details.get("position")
        if isinstance(position, int):  # in the caller's text, where it runs as it is
            error.details["position"] = max(1, position - len(prefix))
        raise
    finally:
        limiter.release(ctx.call.actor.id)
    read = load(find(source.dialect).plan_figures)
    try:
        figures: PlanFigures = read(cells[-1])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise TidegateError(
            Code.UNSUPPORTED,
            "The database gave a plan without figures, and the source limits what plans may take.",
            hint="Ask the operator: the limits of plans do not fit this statement.",
        ) from error
    return figures


async def _read(cursor: Cursor | Document) -> list[Any]:
    """The last column of a plan."""
    if isinstance(cursor, Document):
        raise TypeError("a plan is rows")
    cells: list[Any] = []
    try:
        while rows := await cursor.fetch(1_000):
            cells += [row[-1] for row in rows]
    finally:
        await cursor.close()
    return cells
