"""The console of an application: its pages, and the API that they use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING

from tidegate.app import App
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.sources import Source

if TYPE_CHECKING:
    from tidegate.config.model import Config
    from tidegate.edges.http.endpoint import Endpoint
    from tidegate.products.console.activity import Activity
    from tidegate.products.console.admins import Consent
    from tidegate.products.console.callers import Callers
    from tidegate.products.console.data_calls import DataCalls
    from tidegate.products.console.edit_routes import EditRoutes
    from tidegate.products.console.gate_records import GateRecords
    from tidegate.products.console.gates import ServingGates
    from tidegate.products.console.import_routes import ImportRoutes
    from tidegate.products.console.live import LiveFeed
    from tidegate.products.console.now import Conditions
    from tidegate.products.console.request_checks import RequestChecks
    from tidegate.products.console.runs import Runs
    from tidegate.products.console.source_routes import SourceRoutes
    from tidegate.serve.edges import Pages

_MOST_IMPORTS = 40


def make_pages(app: App, host: str, port: int, tls: bool) -> Pages | None:
    """The console's pages at this address; None if the settings have no console."""
    settings = app.config.console
    if not settings.enabled:
        return None
    from tidegate.products.console.request_checks import RequestChecks

    checks = RequestChecks(host, port, tls=tls, origin=settings.origin)
    app.console_address = checks.address
    return partial(console_endpoint, app, checks)


