"""What is known of one call, from its arrival to its reply.

`Gateway.handle` makes one `CallContext` per call. Each step reads what earlier steps found out and
adds to it. What no step has found out yet has a value that permits nothing. What one feature alone
needs is a small frozen struct: a step replaces it with another.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

import msgspec

from tidegate.approvals.approvals import Approvals
from tidegate.audit.event import Event
from tidegate.audit.sink import Sink
from tidegate.budgets.ledger import BudgetLedger
from tidegate.budgets.spending import Spending
from tidegate.engines.api import Engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.gateway.result_cache import ResultCache
from tidegate.gateway.upstream_progress import UpstreamProgress
from tidegate.history.history import History
from tidegate.model.changes import ChangeEntry, Reversibility
from tidegate.model.data_rules import DataRules
from tidegate.model.decisions import Permit, Verdict
from tidegate.model.joined_tables import JoinedTable
from tidegate.model.language import Language
from tidegate.model.replies import Reply
from tidegate.model.requests import (
    Browse,
    Call,
    EngineRequest,
    Explain,
    Prepare,
    Query,
    Request,
)
from tidegate.model.sources import Identity, Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Effect, Judgement
from tidegate.tracing import StatementTrace, Trace

if TYPE_CHECKING:
    from tidegate.gateway.carried_results import CarriedResults
    from tidegate.gateway.choices import Choices
    from tidegate.gateway.joined_tables import Joins
    from tidegate.gateway.open_transactions import OpenTransaction, OpenTransactions
    from tidegate.gateway.source_connection import SourceConnection
    from tidegate.gateway.source_connections import SourceConnections
    from tidegate.history.undo_log import UndoEntry, UndoLog

Handler = Callable[["CallContext"], Awaitable[Any]]
"""Answers a request that needs no engine."""

NO_SOURCE = Source("", "", "", "", "", access="none")
"""The source of a call before one is found, and of a call about several."""
UNJUDGED = Judgement(Effect.UNKNOWN, "gate.unjudged", "The call has not been judged")
UNDECIDED = Verdict("deny", "gate.undecided", "The call has not been decided on")


class Collected(Protocol):
    """What takes the rows of a result."""

    @property
    def row_count(self) -> int:
        """The rows taken so far."""
        ...


class Services(NamedTuple):
    """What the steps use, the same for every call of one gateway."""

    connections: SourceConnections
    audit: Sink
    history: History
    approvals: Approvals | None
    results: ResultCache
    masking_key: Callable[[str], str]
    """The key of a source's hashed masks, by the source's name."""
    clock: Callable[[], float]
    """Unix seconds."""
    judging: ConcurrencyLimiter
    """Limits the long texts of one actor that are judged at once."""
    statement_rules: Callable[[Source], StatementRules | None]
    """A source's rules for classes of statements, if it has some."""
    transactions: OpenTransactions
    """Those over several statements."""
    handle: Callable[[Call], Awaitable[Reply]]
    """The gate itself, for steps that send calls of their own for the same caller."""
    handler_of: Callable[[type[Request]], Handler]
    """What answers a request that needs no engine. Raises: TidegateError UNSUPPORTED."""
    changes: UndoLog | None = None
    """The changes whose rows are kept."""
    observers: Sequence[Callable[[Event], None]] = ()
    """Are given what is recorded of each call that has ended, on its way: they must be quick."""
    budgets: BudgetLedger | None = None
    """What calls cost."""
    carried: CarriedResults | None = None
    """The results that other processes on the state may be asked for."""
    choices: Choices | None = None
    """What callers have chosen at any process on the state."""


class ApprovalState(msgspec.Struct, frozen=True):
    """What is known of a person's approval of the call. Set by the approval's steps."""

    id: str = ""
    """The approval that was asked for or used, as the records name it."""
    grant: str = ""
    """The approval that this call has used up. It is given back if the call did not run."""
    granted: bool = False
    """Whether a person has approved exactly this call."""
    plan: str = ""
    """A digest of what the change would send, to which the approval is bound."""


