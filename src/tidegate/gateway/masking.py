"""Rewrites a request so that masked columns, filtered rows and unlisted tables stay hidden.

The statement is rewritten before it runs, so the database itself returns masked values and leaves
filtered rows out. Rows are never masked afterwards.
"""

from __future__ import annotations

import hmac

from msgspec import structs

from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import as_trusted
from tidegate.gateway.judging import SHORT_TO_REWRITE, judge_text
from tidegate.gateway.metadata import check_home_database, read_catalog
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Browse, EngineRequest, Explain, Prepare, Query
from tidegate.model.schema import Catalog
from tidegate.model.server_requests import ServerRequest
from tidegate.model.statements import Administration, Effect
from tidegate.model.transactions import TransactionRequest
from tidegate.policy.data_rules import digest_of, rules_for_people, verdict_of
from tidegate.policy.quoted_rows import may_quote_others
from tidegate.sql.session_texts import hide_session_texts, names_sessions

_MEANING = frozenset({"TimeZone", "DateStyle", "search_path"})
"""Settings by which a condition may mean something else."""
_SAID = frozenset(
    {
        Code.SQL_FAILED,
        Code.POLICY_READ_ONLY,
        Code.ARGUMENT_INVALID,
        Code.SOURCE_BUSY,
        Code.SOURCE_UNREACHABLE,
        Code.SQL_TOO_DEEP,
        Code.SQL_TOO_LONG,
        Code.SQL_EMPTY,
        Code.CALL_CANCELLED,
        Code.LIMIT_TIME,
    }
)
"""Codes of errors whose words may be the database's: a trigger chooses its SQLSTATE, too."""
_PART = 16
"""Characters of a key. Each is one of sixteen."""


def source_key(secret: str, source: str) -> str:
    """The key of the hashes of one source, by its name. A server that logs bound values learns this
    key and nothing of the secret or of other sources."""
    return hmac.digest(secret.encode(), f"mask:{source}".encode(), "sha256").hex()


async def mask(ctx: CallContext) -> None:
    """Rewrite the request under the rules that hide data from the caller, if there are any, and
    judge what was rewritten.

    This comes before the database is asked for its opinion, which could tell of hidden data.
    Raises: TidegateError POLICY_MASKED, POLICY_TABLE, and what reading the catalog raises.
    """
    request, rules = ctx.request, ctx.data_rules
    if rules is None or isinstance(request, (Browse, TransactionRequest, ServerRequest)):
        return  # `server_state.check_server_request` has seen to the last
    if request.names_change:
        return  # `undo.load_change` sees to it
    if ctx.judgement.administration is not None:
        _check_administration(ctx, rules, ctx.judgement.administration)
        return
    checked_later = (
        ctx.engine.capabilities.checks_schema
        and not isinstance(request, Prepare)
        and request.database is None
        and ctx.judgement.effect is Effect.READ
        and ctx.transaction is None
    )
    try:
        check_home_database(ctx, rules, request.database)
        catalog = await read_catalog(ctx, checked_later=checked_later)
        try:
            rewritten = await _rewritten(ctx, rules, catalog)
        except TidegateError:
            if not checked_later:
                raise
            checked_later = False  # the refusal may be due to a catalog that has changed
            catalog = await read_catalog(ctx)
            rewritten = await _rewritten(ctx, rules, catalog)
        if request.settings and _text(rewritten) != _text(request):
            _check_session(ctx, rules, catalog)
    except TidegateError as refusal:
        ctx.verdict = verdict_of(refusal)
        raise
    ctx.rewritten = rewritten
    if ctx.judgement.effect is not Effect.READ:
        masked = isinstance(rewritten, Query) and bool(rewritten.masked)
        withholds = masked or may_quote_others(ctx.judgement.tables, catalog)
        ctx.masking = structs.replace(ctx.masking, withholds_words=withholds)
    version = catalog.version if checked_later else None
    ctx.masking = structs.replace(ctx.masking, schema_version=version)
    if isinstance(rewritten, (Query, Explain, Prepare)):
        await _judge_rewritten(ctx, rewritten)


async def hide_sessions(ctx: CallContext) -> None:
    """Rewrite a statement that reads a view of the database's sessions, for every caller, so that
    it shows no statement of another one. Raises: TidegateError POLICY_DENIED."""
    request = ctx.rewritten
    if not isinstance(request, (Query, Explain, Prepare)) or request.names_change:
        return
    statement, dialect = request.statement, ctx.source.dialect
    if not names_sessions(statement.text, dialect):
        return
    text = await judge_text(
        *(ctx, SHORT_TO_REWRITE, hide_session_texts, statement.text, dialect),
        plan=isinstance(request, Explain),
    )
    if text == statement.text:
        return
    hidden = structs.replace(request, statement=structs.replace(statement, text=text))
    ctx.rewritten = hidden
    await _judge_rewritten(ctx, hidden)