def console_endpoint(app: App, checks: RequestChecks) -> Endpoint:
    """What is served at the path of the console. To be called in the loop that serves."""
    from tidegate.edges.http.endpoint import Endpoint
    from tidegate.products.console.access import Access
    from tidegate.products.console.access_matrix import AccessMatrix
    from tidegate.products.console.access_routes import AccessRoutes
    from tidegate.products.console.activity import Activity
    from tidegate.products.console.activity_routes import ActivityRoutes
    from tidegate.products.console.admins import Consent
    from tidegate.products.console.all_activity import AllActivity
    from tidegate.products.console.budget_forms import BudgetForms
    from tidegate.products.console.budget_routes import BudgetRoutes
    from tidegate.products.console.callers import Callers
    from tidegate.products.console.changes import Changes
    from tidegate.products.console.console import API, Console, describe_server
    from tidegate.products.console.conventions import ConsoleConventions
    from tidegate.products.console.data_calls import DataCalls
    from tidegate.products.console.data_export import DataExports
    from tidegate.products.console.data_page import DataPage
    from tidegate.products.console.downloads import Downloads
    from tidegate.products.console.gate_figures import GateFigures
    from tidegate.products.console.gates import ServingGates
    from tidegate.products.console.home_gate import HomeGate
    from tidegate.products.console.inbox import Inbox
    from tidegate.products.console.inbox_routes import InboxRoutes, RecentCalls
    from tidegate.products.console.live import LiveFeed
    from tidegate.products.console.live_routes import LiveRoutes
    from tidegate.products.console.now import Now, Others
    from tidegate.products.console.operator_accounts import OperatorAccounts
    from tidegate.products.console.page_files import PageFiles
    from tidegate.products.console.pairing_requests import PairingRequests
    from tidegate.products.console.query_routes import QueryRoutes
    from tidegate.products.console.result_quota import ResultQuota
    from tidegate.products.console.runs import Runs
    from tidegate.products.console.sign_in import PATH, Sessions
    from tidegate.products.console.tabs import DataTabs
    from tidegate.products.console.token_forms import TokenForms

    gateway, approvals, operators = app.gateway, app.approvals, app.operators
    note, note_done = app.server_audit.record_as, app.server_audit.record_done_as
    sources, conditions = _sources_of(app), _conditions_of(app)
    # One at a time: a hash takes 32 MB and 0.1 s of a processor.
    hashing = asyncio.Lock()
    files = PageFiles()
    inbox = Inbox(approvals, operators, sources, app.state.changes.find)
    changes = Changes(gateway, app.state.changes, approvals, operators, hashing)
    activity = Activity(app.activity_index, app.prover, sources)

    consent = Consent(operators, note, note_done)
    forms = TokenForms(app.tokens, operators, sources, consent)
    pairings = PairingRequests(app.pairing_service, forms, consent)
    accounts = OperatorAccounts(operators, sources, consent)
    config = _config_of(app)
    access = Access(operators, accounts, forms, pairings, inbox)
    callers = Callers(app.tokens, operators, pairings, app.callers_without_token, time.time)
    matrix = AccessMatrix(
        *(gateway, callers, sources),
        lambda: (config().masks, config().filters),
        consent,
    )

    now = Now(gateway, app.figures, app.activity_index, approvals, conditions, note_done)
    own = "" if app.lease is None else app.lease.id
    gate_figures = GateFigures(app.mailbox, app.figures, own, now.complete)
    now.others = Others(app.other_processes, app.state.gates, app.state.now, own, gate_figures)
    feed = LiveFeed(*(approvals, operators, inbox, lambda: files.build, activity, pairings, now))
    feed.gate = own
    records = open_records(app, activity)
    follow_new_lines(records, activity, feed)
    all_activity = AllActivity(activity, records)
    activity_routes = ActivityRoutes(
        *(all_activity, inbox, changes, feed),
        Downloads(note, sources, time.monotonic),
        app.directory,
    )
    recent = RecentCalls(activity, all_activity, sources, forms)
    sessions = Sessions(
        operators,
        partial(app.state.shared.secret, "console"),
        partial(describe_server, approvals, sources, files),
        secure=checks.address.startswith("https:"),
    )
    gates = ServingGates(own, app.state.gates.list, app.state.now)
    home = HomeGate(gates, lambda: sessions.instance, secure=sessions.secure) if own else None
    console = Console(checks, sessions, files, hashing, app.state.versions.check, home)
    calls = DataCalls(gateway, app.config.limits, sources)
    tabs = DataTabs(calls, app.state.windows, feed, sources)
    router = console.routes(
        (
            InboxRoutes(inbox, changes, recent, feed, conditions.webhook, hashing),
            activity_routes,
            AccessRoutes(access, matrix, forms, pairings, accounts, hashing),
            BudgetRoutes(
                BudgetForms(app.budgets, app.tokens, operators, sources, consent), hashing
            ),
            _source_routes(app, callers, consent, config, sources, hashing),
            LiveRoutes(now, feed),
            QueryRoutes(calls, app.saved_queries, tabs, feed, sources),
        )
    )
    export = console.guard_download(activity_routes.export)
    router.add("GET", f"{API}/activity/export", export)

    runs = Runs(calls, approvals, operators, feed, ResultQuota(app.directory))
    downloads = Downloads(note, sources, time.monotonic)
    exports = DataExports(calls, runs, downloads, app.directory)
    data = DataPage(calls, tabs, runs, exports)
    router.include(data.routes(console.guard, console.guard_download))
    router.include(_edit_routes(app, calls, runs, feed, gates).routes(console.guard))
    router.include(_import_routes(app, calls, feed).routes(console.guard))
    return Endpoint(PATH, router, ConsoleConventions())


def open_records(app: App, home: Activity) -> GateRecords:
    """The records of all gates on the state."""
    from tidegate.products.console.gate_questions import Shared
    from tidegate.products.console.gate_records import GateRecords, OtherGates

    if app.lease is None:
        return GateRecords(home)
    shared = Shared(app.mailbox, app.carried("activity"), app.operators.live, app.lease.id)
    return GateRecords(home, OtherGates(shared, app.state.gates, app.state.now))


def follow_new_lines(records: GateRecords, home: Activity, feed: LiveFeed) -> None:
    """Have the feed tell of new lines in the records of other gates, and those of the ones here."""
    if records.others is not None:
        from tidegate.products.console.new_lines import NewLines

        lines = NewLines(records.others.shared, records, home)
        lines.publish_by(feed.publish)
        feed.follow(lines.look)


