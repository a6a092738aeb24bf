"""Steps of a call that begins, uses or ends a transaction over several statements.

`BeginTransaction` opens one and holds nothing of the database. Its first statement begins it there,
after a person has approved that if one must: so no lock is held while a person decides. A change
in a transaction is on record before it runs; its outcome follows when the transaction ends
(`gateway.open_transactions`).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from msgspec import structs

from tidegate.engines.api import EngineTransaction, has_blocks
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.masking import without_values
from tidegate.gateway.open_transactions import COMMITTED, ROLLED_BACK, UNKNOWN, OpenTransaction
from tidegate.model.cancellation import READ_ENOUGH
from tidegate.model.replies import BegunTransaction, EndedTransaction
from tidegate.model.requests import EngineRequest, Query, Request
from tidegate.model.statements import Effect, Judgement
from tidegate.model.transactions import (
    COMMITS,
    MAKES_TABLE,
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionRequest,
    runs_in_transaction,
)
from tidegate.policy.verdict import evaluate

_CHANGE = Judgement(Effect.WRITE, "request.change", "a change of rows", verb="update")
"""What is put to the policy to find out whether a caller may change anything at all."""


def enter_transaction(ctx: CallContext) -> None:
    """Find the transaction that the call belongs to.

    Raises: TidegateError 25P01; 25P02 for anything but its end in one that has failed.
    """
    call = ctx.call
    transaction = ctx.services.transactions.find(call, ctx.connection)
    request = call.request
    goes_back = isinstance(request, MarkTransaction) and request.action == "rollback to"
    ends = isinstance(request, (CommitTransaction, RollbackTransaction))
    if transaction.failed and isinstance(request, EngineRequest) and not goes_back and not ends:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The transaction has failed: statements are ignored until its end.",
            hint="Send ROLLBACK.",
            details={"sqlstate": "25P02"},
        )
    ctx.transaction = transaction
    if not _is_read_in_parts(request):
        transaction.calls += 1


def leave_transaction(ctx: CallContext) -> None:
    """The call has ended."""
    transaction = ctx.transaction
    if transaction is None or isinstance(ctx.call.request, BeginTransaction):
        return
    transaction.used_at = asyncio.get_running_loop().time()
    if not _is_read_in_parts(ctx.call.request):
        transaction.calls -= 1


def _is_read_in_parts(request: Request) -> bool:
    return isinstance(request, Query) and request.in_parts


def check_statement(ctx: CallContext) -> None:
    """Refuse what does not run in a transaction over several statements.

    Raises: TidegateError UNSUPPORTED with SQLSTATE 0A000, 54000.
    """
    transaction, judgement = ctx.transaction, ctx.judgement
    request = ctx.call.request
    if transaction is None or not isinstance(request, Query) or judgement.effect is Effect.READ:
        return
    if not runs_in_transaction(judgement) or ctx.text_judgement.rule == MAKES_TABLE:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{judgement.verb.upper() or 'This statement'} does not run in a transaction block"
            " here: the gate checks it by the catalog as it is outside the block.",
            hint="Send it by itself, outside BEGIN and COMMIT, with autocommit on.",
            details={"sqlstate": "0A000"},
        )
    transaction.check_room()


def check_sum(transaction: OpenTransaction, limit: int, affected: int) -> None:
    """Hold a transaction as a whole to the limit of one change: otherwise it could be cut in parts.
    Raises: TidegateError LIMIT_CHANGES; the transaction can only be rolled back then."""
    rows = transaction.rows_changed + affected
    if rows > limit:
        raise TidegateError(
            Code.LIMIT_CHANGES,
            f"The statements of the transaction change {rows:,} rows together, and at most"
            f" {limit:,} may be changed in one here. The transaction can only be rolled back.",
            hint="Change fewer rows. An open block takes ROLLBACK alone.",
            details={"limit": limit, "rows": rows},
        )


def _rows_left(ctx: CallContext, transaction: OpenTransaction) -> int | None:
    """How many more rows the COMMIT itself may change: by what was deferred until then."""
    from tidegate.gateway.changes import most_rows  # needed only where changes are limited

    limit = most_rows(ctx)
    return None if limit is None else max(0, limit - transaction.rows_changed)


def may_wait(ctx: CallContext) -> bool:
    """Whether the call may wait for a person: no connection and no lock is held for it."""
    return ctx.transaction is None or ctx.transaction.held is None


async def engine_transaction(ctx: CallContext, transaction: OpenTransaction) -> EngineTransaction:
    """The transaction at the database, begun by its first statement. Raises: TidegateError."""
    if transaction.held is None:
        engine = ctx.engine
        if not has_blocks(engine):
            raise TidegateError(Code.INTERNAL, "A transaction without an engine for it")
        permit = ctx.permit(ctx.rewritten)
        held = await engine.begin(permit, transaction.modes, ctx.call.cancellation)
        if not transaction.is_open:  # it was ended meanwhile
            await held.rollback()
            raise TidegateError(
                Code.CALL_CANCELLED, "The transaction was ended before it had begun."
            )
        transaction.held = held
    else:
        ctx.services.transactions.check_age(transaction)
    return transaction.held


def mark_failed(ctx: CallContext) -> None:
    """The transaction of a call that fails can only be rolled back. That its reader wants no more
    rows is no failure."""
    if ctx.transaction is not None and ctx.call.cancellation.reason != READ_ENOUGH:
        ctx.transaction.failed = True


async def control(ctx: CallContext, request: TransactionRequest) -> Any:
    """Begin, mark or end a transaction. Raises: TidegateError."""
    if isinstance(request, BeginTransaction):
        return await _begin(ctx, request)
    transaction = ctx.transaction
    if transaction is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The call names no transaction.",
            details={"sqlstate": "25P01"},
        )
    if isinstance(request, MarkTransaction):
        return await _mark(ctx, transaction, request)
    if isinstance(request, CommitTransaction):
        return await _commit(ctx, transaction)
    count = len(transaction.changes)
    await ctx.services.transactions.end(transaction, ROLLED_BACK)
    return EndedTransaction(False, count)


async def _begin(ctx: CallContext, request: BeginTransaction) -> BegunTransaction:
    if not has_blocks(ctx.engine):
        return BegunTransaction("", True)
    reads_only = request.modes.reads_only or ctx.call.reads_only or not _may_change(ctx)
    modes = structs.replace(request.modes, reads_only=reads_only)
    transaction = await ctx.services.transactions.open(ctx, request, modes)
    ctx.transaction = transaction
    return BegunTransaction(transaction.id, reads_only)


def _may_change(ctx: CallContext) -> bool:
    """Whether the policy lets the caller change anything at all, perhaps with an approval."""
    verdict = evaluate(
        ctx.call.actor,
        ctx.source,
        ctx.call.scope,
        _CHANGE,
        statements=None,
    )
    return verdict.kind != "deny"


async def _mark(
    ctx: CallContext, transaction: OpenTransaction, request: MarkTransaction
) -> EndedTransaction:
    if request.action == "savepoint":
        transaction.check_savepoints()
    if request.action == "read only" and transaction.held is None:
        transaction.marked(request)
        return EndedTransaction(False)
    held = await engine_transaction(ctx, transaction)
    await held.mark(ctx.permit(request), ctx.call.cancellation)
    undone = transaction.marked(request)
    await ctx.services.transactions.record(undone, ROLLED_BACK)
    return EndedTransaction(False, len(undone))


async def _commit(ctx: CallContext, transaction: OpenTransaction) -> EndedTransaction:
    transactions, count = ctx.services.transactions, len(transaction.changes)
    if transaction.failed:
        await transactions.end(transaction, ROLLED_BACK)
        return EndedTransaction(False, count)
    try:
        if transaction.held is not None:
            max_rows = _rows_left(ctx, transaction)
            ctx.change = structs.replace(ctx.change, max_rows=max_rows)
            await _keep(ctx, transaction)
            await transaction.held.commit(ctx.permit(ctx.request), ctx.call.cancellation)
    except TidegateError as error:
        how = UNKNOWN if error.code is Code.SQL_OUTCOME else ROLLED_BACK
        await _end_keeping(ctx, error)
        await transactions.end(transaction, how)
        raise (without_values(error) if transaction.withholds_words else error) from None
    except BaseException as error:
        with suppress(Exception):
            await _end_keeping(ctx, error)
            await transactions.end(transaction, UNKNOWN)
        raise
    kept_as = await _end_keeping(ctx)
    await transactions.end(transaction, COMMITTED, change=kept_as)
    return EndedTransaction(True, count, kept_as)


async def _keep(ctx: CallContext, transaction: OpenTransaction) -> None:
    """Make ready to keep the rows of all that the transaction has changed."""
    if ctx.source.undo != "off" and transaction.changes:
        from tidegate.gateway.changes import keep_transaction  # needed only where changes are kept

        await keep_transaction(ctx, transaction)


async def _end_keeping(ctx: CallContext, error: BaseException | None = None) -> str:
    """The id under which the rows are kept; empty if they are not."""
    if ctx.change.keeper is None:
        return ""
    from tidegate.gateway.changes import end_keeping

    return await end_keeping(ctx, error)


def judge_commit(ctx: CallContext) -> None:
    """A commit with changes keeps them, and so is a change."""
    transaction, request = ctx.transaction, ctx.call.request
    if (
        isinstance(request, CommitTransaction)
        and transaction is not None
        and transaction.changes
        and not transaction.failed
    ):
        ctx.judgement = COMMITS
