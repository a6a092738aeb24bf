"""The pipeline that every request passes, from whatever edge and tool it comes.

Read `Gateway.handle` and `_answer` from top to bottom: each line is a step, and each step is a
function of the `CallContext`. `source_connections` holds find and connect, `decision` decide and
inspect, `recorder` what is recorded, `transactions` what a statement of a block passes in addition;
`masking`, `approval` and `execution` hold one step each.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.sink import Sink
from tidegate.engines.api import can_join
from tidegate.errors import Code, TidegateError
from tidegate.gateway.approval import (
    answer_approval,
    approve,
    release_grant,
    save_outcome,
    save_refusal,
)
from tidegate.gateway.call_figures import CallFigures
from tidegate.gateway.context import NO_SOURCE, CallContext, Services
from tidegate.gateway.decision import BY_PERSON, decide, inspect
from tidegate.gateway.execution import run
from tidegate.gateway.fault_log import FaultLog
from tidegate.gateway.handlers import HANDLERS, Handler, HandlerParts, RequestHandler, from_records
from tidegate.gateway.joined_tables import Joins, find_joined, read_joined
from tidegate.gateway.judging import judging_limiter
from tidegate.gateway.masking import hide_sessions, mask, source_key
from tidegate.gateway.open_transactions import OpenTransactions
from tidegate.gateway.preview import explain_call, explain_text
from tidegate.gateway.recorder import (
    add_to_history,
    record_failure,
    record_intent,
    record_outcome,
)
from tidegate.gateway.result_cache import ResultCache
from tidegate.gateway.running_calls import OPERATOR, RunningCalls
from tidegate.gateway.source_connections import SourceConnections, connect, find, note_login
from tidegate.gateway.transactions import (
    check_statement,
    enter_transaction,
    judgement_of,
    leave_transaction,
    mark_failed,
)
from tidegate.history.history import History
from tidegate.model.profiles import Profiles
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, EngineRequest, Prepare, ReadProfiles, Request
from tidegate.model.results import Page
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.explanation import Explanation
from tidegate.product import load
from tidegate.sql.session_texts import has_session_views
from tidegate.undo.undo_log import UndoLog

BY_OPERATOR = "Ask the user before you send it again."


class Gateway:
    """The gate. `handlers` answer, by class of request, what needs no engine. `masking_key` gives
    the secret behind the keys of masks that hash, which should outlive the process; without it the
    hashes change when the process starts again. `statement_rules` gives the rules for classes of
    statements of a source that has some. `running` are the calls under way; the id of each begins
    with `run_id`."""

    def __init__(
        self,
        connections: SourceConnections,
        audit: Sink,
        history: History,
        *,
        approvals: Approvals | None = None,
        handlers: Mapping[type[Request], RequestHandler] | None = None,
        handler_parts: HandlerParts | None = None,
        masking_key: Callable[[], str] | None = None,
        statement_rules: Callable[[Source], StatementRules | None] | None = None,
        changes: UndoLog | None = None,
        figures: CallFigures | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        secret = lru_cache(maxsize=1)(masking_key or _random_key)

        @lru_cache(maxsize=1024)
        def key(source: str) -> str:
            return source_key(secret(), source)

        transactions = OpenTransactions(audit, history, approvals)
        connections.watch_closes(transactions.end_of)
        self._services = Services(
            *(connections, audit, history, approvals, ResultCache(), key, clock),
            *(judging_limiter(), statement_rules or _no_rules),
            *(transactions, changes, figures),
        )
        self._handler_parts = handler_parts
        self._handlers = (
            HANDLERS
            | {ReadProfiles: self._read_profiles}
            | {request: from_records(answer) for request, answer in (handlers or {}).items()}
        )
        self._fault_log = FaultLog()
        self.running = RunningCalls()
        self._calls = 0
        self.run_id = f"{int(clock()):x}{os.urandom(4).hex()}"

    async def handle(self, call: Call) -> Reply:
        """Answer one call. Raises: TidegateError, for every call that is refused or fails."""
        self._calls += 1
        ctx = CallContext(self._services, call, f"{self.run_id}-{self._calls:x}")
        self.running[ctx.call_id] = ctx
        try:
            return Reply(await self._answer(ctx), ctx.call_id, ctx.approved)
        except TidegateError as error:
            error.call_id, error.approved = ctx.call_id, ctx.approved
            if error.code is Code.CALL_CANCELLED and call.cancellation.reason == OPERATOR:
                error.message, error.hint = "An operator cancelled the call", BY_OPERATOR
            self._fault_log.note(error, ctx.source.name, ctx.call_id)
            mark_failed(ctx)
            if ctx.source is not NO_SOURCE:
                note_login(ctx.connection, error)
            await release_grant(ctx, error)
            record_failure(ctx, error)
            await save_refusal(ctx, error)
            if call.actor.kind == "agent":
                raise error.without_secrets() from None
            raise
        except asyncio.CancelledError:
            cancelled = TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            mark_failed(ctx)
            await release_grant(ctx, cancelled)
            record_failure(ctx, cancelled)
            raise
        except BaseException as fault:
            fault.add_note(f"call={ctx.call_id}")  # for the line in the log
            failure = TidegateError(Code.INTERNAL, f"A fault: {type(fault).__name__}")
            mark_failed(ctx)
            await release_grant(ctx, failure)
            record_failure(ctx, failure)
            raise
        finally:
            del self.running[ctx.call_id]
            if ctx.transaction is not None:
                leave_transaction(ctx)

    async def _answer(self, ctx: CallContext) -> Any:
        find(ctx)
        enter_transaction(ctx)
        await decide(ctx)
        call, handler = ctx.call, None
        ctx.plan = call.plan
        joins: Joins | None = None
        if call.by_person and ctx.verdict.kind == "allow":
            ctx.verdict = BY_PERSON
        if isinstance(call.request, EngineRequest):
            await connect(ctx)
            if can_join(ctx.engine):
                joins = await find_joined(ctx, self.handle)
            if ctx.data_rules is not None:
                await mask(ctx)
            if has_session_views(ctx.source.dialect):
                await hide_sessions(ctx)
            if joins is not None:
                ctx.rewritten = joins.applied_to(ctx.rewritten)
            await inspect(ctx)
            check_statement(ctx)
            if call.request.names_change:
                await load_change(ctx)
            elif ctx.judgement.effect is not Effect.READ and _watches_changes(ctx):
                await consider_change(ctx)
        else:
            handler = self._handler(ctx)
        if ctx.verdict.kind == "ask" and type(call.request) is not Prepare:
            await approve(ctx)
        if ctx.source.undo != "off" and handler is None and ctx.changes:
            await begin_keeping(ctx)
        ctx.judgement = judgement_of(ctx)
        if handler is None or ctx.judgement.effect > Effect.READ or call.request.recorded_first:
            if call.cancellation.reason is not None:
                raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            await record_intent(ctx)
        if joins is not None:
            await read_joined(ctx, joins, self.handle)
        if ctx.grant:
            await save_outcome(ctx)
        payload = await (run(ctx) if handler is None else handler(ctx))
        if handler is None and ctx.connection.error is not None:
            note_login(ctx.connection, None)
        await record_outcome(ctx, payload)
        if ctx.grant and not ctx.is_held_back:
            await save_outcome(ctx, payload)
        if isinstance(payload, Page) and not ctx.is_held_back:
            add_to_history(ctx, payload.row_count or payload.affected, payload.elapsed_ms)
        if handler is None and call.progress is not None:
            call.progress(1.0, "Done")
        return payload

    async def _read_profiles(self, ctx: CallContext) -> Profiles:
        from tidegate.gateway.profiles import read_profiles  # only who asks for them pays

        return await read_profiles(ctx, self.handle)

    def _handler(self, ctx: CallContext) -> Handler:
        request = type(ctx.call.request)
        handler = self._handlers.get(request)
        if handler is None and request.handler and self._handler_parts is not None:
            answer: RequestHandler = load(request.handler)(self._handler_parts)
            handler = self._handlers[request] = from_records(answer)
        if handler is None:
            raise TidegateError(
                Code.UNSUPPORTED, f"This server has no handler for {request.__name__} requests"
            )
        return handler

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
        ctx = CallContext(self._services, call, "explain")
        explanation = await explain_text(ctx)
        return ctx.judgement, explanation

    async def explain(self, call: Call) -> tuple[Judgement, Explanation]:
        """What the gate would say to a call, and why. Runs nothing and records nothing.

        Raises: TidegateError SOURCE_UNKNOWN, POLICY_IDENTITY, and what opening the source raises.
        """
        ctx = CallContext(self._services, call, "explain")
        explanation = await explain_call(ctx)
        return ctx.judgement, explanation

    def statement_rules(self, source: Source) -> StatementRules | None:
        """The rules for classes of statements of a source, if it has some."""
        return self._services.statement_rules(source)


def _watches_changes(ctx: CallContext) -> bool:
    """Whether changes are kept or limited here."""
    source = ctx.source
    return (
        source.undo != "off"
        or source.max_rows_changed is not None
        or ctx.call.actor.max_rows_changed is not None
    )


async def load_change(ctx: CallContext) -> None:
    from tidegate.gateway.undo import load_change  # for who takes changes back alone

    await load_change(ctx)


async def consider_change(ctx: CallContext) -> None:
    from tidegate.gateway.changes import consider_change  # for sources that keep changes alone

    await consider_change(ctx)


async def begin_keeping(ctx: CallContext) -> None:
    from tidegate.gateway.changes import begin_keeping

    await begin_keeping(ctx)


def _no_rules(source: Source) -> StatementRules | None:
    return None


def _random_key() -> str:
    return os.urandom(32).hex()
