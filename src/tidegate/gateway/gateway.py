"""The gate that every request passes, from whatever edge and tool it comes.

`Gateway.handle` takes a call through its steps, and does what is due when one of them fails.
`steps` lists the steps in their order; each is a function of the `CallContext`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.event import Event
from tidegate.audit.sink import Sink
from tidegate.budgets.ledger import BudgetLedger
from tidegate.errors import Code, TidegateError
from tidegate.gateway.approval import answer_approval, release_grant, save_refusal
from tidegate.gateway.budgets import pay_failed
from tidegate.gateway.call_traces import join_trace, leave_trace
from tidegate.gateway.context import NO_SOURCE, CallContext, Services
from tidegate.gateway.fault_log import FaultLog
from tidegate.gateway.handlers import Handlers
from tidegate.gateway.judging import judging_limiter
from tidegate.gateway.masking import source_key
from tidegate.gateway.open_transactions import OpenTransactions
from tidegate.gateway.preview import explain_call, explain_text, explain_under_rules
from tidegate.gateway.recorder import record_failure
from tidegate.gateway.result_cache import ResultCache
from tidegate.gateway.running_calls import BLIND, OPERATOR, RunningCalls
from tidegate.gateway.source_connections import SourceConnections, find, note_reach
from tidegate.gateway.steps import steps_of
from tidegate.gateway.transactions import leave_transaction, mark_failed
from tidegate.history.history import History
from tidegate.history.undo_log import UndoLog
from tidegate.model.replies import Reply
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Judgement
from tidegate.policy.explanation import Explanation
from tidegate.tracing import Tracing

if TYPE_CHECKING:
    from tidegate.gateway.carried_results import CarriedResults
    from tidegate.gateway.choices import Choices

_SIGHT_S = 0.1
BY_OPERATOR = "Ask the user before you send it again."


class Sight(Protocol):
    """Whether the state, and so what others changed of rights, is seen (`store.versions`)."""

    @property
    def is_stale(self) -> bool:
        """Whether it was not seen for too long."""
        ...

    @property
    def age_s(self) -> float:
        """For how long it was not seen."""
        ...

    def stale_error(self) -> TidegateError:
        """Why, and what can be done."""
        ...


class GatewayOptions(NamedTuple):
    """What a gate can do without."""

    masking_key: Callable[[], str] | None = None
    """Gives the secret of the keys of masks that hash, which should outlive the process;
    without it the hashes change when the process starts again."""
    statement_rules: Callable[[Source], StatementRules | None] | None = None
    """Gives the rules for classes of statements of a source that has some."""
    changes: UndoLog | None = None
    """The changes whose rows are kept."""
    observers: Sequence[Callable[[Event], None]] = ()
    """Are given what is recorded of each call that has ended, on its way: they must be quick."""
    budgets: BudgetLedger | None = None
    """What calls cost."""
    tracing: Tracing | None = None
    """Has the tracer while a product traces calls."""
    sight: Sight | None = None
    """Whether the state is seen; None where no other process changes it."""
    grace_s: float = 10.0
    """After so long without sight of the state what runs is ended, and answers are withheld."""
    carried: CarriedResults | None = None
    """The results that other processes on the state may be asked for."""
    choices: Choices | None = None
    """What callers have chosen at any process on the state."""


_NO_OPTIONS = GatewayOptions()


class Gateway:
    """The gate. `handlers` answer what needs no engine. `running` are the calls under way; the id
    of each begins with `run_id`."""

    def __init__(
        self,
        connections: SourceConnections,
        audit: Sink,
        history: History,
        *,
        approvals: Approvals | None = None,
        handlers: Handlers | None = None,
        options: GatewayOptions = _NO_OPTIONS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        masking_key, statement_rules, changes, observers, budgets, tracing = options[:6]
        self._sight, self._grace_s = options.sight, options.grace_s
        secret = lru_cache(maxsize=1)(masking_key or _random_key)

        @lru_cache(maxsize=1024)
        def key(source: str) -> str:
            return source_key(secret(), source)

        transactions = OpenTransactions(audit, history, approvals)
        connections.watch_closes(transactions.end_of)
        self._services = Services(
            *(connections, audit, history, approvals, ResultCache(), key, clock),
            *(judging_limiter(), statement_rules or _no_rules, transactions),
            *(self.handle, (handlers or Handlers()).find, changes, observers, budgets),
            *(options.carried, options.choices),
        )
        self.choices = options.choices
        self._tracing = tracing or Tracing()
        self._fault_log = FaultLog()
        self.running = RunningCalls()
        self._calls = 0
        self.run_id = f"{int(clock()):x}{os.urandom(4).hex()}"

    async def handle(self, call: Call) -> Reply:
        """Answer one call. Raises: TidegateError, for every call that is refused or fails."""
        self._calls += 1
        ctx = CallContext.begin(self._services, call, f"{self.run_id}-{self._calls:x}")
        self.running[ctx.call_id] = ctx
        tracer = self._tracing.tracer
        if tracer is not None:
            join_trace(ctx, tracer)
        try:
            find(ctx)
            choices = self.choices
            if choices is not None and call.surface in choices.surfaces:
                await choices.load_target(ctx)
            for _, action, concerns in steps_of(type(call.request), ctx.source.engine):
                if concerns is None or concerns(ctx):
                    waiting = action(ctx)
                    if waiting is not None:
                        await waiting
            reply = Reply(
                *(ctx.payload, ctx.call_id, ctx.approval.granted),
                *(ctx.source, ctx.identity, ctx.data_rules),
                changed=ctx.may_change and not ctx.dry_run,
            )
        except TidegateError as error:
            error.call_id, error.approved = ctx.call_id, ctx.approval.granted
            if ctx.intent_recorded:
                error.under = ctx.source, ctx.identity, ctx.data_rules
            if error.code is Code.CALL_CANCELLED and call.cancellation.reason == OPERATOR:
                error.message, error.hint = "An operator cancelled the call", BY_OPERATOR
            elif error.code is Code.CALL_CANCELLED and call.cancellation.reason == BLIND:
                error.message = "The call was ended: the state cannot be read"
                error.retry_after_s = 1.0
            self._fault_log.note(error, ctx.source.name, ctx.call_id)
            if ctx.source is not NO_SOURCE:
                note_reach(ctx.connection, error, getattr(ctx.request, "database", None))
            await _end_failed(ctx, error)
            await save_refusal(ctx, error)
            if call.actor.kind == "agent":
                raise error.without_secrets() from None
            raise
        except asyncio.CancelledError:
            await _end_failed(ctx, TidegateError(Code.CALL_CANCELLED, "The call was cancelled"))
            raise
        except BaseException as fault:
            fault.add_note(f"call={ctx.call_id}")  # for the line in the log
            await _end_failed(ctx, TidegateError(Code.INTERNAL, f"A fault: {type(fault).__name__}"))
            raise
        finally:
            del self.running[ctx.call_id]
            if ctx.transaction is not None:
                leave_transaction(ctx)
            if ctx.begins_trace:
                leave_trace(ctx)
        if self._sight is not None and self._sight.is_stale:
            await self._wait_for_sight(self._sight, ctx)
        return reply

    async def _wait_for_sight(self, sight: Sight, ctx: CallContext) -> None:
        """Keep an answer until the state is seen again: its caller may have lost the right to it.
        Raises: TidegateError STATE_FAILED if that takes too long, SQL_OUTCOME for what may have
        changed something, which a program must not send again."""
        while sight.is_stale:
            if sight.age_s > self._grace_s:
                changed = ctx.may_change and not ctx.dry_run
                why = sight.stale_error()
                error = TidegateError(
                    Code.SQL_OUTCOME if changed else Code.STATE_FAILED,
                    "The call has run, and its answer is withheld, since rights may have changed."
                    f" {why.message}",
                    hint=BY_OPERATOR if changed else why.hint,
                    retry_after_s=None if changed else why.retry_after_s,
                    details=why.details,
                )
                error.call_id = ctx.call_id
                raise error.without_secrets() if ctx.call.actor.kind == "agent" else error
            await asyncio.sleep(_SIGHT_S)

    def end_calls(self) -> None:
        """End every call and transaction, since the state cannot be seen."""
        self.running.end_all(BLIND)
        self._services.transactions.end_all(BLIND)

    async def answer_approval(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Record the answer of a person whom the caller's own client asked.

        Raises: TidegateError APPROVAL_NEEDED if such an answer does not count for this source.
        """
        await answer_approval(self._services, needed, call, allow)

    def end_session(self, session: str) -> None:
        """Close the temporary sources of a session that has ended."""
        self._services.connections.close_temporary_of(session)

    def follow_sources(self) -> None:
        """Take note of sources that were changed elsewhere: what runs on them ends. Raises:
        TidegateError if they cannot be read."""
        self._services.connections.sources()

    def source_of(self, call: Call) -> Source:
        """The source that a call is about, with its rules of this moment. Raises: TidegateError
        SOURCE_UNKNOWN, POLICY_SOURCE."""
        return self._services.connections.find(call.source, call.actor, call.session).source

    def touch_transaction(self, transaction: str) -> None:
        """Note that the owner of a transaction reads on in a result of it."""
        self._services.transactions.touch(transaction)

    async def abandon_transaction(self, transaction: str, reason: str) -> None:
        """Roll back a transaction whose owner has gone, if it is open. Raises nothing."""
        await self._services.transactions.abandon(transaction, reason)

    async def judge(self, call: Call) -> tuple[Judgement, Explanation]:
        """As `explain`, by the statement's text alone: opens no source and asks no database, which
        may think it does more.

        Raises: TidegateError SOURCE_UNKNOWN.
        """
        ctx = CallContext.begin(self._services, call, "explain")
        explanation = await explain_text(ctx)
        return ctx.judgement, explanation

    async def judge_under_rules(self, call: Call) -> tuple[Judgement, Explanation]:
        """As `judge`, and by what is hidden from the caller, for which the names of the database
        are needed.

        Raises: TidegateError SOURCE_UNKNOWN.
        """
        ctx = CallContext.begin(self._services, call, "explain")
        explanation = await explain_under_rules(ctx)
        return ctx.judgement, explanation

    async def explain(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call, and why. Runs nothing and records nothing.

        Raises: TidegateError SOURCE_UNKNOWN, POLICY_IDENTITY, and what opening the source raises.
        """
        ctx = CallContext.begin(self._services, call, "explain")
        explanation = await explain_call(ctx)
        return ctx.judgement, explanation

    def statement_rules(self, source: Source) -> StatementRules | None:
        """The rules for classes of statements of a source, if it has some."""
        return self._services.statement_rules(source)


async def _end_failed(ctx: CallContext, error: TidegateError) -> None:
    """What every call that does not succeed comes to, after whichever step it was. Raises: as
    `record_failure`."""
    if ctx.trace is not None:
        ctx.trace.note_failure(ctx.call_id, error.code.value)
    if ctx.spending is not None:
        pay_failed(ctx)
    if ctx.transaction is not None:
        mark_failed(ctx)
    if ctx.approval.grant:
        await release_grant(ctx, error)
    record_failure(ctx, error)


def _no_rules(source: Source) -> StatementRules | None:
    return None


def _random_key() -> str:
    return os.urandom(32).hex()
