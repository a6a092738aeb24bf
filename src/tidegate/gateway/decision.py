"""Finds out what a request would do, and what the policy says to it.

A statement that was allowed is looked up when its text comes again: see `Decision`.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from tidegate.engines.registry import compares_rows, language_of
from tidegate.engines.registry import find as find_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import NO_SOURCE, CallContext
from tidegate.gateway.judging import judge_text
from tidegate.judging_thread import SHORT
from tidegate.model.actors import Actor
from tidegate.model.data_rules import DataRules
from tidegate.model.decisions import Verdict
from tidegate.model.language import Language
from tidegate.model.requests import EngineRequest, Explain, Prepare, Query
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.data_rules import hides_something, rules_for
from tidegate.policy.run_as import resolve_run_as
from tidegate.policy.verdict import evaluate
from tidegate.sql.dialects import find
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.judge import judge
from tidegate.sql.language import SqlLanguage
from tidegate.sql.tree_checks import is_secret

BY_PERSON = Verdict(
    "ask", "surface.confirm", "This surface has a person confirm each query, by its settings"
)
"""The verdict on a call `by_person` that would be allowed."""

MAX_KEPT = 1_024
"""Decisions that a connection keeps."""
MAX_KEPT_CHARS = 4_096
"""Characters of the longest statement whose decision is kept."""


class Decision(NamedTuple):
    """What was found out about a statement that was allowed, kept by its connection.

    The key holds all that the judge and the rules read. The connection identifies the source:
    a source whose settings change gets another connection. The rest is the text, the actor, what
    the tool demands, and the two flags of the call. Actors and scopes are frozen and compared by
    identity; the entry keeps the actor, so that no other can take its place in memory. A read in
    SQL is kept under its fingerprint as well, for those that differ in plain values.
    """

    actor: Actor
    language: Language | None
    judgement: Judgement
    verdict: Verdict
    identity: Identity | None
    data_rules: DataRules | None


async def decide(ctx: CallContext) -> None:
    """Judge the request and get the verdict. The call goes on if it is allow or ask.

    Raises: as `classify`, `apply_policy` and `bind_caller`.
    """
    call, key = ctx.call, None
    request = call.request
    if type(request) is Query and ctx.source is not NO_SOURCE:
        text, actor = request.statement.text, call.actor
        key = (text, id(actor), id(call.scope), call.confirmed, call.reads_only)
        connection = ctx.connection
        kept = connection.decisions.get(key)
        if kept is None and len(text) <= SHORT and connection.decisions_alike:
            kept = connection.decisions_alike.get((fingerprint(text), *key[1:]))
        if kept is not None:
            _, ctx.language, ctx.judgement, ctx.verdict, ctx.identity, ctx.data_rules = kept
            ctx.text_judgement, ctx.judged_text = ctx.judgement, text
            if request.schema or request.database:
                _check_place(ctx)
            return
    await classify(ctx)
    if ctx.judgement.functions and _tells_of_session(ctx):
        key = None  # whether it may run depends on the call's transaction
    apply_policy(ctx)
    _check_place(ctx)
    if isinstance(request, EngineRequest) and ctx.source is not NO_SOURCE:
        bind_caller(ctx)
        if key is not None and ctx.verdict.kind == "allow" and len(key[0]) <= MAX_KEPT_CHARS:
            decisions, alike_ones = ctx.connection.decisions, ctx.connection.decisions_alike
            if len(decisions) >= MAX_KEPT:
                decisions.clear()
                alike_ones.clear()
            kept = Decision(
                *(call.actor, ctx.language, ctx.judgement, ctx.verdict),
                *(ctx.identity, ctx.data_rules),
            )
            decisions[key] = kept
            alike = _alike(ctx, key[0])
            if alike is not None:
                alike_ones[alike, *key[1:]] = kept


def _alike(ctx: CallContext, text: str) -> str | None:
    """The fingerprint of a read, if SQL with other plain values is judged the same; else None."""
    if len(text) > SHORT or ctx.judgement.effect is not Effect.READ:
        return None
    language = type(ctx.language)
    if getattr(language, "classify", None) is not SqlLanguage.classify:  # it may read values
        return None
    alike = fingerprint(text)
    if alike == text:
        return None
    source = as_trusted(ctx)
    same = judge(alike, source.dialect, source.functions) == ctx.judgement
    return alike if same else None


def confirm_by_person(ctx: CallContext) -> None:
    """Have a person asked about what would be allowed, as the surface wants it."""
    if ctx.verdict.kind == "allow":
        ctx.verdict = BY_PERSON


def _check_place(ctx: CallContext) -> None:
    """Refuse names without a schema that are the server's own in the schema, or the database, where
    the call has the statement run. Raises: TidegateError POLICY_DENIED."""
    request = ctx.call.request
    if not isinstance(request, (Query, Explain, Prepare)) or not ctx.judgement.tables:
        return
    place = request.schema or request.database
    if not place:
        return
    dialect = find(ctx.source.dialect)
    for table in ctx.judgement.tables:
        if "." not in table and is_secret((place, table), dialect):
            raise TidegateError(
                Code.POLICY_DENIED,
                f"{table} in `{place}` holds secrets or the server's internal state",
                hint="Read the tables of the application.",
                details={"rule": "table.secret", "effect": ctx.judgement.effect.label},
            )


def _tells_of_session(ctx: CallContext) -> bool:
    """Whether the statement asks what its session did last. Raises: TidegateError SQL_FUNCTION
    outside a transaction, where that may be another caller's session."""
    state = find(ctx.source.dialect).session_state
    found = [name for name in ctx.judgement.functions if name in state]
    if found and not ctx.call.transaction and isinstance(ctx.call.request, Query):
        raise TidegateError(
            Code.SQL_FUNCTION,
            f"{found[0]} tells what the session did last, and each statement may have another"
            " session, which other callers use too.",
            hint="Use RETURNING in the change itself, or ask in the same transaction block.",
            details={"rule": f"function.{found[0]}"},
        )
    return bool(found)