def _source_routes(
    app: App,
    callers: Callers,
    consent: Consent,
    config: Callable[[], Config],
    sources: Callable[[], Sequence[Source]],
    hashing: asyncio.Lock,
) -> SourceRoutes:
    """The routes of sources themselves."""
    from tidegate.products.console.source_drafts import SourceDrafts
    from tidegate.products.console.source_edits import SourceEdits
    from tidegate.products.console.source_list import SourceList
    from tidegate.products.console.source_rights import SourceRights
    from tidegate.products.console.source_routes import SourceRoutes
    from tidegate.products.console.source_tries import SourceTries

    rights, tries = SourceRights(app.gateway, callers), SourceTries(app.gate_before, consent)
    drafts = SourceDrafts(app.state.sources, config)
    edits = SourceEdits(app, drafts, rights, tries, consent, config, hashing)
    return SourceRoutes(SourceList(app.state.sources, sources, config), edits)


def _edit_routes(
    app: App, calls: DataCalls, runs: Runs, feed: LiveFeed, gates: ServingGates
) -> EditRoutes:
    """The routes of edits of rows."""
    from tidegate.products.console.edit_columns import EditColumns
    from tidegate.products.console.edit_routes import EditRoutes
    from tidegate.products.console.edit_submissions import Submissions
    from tidegate.products.console.staged_edits import StagedEdits

    columns = EditColumns(calls, runs)
    stores = app.state.windows, app.state.staged_edits
    secret = partial(app.secrets.read, "staged")
    edits = StagedEdits(calls, columns, stores, secret, feed.tell_of_edits)
    submissions = Submissions(calls, edits, columns, app.approvals, feed, gates)
    return EditRoutes(columns, edits, submissions)


def _import_routes(app: App, calls: DataCalls, feed: LiveFeed) -> ImportRoutes:
    """The routes of imports of files."""
    from tidegate.products.console.import_files import remove_leftovers
    from tidegate.products.console.import_routes import ImportRoutes
    from tidegate.products.console.import_runs import ImportRun, Keeping
    from tidegate.products.console.imports import Imports
    from tidegate.products.console.result_quota import ResultQuota

    remove_leftovers(app.directory)
    keeping = Keeping(calls, app.approvals, feed, app.config.undo.max_bytes)
    quota = ResultQuota(app.directory, results=_MOST_IMPORTS)
    return ImportRoutes(Imports(calls, app.operators, quota, partial(ImportRun, keeping)))


def _sources_of(app: App) -> Callable[[], Sequence[Source]]:
    """What gives the sources, from any thread: what follows a change of sources, as closing them,
    is done on the loop that this is called in."""
    loop, thread = asyncio.get_running_loop(), get_ident()

    def known() -> tuple[Source, ...]:
        """None while the settings cannot be read: what they hide is not known then, so that no rows
        are shown, but what waits can be seen and denied."""
        try:
            return app.connections.sources()
        except TidegateError as error:
            if error.code is not Code.CONFIG_INVALID:
                raise
            return ()

    async def read() -> tuple[Source, ...]:
        return known()

    def sources() -> tuple[Source, ...]:
        if get_ident() == thread:
            return known()
        return asyncio.run_coroutine_threadsafe(read(), loop).result()

    return sources


def _config_of(app: App) -> Callable[[], Config]:
    """What gives the settings, as they are followed."""
    current = app.config

    def follow(config: Config) -> None:
        nonlocal current
        current = config

    app.settings_listeners.append(follow)
    return lambda: current


def _conditions_of(app: App) -> Conditions:
    """How the sources, the record and the webhook are."""
    from tidegate.products.console.now import Conditions, RecordCondition, SourceCondition

    def sources() -> list[SourceCondition]:
        operator = cli()
        found: list[SourceCondition] = []
        for each in app.connections.in_use():
            state = each.state(operator)
            count = each.open_connections
            running = each.limiter.running
            error = state.error or ""
            found.append(
                SourceCondition(
                    *(each.source.name, each.source, state.status, error),
                    *(running, count, state.last_active_at),
                )
            )
        return found

    def record() -> RecordCondition:
        problems = {**app.conditions.problems(), **app.readiness.reasons()}
        return RecordCondition(problems, app.audit.read_checkpoint_time(), app.directory)

    return Conditions(sources, record, lambda: app.webhook.health)