class ChangeState(msgspec.Struct, frozen=True):
    """What holds for a change of rows. Set by the steps of `gateway.changes` and `gateway.undo`."""

    undone: ChangeEntry | None = None
    """The kept change that the request is about."""
    max_rows: int | None = None
    """How many rows the change may be about; None: any number."""
    uncounted: str = ""
    """Which of its rows are not counted before it is committed; empty if all are."""
    reversible: Reversibility | None = None
    """Whether its rows can be put back; None if that was not asked."""
    keeper: UndoEntry | None = None
    """Keeps its rows."""
    rows_counted: int = 0
    """The rows that it was about, by the count that is limited."""


class MaskingState(msgspec.Struct, frozen=True):
    """What follows from the rules that hide data from the caller. Set by `masking.mask`."""

    withholds_words: bool = False
    """Whether what the database says of a change that it refuses could quote what is hidden."""
    schema_version: str | None = None
    """The version of the catalog by which the request was rewritten, where the engine checks it."""


_NO_CONNECTION = cast("SourceConnection", None)
_NO_ENGINE = cast("Engine", None)
_NO_REQUEST = cast("EngineRequest", None)
_NOT_APPROVED = ApprovalState()
_NO_CHANGE = ChangeState()
_NOT_MASKED = MaskingState()


