"""What holds for a change before it runs: how many rows it may be about, and whether its rows are
kept so that they can be put back.

Only sources and callers with such a setting come here.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec import structs

from tidegate.engines.api import can_count, can_undo
from tidegate.engines.common.row_images import too_many_rows
from tidegate.engines.common.row_statements import forms_of
from tidegate.engines.common.undo_rows import too_large
from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.open_transactions import OpenTransaction
from tidegate.history.undo_log import UndoEntry, UndoLog, not_kept
from tidegate.model.changes import ChangeEntry, Reversibility, UndoChange
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Browse, Explain, Prepare, Query, Request
from tidegate.model.row_changes import ChangeRows, undo_size
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Statement
from tidegate.model.transactions import TransactionRequest
from tidegate.secrets.url_logins import without_password
from tidegate.store.calls import read_state

ROW_VERBS = frozenset({"insert", "update", "delete", "merge", "replace"})
"""What changes rows and nothing else."""
_NO_COUNT = "how many rows it changes"
_REQUIRED = "The source refuses such changes."
_PROMISED = "The person who allowed it was shown that it can be."
_PROMISED_TOGETHER = "A person who allowed a part of its transaction was shown that it can be."
_PART = "another statement of its transaction cannot be: "
_TOGETHER = "All that its transaction changes goes back together."


def most_rows(ctx: CallContext) -> int | None:
    """How many rows one change of the caller may be about here; None: any number."""
    of_source, of_actor = ctx.source.max_rows_changed, ctx.call.actor.max_rows_changed
    if of_source is None or of_actor is None:
        return of_actor if of_source is None else of_source
    return min(of_source, of_actor)


async def consider_change(ctx: CallContext) -> None:
    """Find out the limit of a change and whether its rows can be put back. Where its rows cannot be
    counted, a person must approve it.

    Raises: TidegateError UNDO_UNAVAILABLE where the source refuses a change of which the rows
    cannot be kept; what the engine raises.
    """
    request = ctx.call.request
    if isinstance(request, (Browse, Explain, TransactionRequest)):
        return
    max_rows = most_rows(ctx)
    if max_rows is not None:
        ctx.change = structs.replace(ctx.change, max_rows=max_rows)
        uncounted = await _uncounted(ctx)
        ctx.change = structs.replace(ctx.change, uncounted=uncounted)
        if uncounted and ctx.verdict.kind == "allow":
            ctx.verdict = _cannot_count(uncounted)
    if ctx.source.undo == "off" or ctx.services.changes is None or isinstance(request, Prepare):
        return
    reversible: Reversibility | None = None
    reason = _objection(ctx, request)
    if reason:
        reversible = Reversibility(False, reason)
    elif ctx.verdict.kind == "ask" and can_undo(ctx.engine):
        for statement in _statements(ctx):
            found = await ctx.engine.reversibility(statement, ctx.text_judgement, ctx.source)
            if reversible is None or not found.possible:
                reversible = found
            if not found.possible:
                break
    if reversible is None:
        return
    required = _REQUIRED if ctx.source.undo == "require" else ""
    if ctx.transaction is not None:
        required = required or ctx.transaction.required
        if reversible.possible:
            reason = f"{reversible.reason} {_TOGETHER}".lstrip()
            reversible = structs.replace(reversible, reason=reason)
    ctx.change = structs.replace(ctx.change, reversible=reversible)
    if required and not reversible.possible:
        raise not_kept(reversible.reason, required)


def _statements(ctx: CallContext) -> list[Statement]:
    """The statements of a change, or those that mean it."""
    rewritten = ctx.rewritten
    if isinstance(rewritten, (Query, Prepare)):
        return [rewritten.statement]
    if isinstance(rewritten, ChangeRows):
        return list(forms_of(rewritten, ctx.source.dialect).values())
    return []


async def _uncounted(ctx: CallContext) -> str:
    """Which rows of the change its engine does not count before it commits; empty if it counts all
    of them."""
    statements, judgement = _statements(ctx), ctx.judgement
    # A query may change rows as well: by a clause of WITH, or by a function.
    is_change = judgement.effect is Effect.WRITE and judgement.verb in (*ROW_VERBS, "select")
    if not statements or not is_change or not can_count(ctx.engine):
        return _NO_COUNT
    found = [
        await ctx.engine.uncounted(statement, ctx.text_judgement, ctx.source)
        for statement in statements
    ]
    return next(filter(None, found), "")


def _cannot_count(what: str) -> Verdict:
    return Verdict(
        "ask",
        "source.max_rows_changed",
        f"The number of rows that may be changed is limited, and {what} cannot be counted",
        Code.APPROVAL_NEEDED.value,
        ERRORS[Code.APPROVAL_NEEDED].hint,
    )


def _objection(ctx: CallContext, request: Request) -> str:
    """Why the rows of a change cannot be kept whatever they are; empty if they may be."""
    if not can_undo(ctx.engine):
        return "the engine of this source puts no rows back"
    is_change = isinstance(request, (Query, ChangeRows)) and ctx.judgement.effect is Effect.WRITE
    if not is_change or ctx.judgement.verb not in ROW_VERBS:
        return "only INSERT, UPDATE and DELETE can be taken back"
    feed = request.feed if isinstance(request, ChangeRows) else None
    kept = ctx.services.changes
    if feed is not None and kept is not None and undo_size(feed) > kept.settings.max_bytes:
        return too_large(kept.settings.max_bytes)
    if ctx.transaction is not None and ctx.transaction.unkept:
        return f"{_PART}{ctx.transaction.unkept.removeprefix(_PART)}"
    return ""


def check_dry_run(ctx: CallContext, dry_run: DryRun) -> None:
    """Raises: TidegateError LIMIT_CHANGES if a dry run shows more rows than may be changed: no
    person needs to be asked."""
    limit, rows = ctx.change.max_rows, dry_run.affected
    if limit is not None and rows is not None and rows > limit:
        raise too_many_rows(limit, rows, False)


async def begin_keeping(ctx: CallContext) -> None:
    """Make ready to keep the rows of a change that may run now. Raises: TidegateError."""
    changes, source, transaction = ctx.services.changes, ctx.source, ctx.transaction
    reversible, grant = ctx.change.reversible, ctx.approval.grant
    is_change = isinstance(ctx.call.request, (Query, UndoChange, ChangeRows))
    if source.undo == "off" or changes is None or not is_change:
        return
    required = _REQUIRED if source.undo == "require" else ""
    if grant and not required and await _was_promised(ctx):
        required = _PROMISED if transaction is None else _PROMISED_TOGETHER
    if transaction is not None:
        required = required or transaction.required
    if reversible is not None and not reversible.possible:
        if required:
            raise not_kept(reversible.reason, required)
        return
    undone = "" if ctx.change.undone is None else ctx.change.undone.id
    _keep_with(ctx, _keeper(ctx, changes, required, grant, undone))


async def keep_transaction(ctx: CallContext, transaction: OpenTransaction) -> None:
    """Make ready to keep the rows of all that a transaction has changed, at its COMMIT: whole, or
    not at all."""
    changes = ctx.services.changes
    if changes is None or transaction.unkept or not can_undo(ctx.engine):
        return
    grant = next((each.grant for each in transaction.changes if each.grant), "")
    required = transaction.required or (_REQUIRED if ctx.source.undo == "require" else "")
    _keep_with(ctx, _keeper(ctx, changes, required, grant))


def _keep_with(ctx: CallContext, keeper: UndoEntry) -> None:
    ctx.change = structs.replace(ctx.change, keeper=keeper)


def _keeper(
    ctx: CallContext, changes: UndoLog, required: str, grant: str, undoes: str = ""
) -> UndoEntry:
    actor, source = ctx.call.actor, ctx.source
    made = ChangeEntry(
        *("", source.name, source.id, actor.id, actor.name, 0.0, 0.0),
        approval=grant,
        call_id=ctx.call_id,
        undoes=undoes,
        database=ctx.request.database or "",
    )
    return changes.keeper(made, required=required, place=place_of(source))


async def _was_promised(ctx: CallContext) -> bool:
    """Whether the person who allowed the call was shown that it can be taken back."""
    approvals = ctx.services.approvals
    if approvals is None:
        return False
    question = await read_state(approvals.find, ctx.approval.grant)
    reversible = question.subject.reversible
    return reversible is not None and reversible.possible


def place_of(source: Source) -> str:
    """What tells the source's database from another: its URL as it is saved, whatever the
    password is called."""
    return without_password(source.url)


async def end_keeping(ctx: CallContext, error: BaseException | None = None) -> str:
    """Note what became of a change whose rows were kept. Returns the id under which they are; empty
    if they are not. Raises nothing: what cannot be noted is settled by the rows."""
    keeper = ctx.change.keeper
    if keeper is None or keeper.entry is None:
        return ""
    how = "kept"
    if error is not None:
        refused = isinstance(error, TidegateError) and error.code is Code.SQL_FAILED
        how = "discarded" if refused else "unknown"
    with suppress(TidegateError):
        await asyncio.to_thread(keeper.end, how)
    return keeper.entry.id if how == "kept" else ""
