"""Which edges run together in one process, how they start, and how the server stops.

Signals: SIGTERM and SIGINT stop accepting callers and give running calls `stop_grace_s` seconds to
finish, then cancel them; a second one cancels them at once. SIGHUP reads the settings again. The
stop is recorded in every case.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.app import App, surface_paths
from tidegate.config.addresses import LOOPBACK
from tidegate.edges.edge import Edge
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.identity.revocation import RevocationWatcher
from tidegate.model.sources import Source
from tidegate.protocol.kernel import Kernel
from tidegate.secrets import variables_of
from tidegate.surfaces.registry import SURFACES, read_settings

if TYPE_CHECKING:
    from ssl import SSLObject

    from tidegate.bridge.handshake_writer import HandshakeWriter
    from tidegate.config.model import Config
    from tidegate.edges.console.access_routes import AccessRoutes
    from tidegate.edges.console.inbox import Inbox
    from tidegate.edges.console.now import Now
    from tidegate.edges.console.request_checks import RequestChecks
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.edges.http.endpoint import Endpoint
    from tidegate.edges.pgwire.gate import WireGate

logger = logging.getLogger("tidegate.serve")

CHECK_S = 1.0
"""How often the server checks whether it can do its work, for its log."""
STATUS_SOURCES = 100
"""How many sources `tidegate status` shows."""
_URGENCY = {"error": 0, "connected": 1}
LOG_S = 60.0
"""How long after a line about what fails comes the line that it works again, so that what comes and
goes does not fill the log."""


FORGET_S = 300.0
"""Between two looks for changes that are to be forgotten."""


class Shutdown:
    """How far a server must stop: `stop` ends it in good order, `hurry` at once."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()

    def ask(self) -> None:
        """Ask it to stop; asked again, to hurry."""
        if self.stop.is_set():
            self.hurry.set()
        self.stop.set()


async def serve(
    app: App,
    edges: Sequence[Edge],
    shutdown: Shutdown,
    ready: Callable[[], None] | None = None,
    prepare: Callable[[Shutdown], Awaitable[None]] | None = None,
) -> None:
    """Run these edges until `shutdown` asks for a stop or each of them has ended, then close the
    application. `prepare` is awaited before any of them does; `ready` is called when all of them
    accept callers.

    An edge that ends, such as stdio at the end of its input, does not stop the others. Raises:
    TidegateError if an edge cannot start or the start cannot be recorded.
    """
    watcher = RevocationWatcher(app.tokens, [edge.sessions for edge in edges])
    tasks: list[asyncio.Task[None]] = []
    recorded = False
    try:
        with suppress(TidegateError):  # a state that cannot be written says so elsewhere
            app.note_rights()
        app.server_audit.record_start(app.config, " ".join(edge.name for edge in edges))
        recorded = True
        app.token_files.load()
        if prepare is not None:
            await prepare(shutdown)
        for edge in edges:
            await edge.start()
        tasks += [_task(watcher.run()), _task(_log_readiness(app)), _task(_forget_changes(app))]
        tasks.append(_task(app.webhook.run()))
        if ready is not None:
            ready()
        await asyncio.gather(*(_run_edge(app, edge, shutdown) for edge in edges))
    finally:
        try:
            await asyncio.gather(*(edge.stop(0) for edge in edges))
        finally:
            for task in tasks:
                task.cancel()
            if recorded:
                app.server_audit.record_stop()
            await app.close()


async def _run_edge(app: App, edge: Edge, shutdown: Shutdown) -> None:
    ended, stopped = _task(edge.wait_ended()), _task(_until(shutdown.stop))
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    stopped.cancel()
    await edge.stop(app.config.stop_grace_s, shutdown.hurry)


async def _log_readiness(app: App) -> None:
    """Log what begins to fail and what works again: for each part one line a minute at most."""
    reported: dict[str, float] = {}
    while True:
        now = asyncio.get_running_loop().time()
        failing = {**app.degraded(), **app.readiness()}
        for part, reason in failing.items():
            if part not in reported:
                logger.error("%s: fails: %s", part, reason)
                reported[part] = now
        for part, at in list(reported.items()):
            if part not in failing and now >= at + LOG_S:
                logger.warning("%s: works again", part)
                del reported[part]
        await asyncio.sleep(CHECK_S)


async def _forget_changes(app: App) -> None:
    """Remove changes whose time is over, with their keys, also while no call is about changes."""
    while True:
        await asyncio.sleep(FORGET_S)
        with suppress(TidegateError):  # the state cannot be written: the next time
            await asyncio.to_thread(app.kept_changes.forget_old)


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


