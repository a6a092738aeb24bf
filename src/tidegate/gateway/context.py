"""What is known of one call, from its arrival to its reply.

`Gateway.handle` makes one `CallContext` per call. Each step reads what earlier steps found out and
adds to it. What no step has found out yet has a value that permits nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from tidegate.approvals.approvals import Approvals
from tidegate.audit.sink import Sink
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
from tidegate.model.requests import Browse, Call, EngineRequest, Prepare, Query
from tidegate.model.sources import Identity, Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Effect, Judgement

if TYPE_CHECKING:
    from tidegate.gateway.call_figures import CallFigures
    from tidegate.gateway.open_transactions import OpenTransaction, OpenTransactions
    from tidegate.gateway.source_connection import SourceConnection
    from tidegate.gateway.source_connections import SourceConnections
    from tidegate.undo.undo_log import UndoEntry, UndoLog

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
    """What the steps use, the same for every call of one gateway.

    `masking_key` gives the key of a source's hashed masks by the source's name; `clock` gives Unix
    seconds; `judging` limits the long texts of one actor that are judged at once.
    `statement_rules` gives a source's rules for classes of statements. `transactions` are those
    over several statements, `changes` those whose rows are kept. `figures` counts calls, where
    someone may look at them.
    """

    connections: SourceConnections
    audit: Sink
    history: History
    approvals: Approvals | None
    results: ResultCache
    masking_key: Callable[[str], str]
    clock: Callable[[], float]
    judging: ConcurrencyLimiter
    statement_rules: Callable[[Source], StatementRules | None]
    transactions: OpenTransactions
    changes: UndoLog | None = None
    figures: CallFigures | None = None


class CallContext:
    """One call. Each attribute names the step that sets it.

    `sources` and `source` (find): what the call is about. `connection` is not set for a call
    about several sources. `judgement` (decide, inspect), `verdict` (decide, mask), `language`,
    `identity` and `data_rules` (decide). `engine`, `database` and `request` (connect): `request`
    says where it runs. `rewritten` (mask) is what runs, by the catalog of `schema_version`.
    `text_judgement` and `judged_text` (decide, mask) are what is known of its text alone, and that
    text. `withholds_words` (mask): what the database says of a change that it refuses could quote
    what is hidden. `joined` (join) are the tables of other sources that it names, with their rows
    once they were read. `plan` (approve) is a digest of what the change would send. `grant`
    (approve) is the approval that this call has used up, and `approval` names it in the records.
    `intent_recorded` (record_intent). `sent` (run) says that the engine may have run the request.
    `kind` is the word for the request in the records. `transaction` (join) is the one that the call
    belongs to. `change` (load_change) is the kept one that the request is about.
    `max_rows_changed`, `uncounted` and `reversible` (consider_change) say how many rows a change
    may be about, which of them are not counted, and whether its rows can be put back; `keeper`
    (begin_keeping) keeps them. `rows_counted` (run) are the rows that a change was about, by the
    count that is limited. For those who look while it is under way: `stage` (approve, run) says
    what it waits for, `collected` (run) counts the rows read so far, and `shown_text` is the
    statement without secrets, once it was asked for.
    """

    __slots__ = (
        "_began",
        "_report",
        "approval",
        "approved",
        "call",
        "call_id",
        "change",
        "collected",
        "connection",
        "data_rules",
        "database",
        "dry_run",
        "engine",
        "grant",
        "identity",
        "intent_recorded",
        "joined",
        "judged_text",
        "judgement",
        "keeper",
        "kind",
        "language",
        "max_rows_changed",
        "plan",
        "request",
        "reversible",
        "rewritten",
        "rows_counted",
        "schema_version",
        "sent",
        "services",
        "shown_text",
        "source",
        "sources",
        "stage",
        "started_at",
        "text_judgement",
        "transaction",
        "uncounted",
        "verdict",
        "withholds_words",
    )

    connection: SourceConnection
    engine: Engine
    request: EngineRequest
    rewritten: EngineRequest

    def __init__(self, services: Services, call: Call, call_id: str) -> None:
        self.services = services
        self.call = call
        self.call_id = call_id
        self.kind = ""
        self.dry_run = False
        self.started_at = services.clock()
        self._began = time.perf_counter()
        self.source = NO_SOURCE
        self.sources: tuple[Source, ...] = ()
        self.language: Language | None = None
        self.judgement = UNJUDGED
        self.text_judgement = UNJUDGED
        self.judged_text: str | None = None
        self.schema_version: str | None = None
        self.verdict = UNDECIDED
        self.identity: Identity | None = None
        self.data_rules: DataRules | None = None
        self.database = ""
        self.approval = ""
        self.approved = False
        self.grant = ""
        self.plan = ""
        self.joined: tuple[JoinedTable, ...] = ()
        self.sent = False
        self.change: ChangeEntry | None = None
        self.reversible: Reversibility | None = None
        self.max_rows_changed: int | None = None
        self.uncounted = ""
        self.rows_counted = 0
        self.keeper: UndoEntry | None = None
        self.transaction: OpenTransaction | None = None
        self.intent_recorded = False
        self.stage: Literal["", "waiting", "queued"] = ""
        self.collected: Collected | None = None
        self.shown_text: str | None = None
        self.withholds_words = False
        self._report = None if call.progress is None else UpstreamProgress(call.progress)

    def for_dry_run(self, request: EngineRequest) -> CallContext:
        """A context for trying `request`, with records of its own."""
        tried = CallContext(self.services, self.call, f"{self.call_id}-dry")
        tried.kind, tried.dry_run = "dry_run", True
        tried.source, tried.sources, tried.connection = self.source, self.sources, self.connection
        tried.judgement, tried.verdict = self.judgement, self.verdict
        tried.text_judgement, tried.judged_text = self.text_judgement, self.judged_text
        tried.language, tried.plan = self.language, self.plan
        tried.engine, tried.identity, tried.database = self.engine, self.identity, self.database
        tried.request = tried.rewritten = request
        tried.withholds_words = self.withholds_words
        tried._report = None  # a person is asked next, and progress does not go back
        return tried

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    @property
    def changes(self) -> bool:
        """Whether the call could change data, as far as is known."""
        return self.judgement.effect > Effect.READ

    @property
    def is_held_back(self) -> bool:
        """Whether what becomes of the call is known when its transaction ends."""
        if self.transaction is None:
            return False
        return self.changes and isinstance(self.call.request, Query)

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
            allowed = kind == "allow" or (kind == "ask" and (self.approved or self.dry_run))
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
            self.schema_version,
            self.plan,
            self.joined,
            self._report,
            bool(self.grant),
            self.max_rows_changed,
            self.keeper,
            self._whole_changes() if self.text_judgement.touches else "",
        )

    def _whole_changes(self) -> Literal["", "confirm", "deny"]:
        """What becomes of a change if it turns out to be about every row."""
        source = self.source
        if source.unqualified == "allow":
            return ""
        if source.unqualified == "confirm" and (self.approved or self.dry_run):
            return ""  # a person was shown how many rows change
        return "" if self.services.statement_rules(source) is not None else source.unqualified
