"""The console of an application: its pages, and the API behind them."""

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
    from tidegate.products.console.access_routes import AccessRoutes
    from tidegate.products.console.inbox import Inbox
    from tidegate.products.console.now import Now
    from tidegate.products.console.request_checks import RequestChecks
    from tidegate.serve.edges import Pages


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
    from tidegate.products.console.access_routes import AccessRoutes
    from tidegate.products.console.console import Console
    from tidegate.products.console.conventions import ConsoleConventions
    from tidegate.products.console.data_calls import DataCalls
    from tidegate.products.console.data_export import DataExports
    from tidegate.products.console.data_page import DataPage
    from tidegate.products.console.downloads import Downloads
    from tidegate.products.console.result_quota import ResultQuota
    from tidegate.products.console.runs import Runs
    from tidegate.products.console.sign_in import PATH
    from tidegate.products.console.tabs import DataTabs

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
        """From any thread: what follows a change of sources, as closing them, is the loop's."""
        if get_ident() == thread:
            return known()
        return asyncio.run_coroutine_threadsafe(read(), loop).result()

    current = app.config

    def follow(config: Config) -> None:
        nonlocal current
        current = config

    app.settings_listeners.append(follow)

    def make_access(
        sources: Callable[[], Sequence[Source]], inbox: Inbox, hashing: asyncio.Lock
    ) -> AccessRoutes:
        return AccessRoutes(
            *(app.gateway, app.operators, app.tokens, app.pairing_service),
            *(sources, inbox, hashing),
            note=app.server_audit.record_as,
            note_done=app.server_audit.record_done_as,
            others=app.callers_without_token,
            global_rules=lambda: (current.masks, current.filters),
        )

    console = Console(
        app.gateway,
        app.approvals,
        app.operators,
        sources,
        partial(app.state.shared.secret, "console"),
        checks,
        access=make_access,
        changes=app.state.changes,
        index=app.activity_index,
        prover=app.prover,
        note=app.server_audit.record_as,
        directory=app.directory,
        secure=checks.address.startswith("https:"),
        webhook=lambda: app.webhook.health,
        now=_now(app),
    )
    calls = DataCalls(app.gateway, app.config.limits, sources)
    tabs = DataTabs(calls, app.state.windows, console.feed, sources)
    runs = Runs(calls, app.approvals, app.operators, console.feed, ResultQuota(app.directory))
    downloads = Downloads(app.server_audit.record_as, sources, time.monotonic)
    exports = DataExports(calls, runs, downloads, app.directory)
    data = DataPage(calls, tabs, runs, exports)
    router = console.routes()
    router.include(data.routes(console.guard, console.guard_download))
    return Endpoint(PATH, router, ConsoleConventions())


def _now(app: App) -> Now:
    """What the console shows of the present."""
    from tidegate.products.console.now import Now, RecordCondition, SourceCondition

    def conditions() -> list[SourceCondition]:
        operator = cli()
        found: list[SourceCondition] = []
        for each in app.connections.in_use():
            state = each.state(operator)
            count = each.open_connections
            running = each.limiter.running
            error = state.error or ""
            found.append(
                SourceCondition(
                    each.source.name, state.status, error, running, count, state.last_active_at
                )
            )
        return found

    def record() -> RecordCondition:
        problems = {**app.audit.problems, **app.readiness()}
        return RecordCondition(problems, app.audit.read_checkpoint_time(), app.directory)

    return Now(
        app.gateway,
        app.figures,
        app.activity_index,
        app.approvals,
        conditions=conditions,
        record=record,
        webhook=lambda: app.webhook.health,
        note_done=app.server_audit.record_done_as,
    )
