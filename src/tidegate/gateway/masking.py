"""Rewrites a request so that masked columns, filtered rows and unlisted tables stay hidden.

The statement is rewritten before it runs, so the database itself returns masked values and leaves
filtered rows out. Rows are never masked afterwards.
"""

from __future__ import annotations

from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.judging import SHORT_TO_REWRITE, judge_text
from tidegate.gateway.metadata import check_home_database, read_catalog
from tidegate.model.requests import Browse
from tidegate.policy.data_rules import verdict_of


async def mask(ctx: CallContext) -> None:
    """Rewrite the request under the rules that hide data from the caller, if there are any.

    This comes before the database is asked for its opinion, which could tell of hidden data.
    Raises: TidegateError POLICY_MASKED, POLICY_TABLE, and what reading the catalog raises.
    """
    request, source, rules = ctx.request, ctx.source, ctx.data_rules
    if rules is None or isinstance(request, Browse):
        return
    try:
        check_home_database(ctx, rules, request.database)
        catalog, key = await read_catalog(ctx), ctx.services.masking_key()
        rewritten = await judge_text(
            ctx, SHORT_TO_REWRITE, language_of(source).rewrite, request, source, rules, catalog, key
        )
        if rewritten is None:
            raise TidegateError(
                Code.POLICY_MASKED,
                "Some of this source is hidden from this caller, and a request of the kind"
                f" {request.kind!r} cannot be limited to the rest of it",
                details={"rule": "source.masking"},
            )
    except TidegateError as refusal:
        ctx.verdict = verdict_of(refusal)
        raise
    ctx.rewritten = rewritten