async def _until(event: asyncio.Event) -> None:
    await event.wait()


def run(
    app: App,
    open_edges: Callable[[Shutdown], Sequence[Edge]],
    *,
    fast: bool,
    ready: Callable[[Sequence[Edge]], None] | None = None,
    reread: Callable[[], None] | None = None,
    prepare: Callable[[Shutdown], Awaitable[None]] | None = None,
) -> None:
    """Serve in this process until a signal or the end of every edge. `fast` uses uvloop, where
    there is one. `reread` is called on SIGHUP, `prepare` before the first caller is answered.
    Raises: TidegateError as `serve`."""

    async def main() -> None:
        shutdown = Shutdown()
        handlers = dict(_signal_handlers(shutdown, reread))
        loop = asyncio.get_running_loop()
        for number, handler in handlers.items():
            with suppress(NotImplementedError):  # a system without signals
                loop.add_signal_handler(number, handler)
        edges = open_edges(shutdown)
        # What is there now stays: the garbage collector need not look through it for every caller.
        gc.freeze()
        announce = None if ready is None else partial(ready, edges)
        try:
            await serve(app, edges, shutdown, announce, prepare)
        finally:
            # What comes now must not kill a process that has ended in good order.
            for number in handlers:
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(number)
                    signal.signal(number, signal.SIG_IGN)

    if fast:
        try:
            import uvloop
        except ImportError:
            pass
        else:
            uvloop.run(main())
            return
    asyncio.run(main())


def _signal_handlers(
    shutdown: Shutdown, reread: Callable[[], None] | None
) -> Iterator[tuple[signal.Signals, Callable[[], None]]]:
    yield signal.SIGTERM, shutdown.ask
    yield signal.SIGINT, shutdown.ask
    if hasattr(signal, "SIGHUP"):
        yield signal.SIGHUP, reread or _no_settings_file


def _no_settings_file() -> None:
    logger.warning("SIGHUP: there is no settings file to read again")


# Edges of an application. Their modules are imported by the runs that need them.


def open_stdio(app: App) -> Edge:
    """The edge on stdin and stdout, with the surfaces of the settings: `core` if they name
    none."""
    from tidegate.edges.stdio import StdioEdge
    from tidegate.identity.builtin_actors import stdio
    from tidegate.surfaces.combined import CombinedServer

    names = app.config.surfaces or ("core",)
    surfaces = [app.surface(name) for name in names]
    server = surfaces[0] if len(surfaces) == 1 else CombinedServer(surfaces)
    return StdioEdge(
        app.kernel(server, server.stdio_settings, " ".join(names)), stdio(app.config.allow_writes)
    )


def open_http(
    app: App,
    host: str,
    port: int,
    *,
    shutdown: Shutdown | None = None,
    on_opened: Callable[[], None] | None = None,
    settings: str = "",
    certificate: ServerCertificate | None = None,
) -> Edge:
    """The edge at an address; port 0 takes a free one. Raises: TidegateError CONFIG_INVALID.

    With `found`, which is called when bridges can find the server, it asks `shutdown` for a stop
    after `bridge.idle_s` without a request. `settings` is the digest of the settings that bridges
    compare. With `certificate` it speaks HTTPS.
    """
    from tidegate.bridge.idle_shutdown import IdleShutdown
    from tidegate.edges.console.request_checks import RequestChecks
    from tidegate.edges.edge import Companion
    from tidegate.edges.http.application import HttpApplication
    from tidegate.edges.http.edge import HttpEdge, bind
    from tidegate.edges.http.forwarded import TrustedProxies
    from tidegate.edges.http.origin_checks import OriginChecks

    config = app.config
    listener = bind(host, port)
    bound, bound_port = listener.getsockname()[:2]
    handshake = _handshake_writer(
        app, bound, bound_port, settings, on_opened, tls=certificate is not None
    )
    proxies = TrustedProxies(config.trusted_proxies, app.refresh_settings)
    app.settings_listeners.append(lambda config: proxies.replace(config.trusted_proxies))
    checks = RequestChecks(
        *(host, bound_port), tls=certificate is not None, origin=config.console.origin
    )
    if config.console.enabled:
        app.console_address = checks.address
    application = HttpApplication(
        http_endpoints(app, handshake, checks if config.console.enabled else None),
        app.authenticate,
        origin_checks=OriginChecks(
            config.allowed_hosts, config.allowed_origins, bound=host, port=bound_port
        ),
        proxies=proxies,
        body_limit=config.body_limit_bytes,
        count_request=app.count_request,
        readiness=app.readiness,
        degraded=partial(without_names, app),
    )
    companions: list[Companion] = [] if handshake is None else [handshake]
    if on_opened is None or shutdown is None:
        return HttpEdge(application, listener, companions=companions, certificate=certificate)
    idle = IdleShutdown(application, config.bridge.idle_s, shutdown.stop)
    return HttpEdge(
        application,
        listener,
        companions=[*companions, idle],
        wrapper=idle,
        certificate=certificate,
    )


