"""Transactions over several statements: which are open, what was changed in them, how they end.

`BeginTransaction` opens one and holds nothing of the database. Its first statement begins it there,
after a person has approved that if one must: so no lock is held while a person decides. A change
in a transaction is on record before it runs; its outcome follows when the transaction ends, and
says whether it was kept.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

from msgspec import structs

from tidegate.audit.event import Event
from tidegate.audit.sink import Sink
from tidegate.engines.api import EngineTransaction, has_blocks
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.source_connections import SourceConnection
from tidegate.history.history import History
from tidegate.model.cancellation import READ_ENOUGH, Cancellation
from tidegate.model.language import Language
from tidegate.model.replies import BegunTransaction, EndedTransaction, HistoryEntry
from tidegate.model.requests import Call, EngineRequest, Query, Request
from tidegate.model.statements import Effect, Judgement
from tidegate.model.transactions import (
    COMMITS,
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionBounds,
    TransactionModes,
    TransactionRequest,
)
from tidegate.policy.verdict import evaluate

MAX_CHANGES = 10_000
"""Changes of one transaction: the outcome of each is kept until its end."""
MAX_TEXT = 16_777_216
"""Characters of their statements."""
MAX_SAVEPOINTS = 1_000
_AT_ONCE = 100
"""Outcomes that are recorded before other callers have a turn."""

COMMITTED, ROLLED_BACK, UNKNOWN = "committed", "rolled back", "unknown"

_CHANGE = Judgement(Effect.WRITE, "request.change", "a change of rows", verb="update")
"""What is put to the policy to find out whether a caller may change anything at all."""
_INTO = "text.into"
"""The rule of the judge for SELECT … INTO, which makes a table."""
_VERBS = frozenset({"select", "values", "insert", "update", "delete", "merge", "replace"})
"""What may change data in a transaction. Of all else the judge asks the catalog as other
connections see it, and could not see what the transaction itself made of it."""


class Change:
    """A change that ran in a transaction: what is recorded of it when that ends."""

    __slots__ = ("entry", "event", "language")

    def __init__(self, event: Event, entry: HistoryEntry | None, language: Language | None) -> None:
        self.event = event
        self.entry = entry
        self.language = language


class OpenTransaction:
    """One transaction, from its BEGIN to its end. `held` is its connection, None before its first
    statement. `failed`: it can only be rolled back, whole or to a savepoint."""

    def __init__(
        self, ctx: CallContext, request: BeginTransaction, modes: TransactionModes
    ) -> None:
        self.id = os.urandom(8).hex()
        self.actor_id = ctx.call.actor.id
        self.connection: SourceConnection = ctx.connection
        self.engine = ctx.engine
        self.modes = modes
        self.bounds = request.bounds
        self.on_end = request.on_end
        self.begun_by = ctx
        self.held: EngineTransaction | None = None
        self.failed = False
        self.is_open = True
        self.calls = 0
        """Calls under way, but for results that are read in parts: those wait for their reader."""
        self.changes: list[Change] = []
        self._text = 0
        self._savepoints: list[tuple[str, int]] = []
        self._loop = asyncio.get_running_loop()
        self.began_at = self.used_at = self._loop.time()
        self.timer: asyncio.TimerHandle | None = None

    @property
    def idle_s(self) -> float:
        """For how long nothing has run in it."""
        if self.calls:
            return 0.0
        since = self._loop.time() - self.used_at
        return since if self.held is None else min(since, self.held.idle_s)

    def check_room(self) -> None:
        """Raises: TidegateError 54000 if there are too many changes to keep their outcomes."""
        if len(self.changes) >= MAX_CHANGES or self._text >= MAX_TEXT:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"A transaction has at most {MAX_CHANGES:,} changes, with {MAX_TEXT:,} characters.",
                hint="Commit the block in parts.",
                details={"sqlstate": "54000"},
            )

    def keep(self, change: Change) -> None:
        """Keep what is recorded of a change at the end."""
        self.changes.append(change)
        self._text += len(change.event.statement or "")

    def marked(self, request: MarkTransaction) -> list[Change]:
        """Note a savepoint that was set or left. Returns the changes that were undone."""
        name, kept = request.name, self._savepoints
        if request.action == "read only":
            self.modes = structs.replace(self.modes, reads_only=True)
        elif request.action == "savepoint":
            kept.append((name, len(self.changes)))
        else:
            places = [place for place, (each, _) in enumerate(kept) if each == name]
            if not places:
                return []
            place = places[-1]
            if request.action == "release":
                del kept[place:]
            else:
                before = kept[place][1]
                undone, self.changes = self.changes[before:], self.changes[:before]
                self._text = sum([len(each.event.statement or "") for each in self.changes])
                del kept[place + 1 :]
                self.failed = False
                return undone
        return []

    def check_savepoints(self) -> None:
        """Raises: TidegateError 54000 if there are too many."""
        if len(self._savepoints) >= MAX_SAVEPOINTS:
            raise TidegateError(
                Code.UNSUPPORTED,
                f"A transaction has at most {MAX_SAVEPOINTS:,} savepoints.",
                details={"sqlstate": "54000"},
            )


class OpenTransactions:
    """The transactions of one gateway."""

    def __init__(self, audit: Sink, history: History) -> None:
        self._audit = audit
        self._history = history
        self._open: dict[str, OpenTransaction] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()

    async def open(
        self, ctx: CallContext, request: BeginTransaction, modes: TransactionModes
    ) -> OpenTransaction:
        """Open a transaction, once there are few enough.

        Raises: TidegateError SOURCE_BUSY after the request's time limit, CALL_CANCELLED.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + request.limits.timeout_s
        while (refusal := self._refusal(ctx, request.bounds)) is not None:
            await self._wait(until, ctx.call.cancellation, refusal)
        connection, places = ctx.connection, ctx.engine.capabilities.places
        transaction = OpenTransaction(ctx, request, modes)
        self._open[transaction.id] = transaction
        connection.limiter.share(max(1, places - len(self._of(connection))))
        self._watch(transaction)
        return transaction

    def _refusal(self, ctx: CallContext, bounds: TransactionBounds) -> TidegateError | None:
        """Why no further transaction can be opened now; None if one can."""
        of_source = self._of(ctx.connection)
        own = sum([each.actor_id == ctx.call.actor.id for each in of_source])
        places = ctx.engine.capabilities.places
        if own >= bounds.per_actor:
            return _too_many(f"This caller has {own} transactions open at the source", "End one.")
        if len(of_source) >= places - max(1, places // 4):
            return _too_many(
                f"{len(of_source)} transactions are open at the source, and it has {places}"
                " connections",
                "Send the statement outside a transaction, or try again soon.",
            )
        return None

    def _of(self, connection: SourceConnection) -> list[OpenTransaction]:
        return [each for each in self._open.values() if each.connection is connection]

    async def _wait(self, until: float, cancellation: Cancellation, refusal: TidegateError) -> None:
        """Return when a transaction has ended. Raises: TidegateError CALL_CANCELLED, and `refusal`
        when it is too late."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not turn.done():
                turn.set_result(None)

        self._waiting.add(turn)
        cancellation.listen(wake)
        try:
            async with asyncio.timeout_at(until):
                await turn
        except TimeoutError:
            raise refusal from None
        finally:
            cancellation.forget(wake)
            self._waiting.discard(turn)
        if cancellation.reason is not None:
            raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")

    def find(self, call: Call, connection: SourceConnection) -> OpenTransaction:
        """The transaction that a call names. Raises: TidegateError 25P01."""
        found = self._open.get(call.transaction)
        if (
            found is None
            or found.actor_id != call.actor.id
            or found.connection is not connection
            or not found.is_open
        ):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The transaction is over: it has ended, or its source was closed.",
                hint="Begin another one.",
                details={"sqlstate": "25P01"},
            )
        return found

    def touch(self, id: str) -> None:
        """The owner reads a result of the transaction: it is not idle."""
        transaction = self._open.get(id)
        if transaction is not None:
            transaction.used_at = asyncio.get_running_loop().time()

    async def abandon(self, id: str, reason: str) -> None:
        """Roll back a transaction whose owner has gone. Raises nothing."""
        transaction = self._open.get(id)
        if transaction is not None:
            await self.end(transaction, ROLLED_BACK, reason)

    async def end(self, transaction: OpenTransaction, how: str, reason: str = "") -> None:
        """Forget a transaction that has ended, or end it, and record what became of its changes.
        With a `reason` it was not its owner who ended it, and that is recorded as well."""
        if not transaction.is_open:
            return
        transaction.is_open = False
        self._open.pop(transaction.id, None)
        if transaction.timer is not None:
            transaction.timer.cancel()
        try:
            if transaction.held is not None:
                await transaction.held.rollback()  # does nothing after a commit
        finally:
            self._give_place_back(transaction)
            changes, transaction.changes = transaction.changes, []
            await self.record(changes, how, reason)
            if reason:
                self._record_end(transaction, len(changes), how, reason)

    async def record(self, changes: list[Change], how: str, reason: str = "") -> None:
        """Record the outcome of changes."""
        code = Code.SQL_OUTCOME.value if how == UNKNOWN else ""
        for count, change in enumerate(changes, 1):
            event = structs.replace(change.event, transaction_end=how, code=code, error=reason)
            self._append(event)
            if change.entry is not None:
                error = "" if how == COMMITTED else f"The transaction was {how}"
                if how == UNKNOWN:
                    error = "It is not known whether the transaction was committed"
                entry = structs.replace(change.entry, success=not error, error=error)
                self._history.add(entry, change.language)
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _record_end(self, transaction: OpenTransaction, rows: int, how: str, reason: str) -> None:
        call, source = transaction.begun_by.call, transaction.connection.source
        self._append(
            Event(
                call_id=f"{transaction.begun_by.call_id}-end",
                phase="outcome",
                actor=call.actor.id,
                actor_name=call.actor.name,
                client=call.client,
                address=call.address,
                surface=call.surface,
                tool=call.tool,
                source=source.name,
                request=RollbackTransaction.kind,
                dialect=source.dialect,
                rows=rows,
                error=reason,
                transaction=transaction.id,
                transaction_end=how,
            )
        )

    def _append(self, event: Event) -> None:
        """Record what has happened. While the log fails it is written later: the intent is there
        already."""
        try:
            self._audit.append(event)
        except TidegateError:
            self._audit.append_later(event)

    def _give_place_back(self, transaction: OpenTransaction) -> None:
        connection = transaction.connection
        left = len(self._of(connection))
        connection.limiter.share(max(1, transaction.engine.capabilities.places - left))
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _watch(self, transaction: OpenTransaction) -> None:
        """See to it that the transaction ends when it has been idle, or open, for too long."""
        loop = asyncio.get_running_loop()
        bounds, idle_s = transaction.bounds, transaction.idle_s
        left_s = transaction.began_at + bounds.total_s - loop.time()
        if idle_s >= bounds.idle_s:
            self._expire(
                transaction,
                "25P03",
                f"the transaction was idle for {bounds.idle_s:g} s",
                "pg.idle_in_transaction_s",
            )
        elif left_s <= 0 and idle_s > 0:
            self._expire(
                transaction,
                "25P04",
                f"the transaction was open for {bounds.total_s:g} s",
                "pg.transaction_s",
            )
        else:
            wait_s = min(bounds.idle_s - idle_s, left_s if left_s > 0 else 1.0)
            transaction.timer = loop.call_later(max(0.01, wait_s), lambda: self._watch(transaction))

    def _expire(
        self, transaction: OpenTransaction, sqlstate: str, reason: str, setting: str
    ) -> None:
        task = asyncio.ensure_future(self.end(transaction, ROLLED_BACK, reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if transaction.on_end is not None:
            transaction.on_end(
                TidegateError(
                    Code.CALL_CANCELLED,
                    f"The session was ended: {reason}. Its changes were rolled back.",
                    hint=f"Commit sooner, or ask the operator to raise `{setting}`.",
                    details={"sqlstate": sqlstate},
                )
            )


def join(ctx: CallContext) -> None:
    """Find the transaction that the call belongs to, if it names one.

    Raises: TidegateError 25P01; 25P02 for anything but its end in one that has failed.
    """
    call = ctx.call
    if not call.transaction:
        return
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


def leave(ctx: CallContext) -> None:
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
    makes_table = _INTO in (judgement.rule, ctx.text_judgement.rule)
    if judgement.effect is not Effect.WRITE or judgement.verb not in _VERBS or makes_table:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{judgement.verb.upper() or 'This statement'} does not run in a transaction block"
            " here: the gate checks it by the catalog as it is outside the block.",
            hint="Send it outside BEGIN and COMMIT, with autocommit on.",
            details={"sqlstate": "0A000"},
        )
    transaction.check_room()


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
    return transaction.held


def note_failure(ctx: CallContext) -> None:
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
            await transaction.held.commit(ctx.permit(ctx.request), ctx.call.cancellation)
    except TidegateError as error:
        how = UNKNOWN if error.code is Code.SQL_OUTCOME else ROLLED_BACK
        await transactions.end(transaction, how)
        raise
    except BaseException:
        with suppress(Exception):
            await transactions.end(transaction, UNKNOWN)
        raise
    await transactions.end(transaction, COMMITTED)
    return EndedTransaction(True, count)


def judgement_of(ctx: CallContext) -> Judgement:
    """What a request about a transaction does: a commit with changes keeps them."""
    transaction, request = ctx.transaction, ctx.call.request
    if (
        isinstance(request, CommitTransaction)
        and transaction is not None
        and transaction.changes
        and not transaction.failed
    ):
        return COMMITS
    return ctx.judgement


def _too_many(what: str, hint: str) -> TidegateError:
    return TidegateError(Code.SOURCE_BUSY, f"{what}.", hint=hint, details={"sqlstate": "53300"})
