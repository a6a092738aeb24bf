"""Finds out what a request would do: from its text, then from the database's own reading of it."""

from __future__ import annotations

from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.gateway.context import NO_SOURCE, CallContext
from tidegate.gateway.decision import decide
from tidegate.model.requests import Query


def classify(ctx: CallContext) -> None:
    """Judge the request: by its class if that says what it does, else by the source's language.

    Raises: TidegateError SOURCE_URL if the source's language is unknown.
    """
    request, source = ctx.call.request, ctx.source
    if request.judgement is not None:
        ctx.judgement = request.judgement
    elif source is not NO_SOURCE:
        ctx.judgement = language_of(source).classify(request, source)


async def inspect(ctx: CallContext) -> None:
    """Ask the database what the statement would do; decide again if that is more than its text
    says. The database never lowers a judgement.

    Raises: as `decide`, and what the engine raises.
    """
    request, judgement = ctx.request, ctx.judgement
    if not isinstance(request, Query):
        return
    opinion = await ctx.engine.inspect(request.statement)
    if opinion is not None and opinion.effect > judgement.effect:
        ctx.judgement = structs.replace(opinion, verb=opinion.verb or judgement.verb)
        decide(ctx)
