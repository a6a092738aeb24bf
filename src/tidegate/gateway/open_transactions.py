"""The transactions of one gateway that are open: what was changed in them, their places, their end.

The outcome of a change is recorded when its transaction ends, and says whether it was kept.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import Literal

from msgspec import structs

from tidegate.approvals.approvals import Approvals
from tidegate.audit.event import Event
from tidegate.audit.sink import Sink
from tidegate.engines.api import EngineTransaction
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.gateway.source_connection import SourceConnection
from tidegate.history.history import History
from tidegate.model.cancellation import Cancellation
from tidegate.model.language import Language
from tidegate.model.replies import HistoryEntry
from tidegate.model.requests import Call
from tidegate.model.transactions import (
    BeginTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionBounds,
    TransactionModes,
)
from tidegate.store.calls import change_state
from tidegate.store.records import ApprovedRun

MAX_CHANGES = 10_000
"""Changes of one transaction: the outcome of each is kept until its end."""
MAX_TEXT = 16_777_216
"""Characters of their statements."""
MAX_SAVEPOINTS = 1_000
_AT_ONCE = 100
"""Outcomes that are recorded before other callers have a turn."""

COMMITTED, ROLLED_BACK, UNKNOWN = "committed", "rolled back", "unknown"
_ENDS: dict[str, tuple[Literal["done", "failed", "unknown"], str]] = {
    COMMITTED: ("done", ""),
    ROLLED_BACK: ("failed", "It was rolled back."),
    UNKNOWN: ("unknown", "It is not known whether its transaction was committed."),
}
"""What an approval says of a change when its transaction has ended."""


class Change:
    """A change that ran in a transaction: what is recorded of it when that ends."""

    __slots__ = ("affected", "entry", "event", "grant", "language", "required", "unkept")

    def __init__(
        self,
        event: Event,
        entry: HistoryEntry | None,
        language: Language | None,
        affected: int = 0,
        *,
        unkept: str = "",
        required: str = "",
        grant: str = "",
    ) -> None:
        """`unkept` says why its rows cannot be put back, `required` why they must be; `grant` is
        the approval that let it run."""
        self.event = event
        self.entry = entry
        self.language = language
        self.affected = affected
        self.unkept = unkept
        self.required = required
        self.grant = grant


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
        self.withholds_words = False
        """Whether what the database says when it refuses the COMMIT could quote what is hidden from
        the caller: by a constraint or trigger that waits until then."""
        self.is_open = True
        self.calls = 0
        """Running calls, except results that are read in parts: those wait for their reader."""
        self.changes: list[Change] = []
        self.rows_changed = 0
        """Rows that its changes were about."""
        self.unkept = ""
        """Why one of its changes, and so the whole, cannot be taken back; empty if it can."""
        self.required = ""
        """Why it must be rolled back unless it can be taken back; empty if it need not."""
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
                hint="Commit the block in parts, or send fewer statements at once.",
                details={"sqlstate": "54000"},
            )

    def keep(self, change: Change) -> None:
        """Keep what is recorded of a change at the end."""
        self.changes.append(change)
        self._text += len(change.event.statement or "")
        self.rows_changed += change.affected
        self.unkept = self.unkept or change.unkept
        self.required = self.required or change.required

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
                undone, left = self.changes[before:], self.changes[:before]
                self.changes, self._text, self.rows_changed = [], 0, 0
                self.unkept = self.required = ""
                for each in left:
                    self.keep(each)
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

    def __init__(self, audit: Sink, history: History, approvals: Approvals | None = None) -> None:
        self._audit = audit
        self._history = history
        self._approvals = approvals
        self._open: dict[str, OpenTransaction] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()

    async def open(
        self, ctx: CallContext, request: BeginTransaction, modes: TransactionModes
    ) -> OpenTransaction:
        """Open a transaction, once there are few enough.

        Raises: TidegateError SOURCE_BUSY after the request's time limit, CALL_CANCELLED, or
        UNSUPPORTED where there can be none.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + request.limits.timeout_s
        if _most_open(ctx.engine.capabilities.max_concurrency) < 1:
            raise TidegateError(
                Code.UNSUPPORTED,
                "The source has one connection in this process, and a transaction would keep it.",
                hint="Who runs the server sets `pool` in the source's URL: 2 for each worker.",
            )
        while (refusal := self._refusal(ctx, request.bounds)) is not None:
            await self._wait(until, ctx.call.cancellation, refusal)
        connection, places = ctx.connection, ctx.engine.capabilities.max_concurrency
        transaction = OpenTransaction(ctx, request, modes)
        self._open[transaction.id] = transaction
        connection.limiter.share(max(1, places - len(self._of(connection))))
        self._watch(transaction)
        return transaction

    def _refusal(self, ctx: CallContext, bounds: TransactionBounds) -> TidegateError | None:
        """Why no further transaction can be opened now; None if one can."""
        of_source = self._of(ctx.connection)
        own = sum([each.actor_id == ctx.call.actor.id for each in of_source])
        places = ctx.engine.capabilities.max_concurrency
        if own >= bounds.per_actor:
            return _too_many(f"This caller has {own} transactions open at the source", "End one.")
        if len(of_source) >= _most_open(places):
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

    def end_of(self, connection: SourceConnection) -> None:
        """Roll back the transactions of a source that is closed, and record it now: their owners
        may be silent. What runs in them fails, and its owner ends them."""
        for transaction in self._of(connection):
            if not transaction.calls:
                self._end_soon(transaction, "its source was closed, or has other settings now")

    def end_all(self, reason: str) -> None:
        """Roll back the transactions in which nothing runs, and record it; of the others their
        owner learns it when the call ends."""
        for transaction in list(self._open.values()):
            if not transaction.calls:
                self._end_soon(transaction, reason)

    async def end(
        self, transaction: OpenTransaction, how: str, reason: str = "", change: str = ""
    ) -> None:
        """Forget a transaction that has ended, or end it, and record what became of its changes.
        With a `reason` it was not its owner who ended it, and that is recorded as well. `change` is
        the id under which its rows are kept."""
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
            await self.record(changes, how, reason, change)
            if reason:
                self._record_end(transaction, len(changes), how, reason)

    async def record(
        self, changes: list[Change], how: str, reason: str = "", kept_as: str = ""
    ) -> None:
        """Record the outcome of changes, also with the approvals that let them run."""
        code = Code.SQL_OUTCOME.value if how == UNKNOWN else ""
        for count, change in enumerate(changes, 1):
            event = structs.replace(change.event, transaction_end=how, code=code, error=reason)
            self._append(event)
            if change.entry is not None:
                error = "" if how == COMMITTED else f"The transaction was {how}"
                if how == UNKNOWN:
                    error = "It is not known whether the transaction was committed"
                entry = structs.replace(change.entry, success=not error, error=error)
                self._history.add((entry, change.language))
            if change.grant:
                await self._note_end(change, how, kept_as)
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _note_end(self, change: Change, how: str, kept_as: str) -> None:
        """Keep with an approval what became of its change. Raises nothing."""
        if self._approvals is None:
            return
        state, message = _ENDS[how]
        run = ApprovedRun(
            *(state, time.time(), change.event.call_id, change.event.rows, message, kept_as)
        )
        with suppress(TidegateError):  # the audit log has it; this is for the person's card
            await change_state(self._approvals.attach_run, change.grant, run)

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
        connection.limiter.share(max(1, transaction.engine.capabilities.max_concurrency - left))
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
            self._expire_by_age(transaction)
        else:
            wait_s = min(bounds.idle_s - idle_s, left_s if left_s > 0 else 1.0)
            transaction.timer = loop.call_later(max(0.01, wait_s), lambda: self._watch(transaction))

    def check_age(self, transaction: OpenTransaction) -> None:
        """End a transaction that has been open for too long, though its statements follow each
        other without a pause. Raises: TidegateError CALL_CANCELLED."""
        if asyncio.get_running_loop().time() >= transaction.began_at + transaction.bounds.total_s:
            raise self._expire_by_age(transaction)

    def _expire_by_age(self, transaction: OpenTransaction) -> TidegateError:
        reason = f"the transaction was open for {transaction.bounds.total_s:g} s"
        return self._expire(transaction, "25P04", reason, "pg.transaction_s")

    def _expire(
        self, transaction: OpenTransaction, sqlstate: str, reason: str, setting: str
    ) -> TidegateError:
        """End it and its session; returns why, as the client reads it."""
        self._end_soon(transaction, reason)
        error = TidegateError(
            Code.CALL_CANCELLED,
            f"The session was ended: {reason}. Its changes were rolled back.",
            hint=f"Commit sooner, or ask the operator to raise `{setting}`.",
            details={"sqlstate": sqlstate},
        )
        if transaction.on_end is not None:
            transaction.on_end(error)
        return error

    def _end_soon(self, transaction: OpenTransaction, reason: str) -> None:
        task = asyncio.ensure_future(self.end(transaction, ROLLED_BACK, reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _most_open(places: int) -> int:
    """Transactions at a source with so many connections: others are for statements outside them."""
    return places - max(1, places // 4)


def _too_many(what: str, hint: str) -> TidegateError:
    return TidegateError(Code.SOURCE_BUSY, f"{what}.", hint=hint, details={"sqlstate": "53300"})