class CallContext(msgspec.Struct, eq=False):
    """One call. What every call needs comes first; what follows belongs to one feature each."""

    services: Services
    call: Call
    call_id: str
    started_at: float
    """Unix seconds."""
    began: float
    """By `time.perf_counter`."""
    report: UpstreamProgress | None = None
    """Takes what a statement has sent to providers, for a caller who wants to see progress."""
    source: Source = NO_SOURCE
    """The source that the call is about. Set by `find`."""
    sources: tuple[Source, ...] = ()
    """All that the call is about. Set by `find`."""
    connection: SourceConnection = _NO_CONNECTION
    """Set by `find`; not for a call about several sources."""
    language: Language | None = None
    """The language in which the request was judged, if it was by its text. Set by `decide`."""
    judgement: Judgement = UNJUDGED
    """What the request would do. Set by `decide`, raised by `inspect`."""
    text_judgement: Judgement = UNJUDGED
    """What is known of the text alone that runs. Set by `decide` and `mask`."""
    judged_text: str | None = None
    """That text."""
    verdict: Verdict = UNDECIDED
    """What the policy says. Set by `decide`; a step that refuses or asks sets its own."""
    identity: Identity | None = None
    """Who the caller is to the database. Set by `decide`."""
    data_rules: DataRules | None = None
    """What is hidden from the caller. Set by `decide`."""
    engine: Engine = _NO_ENGINE
    """The open engine. Set by `connect`."""
    database: str = ""
    """Where the request runs. Set by `connect`."""
    request: EngineRequest = _NO_REQUEST
    """The caller's request, with the database and schema where it runs. Set by `connect`."""
    rewritten: EngineRequest = _NO_REQUEST
    """What runs in its place. Set by `connect`, and by steps that rewrite."""
    handler: Handler | None = None
    """What answers a request that needs no engine. Set by `find_handler`."""
    intent_recorded: bool = False
    """Whether the call may run. Set by `record_intent`."""
    sent: bool = False
    """Whether the engine may have run the request. Set by `run`."""
    payload: Any = None
    """The answer. Set by `run` and `answer`."""
    stage: Literal["", "waiting", "queued"] = ""
    """What the call waits for, for those who look. Set by `approve` and `run`."""
    collected: Collected | None = None
    """Counts the rows read so far, for those who look. Set by `run`."""
    shown_text: str | None = None
    """The statement without secrets, once an operator has asked for it (`running_calls`)."""
    dry_run: bool = False
    """Whether this is the trial of a change, with records of its own (`approval.try_change`)."""
    approval: ApprovalState = _NOT_APPROVED
    masking: MaskingState = _NOT_MASKED
    transaction: OpenTransaction | None = None
    """The transaction over several statements that the call belongs to."""
    joins: Joins | None = None
    """What the statement reads of other sources. Set by `find_joined`."""
    joined: tuple[JoinedTable, ...] = ()
    """The tables of `joins`, with their rows once they were read."""
    change: ChangeState = _NO_CHANGE
    spending: Spending | None = None
    """What it holds of budgets. Set by `reserve`, until they are paid."""
    run_began: float = 0.0
    """When a call that costs budgets began to run, by `time.perf_counter`. Set by `run`."""
    trace: Trace | None = None
    """The trace that it belongs to, while a product traces."""
    begins_trace: bool = False
    """Whether it has begun that itself."""
    statement_trace: StatementTrace | None = None
    """What the database runs at this moment. Set by `run`."""

    @classmethod
    def begin(cls, services: Services, call: Call, call_id: str) -> CallContext:
        """The context of a call that has arrived."""
        ctx = cls(services, call, call_id, services.clock(), time.perf_counter())
        if call.progress is not None:
            ctx.report = UpstreamProgress(call.progress)
        if call.plan:
            ctx.approval = ApprovalState(plan=call.plan)
        return ctx

    def for_dry_run(self, request: EngineRequest) -> CallContext:
        """A context for trying `request`, with records of its own."""
        services = self.services
        return CallContext(
            *(services, self.call, f"{self.call_id}-dry", services.clock(), time.perf_counter()),
            source=self.source,
            sources=self.sources,
            connection=self.connection,
            language=self.language,
            judgement=self.judgement,
            text_judgement=self.text_judgement,
            judged_text=self.judged_text,
            verdict=self.verdict,
            identity=self.identity,
            engine=self.engine,
            database=self.database,
            request=request,
            rewritten=request,
            dry_run=True,
            approval=ApprovalState(plan=self.approval.plan),
            masking=MaskingState(self.masking.withholds_words),
            trace=self.trace,
        )  # without `report`: a person is asked next, and progress does not go back

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000

    @property
    def may_change(self) -> bool:
        """Whether the call could change data, as far as is known."""
        return self.judgement.effect > Effect.READ

    @property
    def is_held_back(self) -> bool:
        """Whether what becomes of the call is known when its transaction ends."""
        if self.transaction is None:
            return False
        return self.may_change and isinstance(self.call.request, Query)

    def permit(self, request: EngineRequest) -> Permit:
        """A permit to run `request` on the engine. No other code makes permits.

        Metadata, and preparing a query, need a call that was not refused. All else needs an intent
        on record, and a verdict of allow; one of ask is enough for a dry run, or once a person has
        approved.
        Raises: TidegateError INTERNAL if a step is missing.
        """
        kind = self.verdict.kind
        if isinstance(request, (Browse, Prepare)):
            effect, missing = Effect.READ, kind == "deny"
        else:
            effect = self.judgement.effect
            allowed = kind == "allow" or (kind == "ask" and (self.approval.granted or self.dry_run))
            missing = not (allowed and self.intent_recorded)
        if missing:
            raise TidegateError(Code.INTERNAL, "A permit was asked for before the call was allowed")
        return Permit(
            self.call_id,
            self.call.actor,
            self.source,
            request,
            effect,
            request.limits,
            self.identity,
            self.text_judgement,
            self.judged_text,
            self.masking.schema_version,
            self.approval.plan,
            self.joined,
            self.report,
            bool(self.approval.grant),
            self.change.max_rows,
            self.change.keeper,
            self._whole_changes() if self.text_judgement.touches else "",
        )

    def permit_plan(self, request: Query | Explain, judgement: Judgement) -> Permit:
        """A permit to have the database plan, and not run, what the call may run: `request` is an
        EXPLAIN of it, and `judgement` that of its text. Raises: TidegateError INTERNAL if it does
        more than the call."""
        if self.verdict.kind not in ("allow", "ask") or judgement.effect > self.judgement.effect:
            raise TidegateError(
                Code.INTERNAL, "A plan was asked for of a call that was not allowed"
            )
        return Permit(
            self.call_id,
            self.call.actor,
            self.source,
            request,
            # Some engines explain a change only where they would make it.
            Effect.READ if isinstance(request, Explain) else self.judgement.effect,
            request.limits,
            self.identity,
            judgement,
            request.statement.text,
        )

    def _whole_changes(self) -> Literal["", "confirm", "deny"]:
        """What becomes of a change if it turns out to be about every row."""
        source = self.source
        if source.unqualified == "allow":
            return ""
        if source.unqualified == "confirm" and (self.approval.granted or self.dry_run):
            return ""  # a person was shown how many rows change
        return "" if self.services.statement_rules(source) is not None else source.unqualified