async def classify(ctx: CallContext) -> None:
    """Judge the request: by its class if that says what it does, else by the source's language.

    Raises: TidegateError SOURCE_URL if the source's language is unknown.
    """
    request, source = ctx.call.request, ctx.source
    if request.judgement is not None:
        ctx.judgement = request.judgement
    elif source is not NO_SOURCE:
        ctx.language = language_of(source)
        ctx.judgement = with_setting(
            ctx, await judge_text(ctx, SHORT, ctx.language.classify, request, as_trusted(ctx))
        )
        if isinstance(request, (Query, Explain, Prepare)):
            ctx.judged_text = request.statement.text
    ctx.text_judgement = ctx.judgement


def as_trusted(ctx: CallContext) -> Source:
    """The source as the caller's statements are judged by it: functions of users may read anything,
    and so none is called for a caller from whom something is hidden."""
    source = ctx.source
    if source.functions and hides_something(ctx.call.actor, source):
        return structs.replace(source, functions=())
    return source


def with_setting(ctx: CallContext, judgement: Judgement) -> Judgement:
    """The judgement; one that refuses a function says which setting could allow it."""
    source = ctx.source
    if judgement.code != Code.SQL_FUNCTION.value or judgement.own or not source.engine:
        return judgement
    if judgement.rule.startswith("show."):  # SHOW WARNINGS, which no one wrote
        return judgement
    dialect, name = find(source.dialect), judgement.rule.removeprefix("function.")
    if name in dialect.statement_state or name in dialect.session_state:
        return judgement
    if not find_engine(source.url).own_functions:
        return judgement
    if hides_something(ctx.call.actor, source):
        more = (
            "Functions that users of the database wrote are refused to callers from whom something"
            " of the source is hidden."
        )
    else:
        more = (
            "If a user of the database wrote it, the operator can allow it for reads: `functions`"
            " of the source names such functions as schema.name."
        )
    return structs.replace(judgement, hint=f"{judgement.hint or ''} {more}".strip())


def as_read(judgement: Judgement, opinion: Judgement) -> Judgement:
    """The database's opinion; where a trusted function changes something, the refusal of it, also
    for a caller that may change data: the setting is about reads."""
    if not judgement.own or opinion.effect in (Effect.READ, Effect.UNKNOWN):
        return opinion
    return structs.replace(
        opinion,
        effect=Effect.UNKNOWN,
        reason=f"{judgement.own[0]} changes data, and functions of users are for reads.",
        code=Code.SQL_FUNCTION.value,
        hint="Leave it out; send the change itself as a statement.",
        own=judgement.own,
    )


def apply_policy(ctx: CallContext) -> None:
    """Get the verdict of the policy on the judgement.

    A call about several sources has no verdict: each of its sources was checked when they were
    found, and it may read metadata only.
    Raises: TidegateError with the code and the rule of a verdict that is neither allow nor ask.
    """
    judgement = ctx.judgement
    if ctx.source is NO_SOURCE:
        if judgement.metadata:
            return
        raise TidegateError(
            Code.POLICY_DENIED, "The call names no source", hint="Name one source in the call."
        )
    call = ctx.call
    confirms = call.confirmed and judgement.touches and ctx.source.unqualified == "confirm"
    if confirms or (judgement.open_ended and not compares_rows(ctx.source)):
        # Whether it changes every row is known when it has run: a caller that confirms allows it.
        # Where that is never known, a text that leaves it open counts as one that does.
        ctx.judgement = judgement = structs.replace(judgement, unqualified=True)
    ctx.verdict = verdict = evaluate(
        call.actor,
        ctx.source,
        call.scope,
        judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
        statements=(
            None if judgement.effect is Effect.READ else ctx.services.statement_rules(ctx.source)
        ),
    )
    if verdict.kind in ("deny", "confirm"):
        raise TidegateError(
            Code(verdict.code) if verdict.code else Code.POLICY_DENIED,
            verdict.reason,
            hint=verdict.hint,
            details={"rule": verdict.rule, "effect": judgement.effect.label},
        )


def bind_caller(ctx: CallContext) -> None:
    """Find out who the caller is to the database, and what is hidden from it.

    Raises: TidegateError POLICY_IDENTITY, POLICY_MASKED.
    """
    ctx.identity = resolve_run_as(ctx.call.actor, ctx.source)
    ctx.data_rules = rules_for(ctx.call.actor, ctx.source, ctx.language or language_of(ctx.source))


async def inspect(ctx: CallContext) -> None:
    """Ask the database what the statement would do; decide again if that is more than its text
    says. The database never lowers a judgement.

    Raises: as `apply_policy`, and what the engine raises.
    """
    request, judgement = ctx.request, ctx.judgement
    if not isinstance(request, (Query, Prepare)):
        return
    opinion = await ctx.engine.inspect(request.statement, judgement, request.limits.timeout_s)
    if opinion is not None and opinion.effect > judgement.effect:
        opinion = structs.replace(opinion, verb=opinion.verb or judgement.verb)
        ctx.judgement = with_setting(ctx, as_read(judgement, opinion))
        apply_policy(ctx)