def open_pg(
    app: App, host: str, port: int, *, certificate: ServerCertificate | None = None
) -> Edge:
    """The edge of PostgreSQL's wire protocol at an address; port 0 takes a free one. With
    `certificate` a client that comes from elsewhere must use TLS. Raises: TidegateError
    CONFIG_INVALID."""
    from tidegate.edges.http.edge import bind
    from tidegate.edges.pgwire.descriptor_limit import ensure_descriptors
    from tidegate.edges.pgwire.logins import Logins
    from tidegate.edges.pgwire.server import WireServer

    config = app.config
    ensure_descriptors(config.pg)
    return WireServer(
        app.gateway,
        bind(host, port),
        Logins(app.tokens, app.authenticator) if config.auth else None,
        config.pg,
        config.limits,
        max_message=config.body_limit_bytes,
        tls=None if certificate is None else certificate.context,
        end_point=_unbound if certificate is None else certificate.end_point,
        requires_tls=host not in LOOPBACK or config.pg.client_ca is not None,
        gate_of=_wire_gates(app),
    )


def _wire_gates(app: App) -> Callable[[Source], WireGate]:
    """The gate of wire sessions by their source: statements for cloud providers have a line in the
    file of calls, too."""

    @cache
    def recorded() -> WireGate:
        from tidegate.surfaces.cloud.settings import CloudSurfaceSettings
        from tidegate.surfaces.cloud.wire_calls import RecordedGateway

        read = read_settings("cloud", app.config)
        settings = read if isinstance(read, CloudSurfaceSettings) else CloudSurfaceSettings()
        return RecordedGateway(app.gateway, settings, app.config)

    return lambda source: recorded() if source.engine == "cloud" else app.gateway


def _unbound(connection: SSLObject) -> bytes:
    return b""


def http_endpoints(
    app: App, handshake: HandshakeWriter | None = None, console: RequestChecks | None = None
) -> Iterator[Endpoint]:
    """What is served over HTTP: the kernel of each surface, and the routes outside MCP: pairing,
    metadata for OAuth clients, the proof for bridges that have found `handshake`, and with the
    checks of its requests the console."""
    from tidegate.edges.http.endpoint import Endpoint, HttpConventions, JsonConventions
    from tidegate.edges.http.pairing import pairing_routes
    from tidegate.edges.http.router import Router
    from tidegate.edges.http.www_authenticate import Challenge, challenge_of, resource_pages

    config, paths = app.config, surface_paths(app.config)

    @cache
    def kernel(name: str, variant: str | None) -> Kernel:
        surface = app.surface(name, variant)
        served = name if variant is None else f"{name} {variant}"
        return app.kernel(surface, surface.settings, served)

    for path, name in paths.items():
        realm, oauth = SURFACES[name].realm, config.oauth
        challenge = Challenge(realm) if oauth is None else challenge_of(oauth, path, realm)
        variant = next((each for each in SURFACES[name].variants if each.path == path), None)
        conventions: type[HttpConventions] = HttpConventions
        if variant is not None:
            conventions = _named(variant.conventions)
        make = partial(kernel, name, None if variant is None else variant.name)
        yield Endpoint(path, make, conventions(challenge))
    router = Router()
    if config.auth and config.pairing:
        router.include(pairing_routes(app.pairing_service))
    if config.oauth is not None:
        router.include(resource_pages(config.oauth, paths))
    if handshake is not None:
        router.include(handshake.routes())
    yield Endpoint("/", router, JsonConventions())
    if console is not None:
        yield _console(app, console)


def _console(app: App, checks: RequestChecks) -> Endpoint:
    from tidegate.edges.console.access_routes import AccessRoutes
    from tidegate.edges.console.console import Console
    from tidegate.edges.console.conventions import ConsoleConventions
    from tidegate.edges.console.data_calls import DataCalls
    from tidegate.edges.console.data_export import DataExports
    from tidegate.edges.console.data_page import DataPage
    from tidegate.edges.console.runs import Runs
    from tidegate.edges.console.sign_in import PATH
    from tidegate.edges.console.tabs import DataTabs
    from tidegate.edges.http.endpoint import Endpoint

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
        secure=checks.address.startswith("https:"),
        webhook=lambda: app.webhook.health,
        now=_now(app),
    )
    calls = DataCalls(app.gateway, app.config.limits, sources)
    tabs = DataTabs(calls, app.state.windows, console.feed, sources)
    runs = Runs(calls, app.approvals, app.operators, console.feed, app.directory)
    exports = DataExports(calls, runs, app.server_audit.record_as, app.directory)
    data = DataPage(calls, tabs, runs, exports)
    router = console.routes()
    router.include(data.routes(console.guard, console.guard_download))
    return Endpoint(PATH, router, ConsoleConventions())


