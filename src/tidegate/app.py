"""The composition root: from settings to a whole gate. The only place that knows every class.

`App.open` reads no database and starts no thread, so a command pays only for what it uses. Which
edges run, and how they end, is the business of `tidegate.serve`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tidegate.approvals.approvals import Approvals, Identities
from tidegate.audit.activity import ActivityIndex
from tidegate.audit.chain_uses import NONCE_USED
from tidegate.audit.event import Event
from tidegate.audit.gate_lease import GateLease
from tidegate.audit.log import AuditLog
from tidegate.audit.proof import Prover
from tidegate.audit.server_events import ServerAudit
from tidegate.audit.shipped import ShippedSegments
from tidegate.budgets.budgets import Budgets
from tidegate.budgets.budgets import Records as BudgetRecords
from tidegate.budgets.ledger import BudgetLedger
from tidegate.conditions import Conditions
from tidegate.config.file_permissions import require_private_file
from tidegate.config.model import Config
from tidegate.config.oauth import resource_url
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory, state_key, state_url
from tidegate.edges.listening import Sockets
from tidegate.engines.api import Engine
from tidegate.engines.common.state_databases import look_for_states
from tidegate.engines.registry import open_engine
from tidegate.errors import TidegateError
from tidegate.gateway.call_figures import CallFigures
from tidegate.gateway.configured_sources import load_sources, source_from_settings
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.handlers import HandlerParts, Handlers, RequestHandler, prepare_source
from tidegate.gateway.other_processes import OtherProcesses
from tidegate.gateway.shared_sessions import SharedSessions
from tidegate.gateway.source_connections import (
    NoSavedSources,
    SourceConnections,
)
from tidegate.gateway.temporary_sources import TemporarySources
from tidegate.history.history import History
from tidegate.history.undo_log import UndoLog
from tidegate.identity.authenticator import Authenticator, Verifier
from tidegate.identity.bridge_tokens import PREFIX as BRIDGE_PREFIX
from tidegate.identity.bridge_tokens import SEPARATOR, BridgeTokens, restrict
from tidegate.identity.builtin_actors import ANONYMOUS, BUILTIN, stdio
from tidegate.identity.granted_rights import GrantedRights
from tidegate.identity.lockout import Lockout
from tidegate.identity.operator_passphrase import OperatorPassphrase
from tidegate.identity.operators import Operators
from tidegate.identity.pairing import PairingService
from tidegate.identity.token_files import TokenFiles
from tidegate.identity.tokens import Records, Tokens, check_token
from tidegate.model.actors import Actor
from tidegate.model.changes import ListChanges
from tidegate.model.deadlines import Clocks
from tidegate.model.requests import (
    CloseTemporary,
    OpenTemporary,
    Request,
    SearchHistory,
)
from tidegate.model.sources import Source
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Server, Settings
from tidegate.protocol.request_state import RequestState
from tidegate.protocol.session_ids import SessionIds
from tidegate.protocol.tasks import CANCEL_TASK, Tasks, TaskTimes
from tidegate.readiness import Readiness
from tidegate.search.embeddings.embedder import Embedder
from tidegate.search.requests import EmbedTexts
from tidegate.secrets.readers import use_settings
from tidegate.service import Service
from tidegate.siblings import Siblings
from tidegate.store.calls import change_state
from tidegate.store.carried import CarriedValues
from tidegate.store.messages import Mailbox
from tidegate.store.opening import open_state
from tidegate.store.records import operator_of
from tidegate.store.secret_file import GateSecrets
from tidegate.surfaces.registry import (
    SURFACES,
    add_installed,
    check_surfaces,
    open_surface,
    statement_rules,
)
from tidegate.surfaces.surface import Surface
from tidegate.tracing import Tracing
from tidegate.webhook.sender import WebhookSender
from tidegate.workspace.saved_queries import SavedQueries
from tidegate.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tidegate.gateway.carried_results import CarriedResults
    from tidegate.gateway.choices import Choices

logger = logging.getLogger("tidegate.state")


class App:
    """Everything wired together for one process. `default_actor` is who acts, on record, where an
    event names no actor: `cli` or `server`. `siblings` are the other workers of the gate."""

    def __init__(
        self,
        config: Config,
        directory: Path,
        default_actor: str = "cli",
        siblings: Siblings | None = None,
        *,
        repairs_seals: bool = False,
    ) -> None:
        self.config = config
        self.siblings = siblings or Siblings()
        self.sockets = Sockets()
        """Where this process listens: at sockets that it was given, or that it binds."""
        self.directory = directory
        self.default_actor = default_actor
        use_settings(config.sections)
        self._open_state(repairs_seals)
        self._open_record()
        records = Records(self.server_audit.record, self.server_audit.record_done)
        clocks = Clocks(wall=self.state.now)
        self._open_callers(records, clocks)
        self._open_people(clocks)
        self._open_questions(clocks)
        self._open_calls(records)
        self._meet_others()

    def _open_state(self, repairs_seals: bool) -> None:
        """What all gates share, and the lease of this one's id. Raises: TidegateError STATE_FAILED,
        CONFIG_INVALID."""
        config, directory = self.config, self.directory
        database = state_url(config.state_url)
        self.cluster_key = state_key(config.state_key, database)
        """Of all gates of this state; None for a state in a file that has none."""
        self.secrets = GateSecrets(directory, self.cluster_key)
        self.state = open_state(database, directory, self.cluster_key, is_repair=repairs_seals)
        if database is not None:
            look_for_states()
        self.state.seals.tell_by(self._tell_of_row)
        self.lease: GateLease | None = None
        """That of this gate's id, where gates share the state."""
        if database is not None:
            self.lease = self._take_lease()

    def _open_record(self) -> None:
        """The record of this gate, and what is read of it."""
        directory = self.directory
        self.history = History(self.state.history, self.state.now)
        self.audit = AuditLog(
            directory / "audit",
            settings=self.config.audit,
            keys=directory / "audit-key",
            is_shipped=ShippedSegments(self.state.shipping, directory / "audit").have,
        )
        self.server_audit = ServerAudit(
            self.audit,
            self.default_actor,
            self.state.shared,
            self.name_of,
            make_room=self.state.reserve.release,
        )

    def _open_callers(self, records: Records, clocks: Clocks) -> None:
        """Who may call, and the sources that they may call about. Raises: TidegateError
        SOURCE_URL."""
        config = self.config
        self.token_files = TokenFiles(
            [Path(each) for each in config.token_files],
            check=check_token,
            accounts=config.agent_accounts,
            **({"note": self.server_audit.record} if self.default_actor == "server" else {}),
        )
        self.tokens = Tokens(
            self.state.tokens,
            records=records,
            files=self.token_files if config.token_files else None,
            clock=self.state.now,
        )
        self.granted_rights = GrantedRights(self.state, self.tokens)
        self.pairing_service = PairingService(
            self.state.pairings,
            self.tokens,
            records=records,
            tell=self.server_audit.record_anonymous,
            owners=lambda: [each.name for each in self.operators.list()],
            shared=self.state.shared,
            clocks=clocks,
        )
        self.connections = SourceConnections(
            self.state.sources, self._open_engine, *load_sources(config, self.directory)
        )
        self.bridge_tokens = BridgeTokens(
            config.bridge,
            self.server_audit.record,
            sources=self.connections.sources,
            key=self.siblings.secret,
        )

    def _open_people(self, clocks: Clocks) -> None:
        """Who signs in at the console, and what they keep there."""
        self.operator_passphrase = OperatorPassphrase(self.directory / "operator.json")
        self.workspace = Workspace(
            self.state.windows,
            operators=lambda: [each.name for each in self.state.operators.list()],
        )
        self.saved_queries = SavedQueries(self.state.queries)
        self.operators = Operators(
            self.state.operators,
            note=self.server_audit.record_as,
            note_done=self.server_audit.record_done_as,
            note_anonymous=self.server_audit.record_anonymous,
            lockout=self._lockout("console"),
            clocks=clocks,
        )
        self.console_address = ""
        """Where this process serves the console; empty if it does not."""

    def _open_questions(self, clocks: Clocks) -> None:
        """What waits for a person, or longer than its client does."""
        config = self.config

        def console() -> str:
            return config.console.origin or self.console_address

        def served_console() -> str:
            return console() if self.console_address else ""

        self.approvals = Approvals(
            self.state.approvals,
            config.approvals,
            note=self.server_audit.record_as,
            note_done=self.server_audit.record_done_as,
            identities=Identities(self.name_of, self.operators.list, self.tokens.revoked),
            console=served_console,
            clocks=clocks,
        )
        self.approvals.follow(self.state.versions)
        times = config.tasks
        self.tasks = Tasks(
            *(self.state.tasks, TaskTimes(times.after_s, times.answer_s, times.keep_s)),
            *(change_state, self.state.now, self.siblings.share.number),
        )
        self.state.versions.load_with("tasks", self.tasks.load_elsewhere)
        if self.is_shared:
            from tidegate.surfaces.carried_outcomes import CarriedOutcomes

            self.tasks.outcomes = CarriedOutcomes(self.carried("outcomes"))
        self.webhook = WebhookSender(
            self.state.webhook,
            config.approvals.webhook,
            address=console,
            note=self.server_audit.record_done,
            clock=self.state.now,
        )
        self.settings_listeners: list[Callable[[Config], None]] = [
            lambda config: self.webhook.use(config.approvals.webhook)
        ]
        """Called with settings that were read again, when they take effect."""
        self.refresh_settings: Callable[[], None] | None = None
        """Reads the settings again if their file has changed, in microseconds; None where no file
        gave them."""

    def _open_calls(self, records: Records) -> None:
        """What a call passes, and what is seen of it."""
        config = self.config
        self.embedder = Embedder(config.embeddings, self.state.questions)
        self.undo_log = UndoLog(
            self.state.changes,
            config.undo,
            partial(self.secrets.read, "undo"),
            former=self.secrets.former_undo,
            clock=self.state.now,
        )
        self.budgets = Budgets(self.state.budgets, BudgetRecords(*records), self.state.now)
        self.budget_ledger = BudgetLedger(self.state.budgets, self.state.now)
        """What calls of this process cost."""
        self.services: list[Service] = []
        """What runs beside the edges of this process (`Product.service`)."""
        self.conditions = Conditions(
            *(self.audit, self.lease, self.tokens, self.token_files, self.budget_ledger),
            *(self.connections, self.state, self.webhook, self.services),
        )
        self.readiness = Readiness(
            self.conditions.known_failures,
            {
                "audit": self.audit.try_writing,
                "state": self._try_state,
            },
        )
        self.figures = CallFigures()
        """Counts the calls of this process, if it serves the console."""
        self.call_observers: list[Callable[[Event], None]] = (
            [self.figures.observe] if config.console.enabled else []
        )
        """Are given what is recorded of each call that has ended; see `gateway.GatewayOptions`."""
        self.tracing = Tracing()
        """Has the tracer while a product traces calls."""
        self.certificate_ends: list[Callable[[], float]] = []
        """Give, as Unix seconds, until when the certificates are good that this process shows."""
        self.gateway = self._make_gateway()

    def _try_state(self) -> None:
        """See that the state has what every call needs of it. Raises: TidegateError."""
        self.state.try_writing()
        self.state.budgets.list()

    def _meet_others(self) -> None:
        """What the processes on the state tell each other."""
        self.mailbox = Mailbox(
            *(self.state.messages, self.state.versions, self.gateway.run_id, self.state.now),
            key=self.cluster_key.derive("messages") if self.cluster_key is not None else None,
        )
        self.other_processes = OtherProcesses(
            *(self.mailbox, self.gateway.running, self.connections.source_of),
            "" if self.lease is None else self.lease.id,
        )
        self.shared_sessions = SharedSessions(
            self.state, self.siblings, self.mailbox, reaches_gates=self.lease is not None
        )
        self.tasks.cancel_elsewhere = partial(self.mailbox.send, CANCEL_TASK)
        self.mailbox.handle(CANCEL_TASK, lambda sender, body: self.tasks.cancel_by(body))

    @classmethod
    def open(
        cls,
        config: Config,
        default_actor: str = "cli",
        siblings: Siblings | None = None,
        *,
        repairs_seals: bool = False,
    ) -> App:
        """Wire everything. In a repair all rows of the state count. Raises: TidegateError
        CONFIG_INVALID, STATE_FAILED, SOURCE_URL."""
        check_surfaces(config)
        directory = state_directory(config.state)
        if config.agent_accounts:
            require_private_file(directory, config.agent_accounts)
        return cls(config, directory, default_actor, siblings, repairs_seals=repairs_seals)

    def _take_lease(self) -> GateLease:
        """Before the first line is written: a copy of a gate must not go on with its record.
        Raises: TidegateError STATE_FAILED."""
        serves = self.default_actor == "server"
        try:
            lease = GateLease(self.state, self.directory, self.siblings.share.count * serves)
            lease.take()
        except BaseException:
            self.state.close()
            raise
        self.state.versions.work_with(lease.renew)
        return lease

    @cached_property
    def parts(self) -> HandlerParts:
        """What products make their handlers and engines of."""
        return HandlerParts(self.connections, self.config, self.directory, self.state, {})

    @cached_property
    def activity_index(self) -> ActivityIndex:
        """The index of the audit log, for the console."""
        return ActivityIndex(self.directory / "activity.db", self.directory / "audit")

    @cached_property
    def prover(self) -> Prover:
        """What proves lines of the audit log, for the console."""
        return Prover(self.directory / "audit", self.directory / "audit-key")

    def _make_gateway(self) -> Gateway:
        return Gateway(
            self.connections,
            self.audit,
            self.history,
            approvals=self.approvals,
            clock=self.state.now,
            handlers=Handlers(self._handlers(), self.parts),
            options=GatewayOptions(
                partial(self.secrets.read, "mask"),
                statement_rules(self.config),
                self.undo_log,
                self.call_observers,
                self.budget_ledger,
                self.tracing,
                self.state.versions,
                self.config.state_grace_s,
                *(self._carried_results(), self._shared_choices()),
            ),
        )

    def _shared_choices(self) -> Choices | None:
        if not self.is_shared:
            return None
        from tidegate.gateway.choices import Choices

        surfaces = frozenset([name for name, each in SURFACES.items() if each.keeps_choices])
        return Choices(self.carried("choices"), surfaces, self.place)

    def _carried_results(self) -> CarriedResults | None:
        if not self.is_shared:
            return None
        from tidegate.gateway.carried_results import CarriedResults

        return CarriedResults(self.carried("rows"), self.place)

    def _handlers(self) -> dict[type[Request], RequestHandler]:
        """What answers the requests that need no engine."""
        temporary = TemporarySources(self.connections, self.config.temporary_sources)
        return {
            ListChanges: self.undo_log.answer,
            SearchHistory: self.history.answer,
            EmbedTexts: self.embedder.answer,
            OpenTemporary: temporary.open,
            CloseTemporary: temporary.close,
            **self.workspace.handlers,
            **self.saved_queries.handlers,
        }

    def _lockout(self, kind: str) -> Lockout:
        """Counts failures of this kind, with every server on the state."""
        settings = self.config.lockout
        return Lockout(
            *(settings.failures, settings.window_s, settings.lock_s),
            shared=self.state.shared,
            kind=kind,
        )

    def gate_before(self, source: Source) -> tuple[Gateway, SourceConnections]:
        """A gate of its own before one source that is not saved, with the record of this process,
        and the connections that the caller closes."""
        connections = SourceConnections(NoSavedSources(), self._open_engine, (source,))
        return Gateway(connections, self.audit, self.history), connections

    async def _open_engine(self, source: Source) -> Engine:
        """Raises: as `registry.open_engine`, and as the engine's `preparer`."""
        return await open_engine(await prepare_source(self.parts, source))

    @cached_property
    def authenticator(self) -> Authenticator:
        """For callers over HTTP: our tokens, those of bridges, and those of the authorization
        server of the settings. Raises: TidegateError if a package for that is missing."""
        return Authenticator(
            self.tokens,
            self.server_audit.record_anonymous,
            verifier=self._oauth_verifier(),
            bridge=self.bridge_tokens,
            shared=self.state.shared,
            lockout=self._lockout("login"),
            clock=self.state.now,
        )

    @cached_property
    def authenticate(self) -> Callable[[str | None, str], Actor | Awaitable[Actor]]:
        """Gives the actor of a call over HTTP, as `Authenticator.authenticate`; without
        authentication (`auth = false`) an anonymous caller."""
        return self.authenticator.authenticate if self.config.auth else _anonymous

    def callers_without_token(self) -> tuple[tuple[Actor, str], ...]:
        """The callers that hold no token of ours, each with where its rights are kept."""
        writes = "--allow-writes" if self.config.allow_writes else "started without --allow-writes"
        callers = [(stdio(self.config.allow_writes), f"how a server on stdio is started: {writes}")]
        if self.config.auth:
            if self.config.bridge.enabled:
                callers.append((self.bridge_tokens.actor(), "`bridge` in the settings file"))
        else:
            callers.append((ANONYMOUS, "the program: without `auth` a caller reads, and no more"))
        return tuple(callers)

    @property
    def count_request(self) -> Callable[[str], None] | None:
        """Counts the requests of an address over HTTP; None if there may be any number."""
        rate = self.config.request_rate
        if rate.per_minute is None:
            return None
        from tidegate.identity.request_rate import RequestRate

        record = self.server_audit.record_anonymous
        share = self.siblings.share
        return RequestRate(rate.per_minute, rate.burst, record, share=share).check

    def _oauth_verifier(self) -> Verifier | None:
        settings = self.config.oauth
        if settings is None:
            return None
        from tidegate.identity.oauth import OAuth  # needs an extra

        names = {resource_url(settings, path) for path in surface_paths(self.config)}
        return OAuth(settings, frozenset(names | {*settings.audience}))

    def _tell_of_row(self, text: str) -> None:
        """Record that a row of the state is refused. On a thread of its own: the one that has found
        it is within a transaction of the state."""

        def tell() -> None:
            logger.warning("%s", text)
            self.server_audit.record_done("state.row_refused", {"row": text})

        Thread(target=tell, name="tidegate-seals", daemon=True).start()

    def declare(self, settings: SourceSettings) -> Source:
        """The source that these settings describe. Raises: TidegateError as `open`."""
        return source_from_settings(settings)

    def surface(self, name: str, variant: str | None = None) -> Surface:
        """A surface by name, imported now, in one of its variants if one is named."""
        note = self.server_audit.record_rejected
        return open_surface(name, self.gateway, self.config, note, variant)

    def kernel(
        self, server: Server, settings: Settings, name: str, *, keeps_choices: bool = False
    ) -> Kernel:
        """A kernel that serves `server`. Where several processes on one state serve it under the
        same name, a client may answer to one of them what another one asked, once, and have its
        session at any. A server that is alone keeps choices in its memory: there a session that
        `keeps_choices` ends with it, since they would be lost without a word."""
        shared, kind = self.state.shared, f"request state of {name}"

        async def key() -> bytes:
            return await change_state(shared.secret, kind)

        def use(nonce: str, expires_at: float, now: float) -> bool:
            if not shared.use_once(kind, nonce, expires_at, now):
                return False
            # `audit verify` sees by it that no two gates have taken it.
            self.server_audit.record_done(NONCE_USED, {"nonce": nonce})
            return True

        async def use_once(nonce: str, expires_at: float, now: float) -> bool:
            return await change_state(use, nonce, expires_at, now)

        seal = RequestState(key, use_once, clock=self.state.now)
        sessions = self.shared_sessions
        ids = SessionIds(sessions.key, name, sessions.links, clock=self.state.now)
        known = None if keeps_choices and not self.is_shared else ids
        return Kernel(server, settings, seal, self.tasks, self.tracing, known)

    def name_of(self, actor: str) -> str:
        """The name of an actor, by its id; empty if it is not known. Never raises: a record is
        made without a name rather than not at all."""
        if actor.partition("-")[0] in BUILTIN:
            return actor.partition("-")[0]
        if name := operator_of(actor):
            return name
        with suppress(TidegateError):
            return next((token.name for token in self.tokens.list() if token.id == actor), "")
        return ""

    def note(self, name: str, details: Mapping[str, str]) -> None:
        """Record what is about to be done. Raises: TidegateError AUDIT_UNAVAILABLE."""
        self.server_audit.record(name, details)

    def note_less(self, name: str, details: Mapping[str, str]) -> None:
        """Record what takes rights away, later if the log cannot be written: it is done in any
        case. Never raises."""
        self.server_audit.record_done(name, details)

    @property
    def is_shared(self) -> bool:
        """Whether a caller's next call may come to another process."""
        return self.lease is not None or self.siblings.are_there

    @property
    def place(self) -> str:
        """This process among those on the state, in words."""
        number = self.siblings.share.number
        worker = f"worker {number}" if number else ""
        gate = "" if self.lease is None else f"the gate {self.lease.id}"
        return " of ".join(filter(None, (worker, gate))) or "this server"

    def carried(self, kind: str) -> CarriedValues:
        """What callers' later calls need, of one kind, for all processes on the state."""
        secret = partial(self.secrets.read, "carried")
        return CarriedValues(self.state.carried, kind, secret, self.state.now)

    async def close(self) -> None:
        """Close sources and models, then the records. Safe to call twice."""
        await self.tasks.settled()
        await self.connections.close()
        await self.budget_ledger.close()
        await self.embedder.close()
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        """Write what waits to be written, and close what is open on disks."""
        if "activity_index" in self.__dict__:
            self.activity_index.close()
        self.tokens.close()
        self.history.close()
        self.audit.close()
        if self.lease is not None:
            self.lease.close()
        self.state.close()


def surface_paths(config: Config) -> dict[str, str]:
    """The surface at each HTTP path. Every surface has a path of its own and those of its
    variants, unless the settings name those to serve; the first is at `/mcp`, too."""
    if not config.surfaces:
        add_installed()
    names = config.surfaces or tuple(SURFACES)
    variants = {each.path: name for name in names for each in SURFACES[name].variants}
    return {"/mcp": names[0], **{f"/mcp/{name}": name for name in names}, **variants}


def _anonymous(bearer: str | None, address: str) -> Actor:
    """The actor of a server without authentication, with no more than a bridge asks for."""
    if bearer is None or not bearer.startswith(BRIDGE_PREFIX):
        return ANONYMOUS
    return restrict(ANONYMOUS, bearer.partition(SEPARATOR)[2])