async def _judge_rewritten(ctx: CallContext, request: Query | Explain | Prepare) -> None:
    """Judge the text that runs, unless that was done."""
    text = request.statement.text
    if text != ctx.judged_text:
        classify = language_of(ctx.source).classify
        source = as_trusted(ctx)
        ctx.text_judgement = await judge_text(ctx, SHORT_TO_REWRITE, classify, request, source)
        ctx.judged_text = text


def _text(request: EngineRequest) -> str:
    return request.statement.text if isinstance(request, (Query, Explain, Prepare)) else ""


def _check_session(ctx: CallContext, rules: DataRules, catalog: Catalog) -> None:
    """Refuse what hides less or more by the settings of the caller's session. Raises: TidegateError
    POLICY_MASKED."""
    if not any(name in _MEANING for name, _ in ctx.request.settings):
        return
    table = language_of(ctx.source).bound_to_session(catalog, ctx.source, rules)
    if table is not None:
        raise masking_refused(
            f"What is hidden of `{table}` from this caller depends on the time zone, the order of"
            " dates or the search path, and those of this session are not the source's own",
            "masking.session",
            "Send SET TIME ZONE 'UTC', SET DateStyle = 'ISO, MDY' and RESET search_path before it;"
            " Java takes -Duser.timezone=UTC.",
        )


def _check_administration(
    ctx: CallContext, rules: DataRules, administration: Administration
) -> None:
    """Let pass what administers the database and cannot show data, unless the caller has a list of
    tables. Nothing is rewritten in it. Raises: TidegateError POLICY_MASKED."""
    if not administration.shows and rules.only is None:
        return
    refusal = masking_refused(
        "Some of this source is hidden from this caller, and the statement could show it, now or"
        " by a right or code that it makes",
        "source.masking",
        "Ask the operator to run it, or use a token from which nothing is hidden.",
    )
    ctx.verdict = verdict_of(refusal)
    raise refusal


async def _rewritten(ctx: CallContext, rules: DataRules, catalog: Catalog) -> EngineRequest:
    """The request under the rules. Raises: TidegateError POLICY_MASKED, POLICY_TABLE."""
    request, source, key = ctx.request, ctx.source, ctx.services.masking_key(ctx.source.name)
    if rules.only is not None and ctx.joined:
        # Tables of other sources were admitted by the lists for these sources.
        elsewhere = [each.shown for each in ctx.joined if len(each.names) == 2]
        rules = structs.replace(rules, only=(*rules.only, *elsewhere))
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
    return rewritten


async def separable_under(ctx: CallContext) -> str:
    """A digest of the rules that hide something from operators, if a change touches nothing of it;
    else empty. The change is not rewritten: the rules of the caller hold for what runs."""
    rules = rules_for_people(ctx.source)
    if rules is not None:
        try:
            check_home_database(ctx, rules, ctx.request.database)
            await _rewritten(ctx, rules, await read_catalog(ctx))
        except TidegateError:
            return ""
    return digest_of(rules)


def without_values(error: TidegateError) -> TidegateError:
    """The error of a change that could touch what is hidden, without the database's words: they can
    quote the row that it refused, and a trigger can quote any."""
    is_own = error.code is not Code.SQL_FAILED and "sqlstate" not in error.details
    if error.code not in _SAID or is_own:
        return error
    return _without_words(
        error,
        "change",
        "what is hidden from this caller",
        "Check the constraints of the table and the values of the change.",
    )


def without_key(error: TidegateError, key: str) -> TidegateError:
    """The error of a statement that was given the key of hashes, without the database's words if
    they quote a part of the key. `_PART` is longer than what a caller could find by trying."""
    said = f"{error.message} {error.hint} {error.details}"
    if not any(key[at : at + _PART] in said for at in range(len(key) - _PART + 1)):
        return error
    return _without_words(
        error,
        "statement",
        "what hides a column",
        "Compute with columns that are not hidden.",
    )


def _without_words(error: TidegateError, refused: str, quoted: str, hint: str) -> TidegateError:
    state = error.details.get("sqlstate")
    reason = f" (SQLSTATE {state})" if state else ""
    return TidegateError(
        error.code,
        f"The database refused the {refused}{reason}. Its message is left out, because it could"
        f" quote {quoted}",
        hint=hint,
        details={name: error.details[name] for name in ("sqlstate",) if name in error.details},
    )