def _now(app: App) -> Now:
    """What the console shows of the present."""
    from tidegate.edges.console.now import Now, RecordCondition, SourceCondition
    from tidegate.engines.api import PooledEngine

    def conditions() -> list[SourceCondition]:
        operator = cli()
        found: list[SourceCondition] = []
        for each in app.connections.in_use():
            state, engine = each.state(operator), each.engine
            count = engine.open_connections if isinstance(engine, PooledEngine) else None
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


def _named(place: str) -> Any:
    """What a `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _handshake_writer(
    app: App,
    host: str,
    port: int,
    settings: str,
    on_opened: Callable[[], None] | None,
    *,
    tls: bool,
) -> HandshakeWriter | None:
    """What lets bridges find this server, if they may and could."""
    from tidegate.bridge.handshake_file import LOOPBACK, HandshakeFile
    from tidegate.bridge.handshake_writer import HandshakeWriter

    config = app.config
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    if not config.bridge.enabled or host not in LOOPBACK or os.name != "posix":
        return None
    return HandshakeWriter(
        HandshakeFile(app.directory),
        app.bridge_tokens,
        host,
        port,
        tuple(surface_paths(config)),
        config.limits.max_timeout_s + config.approvals.wait_s,
        settings=settings,
        tls=tls,
        on_opened=on_opened,
        variables=_variables_of(app),
        status=partial(_status, app),
    )


def _variables_of(app: App) -> Callable[[], tuple[str, ...]]:
    """The environment variables that the sources name, read again when the sources change."""
    seen: tuple[Source, ...] | None = None
    names: tuple[str, ...] = ()

    def read() -> tuple[str, ...]:
        nonlocal seen, names
        sources = app.connections.sources()
        if sources is not seen:
            texts = [text for each in sources for text in (each.url, *dict(each.options).values())]
            names = tuple(sorted({name for text in texts for name in variables_of(text)}))
            seen = sources
        return names

    return read


def without_names(app: App) -> dict[str, str]:
    """What does not work, for callers without a token: sources are counted and errors left out."""
    problems = app.degraded()
    sources = sum(part.startswith("source ") for part in problems)
    files = sum(part.startswith("token file ") for part in problems)
    others = [part for part in problems if not part.startswith(("source ", "token file "))]
    shown = dict.fromkeys(others, "see the log of the server")
    shown |= {"sources": f"{sources} cannot be opened"} if sources else {}
    return shown | ({"token files": f"{files} cannot be used"} if files else {})


def _status(app: App) -> dict[str, Any]:
    """What `tidegate status` shows of this server: its sources, those that fail first and then
    those that are open, and what fails."""
    entries = app.connections.list_for(cli())
    first = sorted(entries, key=lambda entry: _URGENCY.get(entry.state.status, 2))
    sources = [
        {
            "name": entry.source.name,
            "engine": entry.source.engine,
            "status": entry.state.status,
            "error": entry.state.error,
        }
        for entry in first[:STATUS_SOURCES]
    ]
    count = len(entries)
    return {
        "sources": sources,
        "source_count": count,
        "failing": {**app.audit.problems, **app.readiness()},
        "console": app.console_address,
        "webhook": msgspec.to_builtins(app.webhook.health),
    }


class LogFormatter(logging.Formatter):
    """One line a record: UTC time, level, logger, the call id if the record has one (`call` in
    `extra`), message. A traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s%(which)s %(message)s")
        self.datefmt = "%Y-%m-%dT%H:%M:%S"
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        call = getattr(record, "call", None) or _noted_call(record)
        record.which = "" if call is None else f" call={call}"
        return super().format(record)


def _noted_call(record: logging.LogRecord) -> str | None:
    """The call that the exception of a record belongs to; the gateway notes it there."""
    error = record.exc_info[1] if record.exc_info else None
    notes: list[str] = getattr(error, "__notes__", [])
    return next((note[5:] for note in notes if note.startswith("call=")), None)


def log_to_stderr() -> None:
    """Write the server's log, from level WARNING on, to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter())
    root = logging.getLogger("tidegate")
    root.addHandler(handler)
    root.propagate = False
