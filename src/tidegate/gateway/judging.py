"""Judges and rewrites what callers send without holding the event loop: long texts on a thread,
one of each actor at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.gateway.context import CallContext
from tidegate.judging_thread import compute, compute_on_thread
from tidegate.model.requests import EngineRequest
from tidegate.model.results import Limits

Params = ParamSpec("Params")
Result = TypeVar("Result")


def judging_limiter() -> ConcurrencyLimiter:
    """Lets each actor have one long text judged at a time."""
    return ConcurrencyLimiter(1, "being judged, which takes long for a long text")


SHORT_TO_REWRITE = 300
"""Characters of a text that may be rewritten on the event loop: each name of a table in it becomes
a query."""


async def judge_text(
    ctx: CallContext,
    short: int,
    function: Callable[Params, Result],
    *args: Params.args,
    **kwargs: Params.kwargs,
) -> Result:
    """What a function of the source's language returns for the call's text, computed on the event
    loop if that has at most `short` characters.

    Raises: TidegateError SOURCE_BUSY, CALL_CANCELLED if the text is long; what the function raises.
    """
    request, actor_id = ctx.call.request, ctx.call.actor.id
    text = request.recorded_text() or ""
    if len(text) <= short:
        return await compute(text, function, *args, **kwargs)
    limits = request.limits if isinstance(request, EngineRequest) else Limits()
    limiter = ctx.services.judging
    await limiter.acquire(actor_id, limits.timeout_s, ctx.call.cancellation)
    try:
        return await compute_on_thread(function, *args, **kwargs)
    finally:
        limiter.release(actor_id)
