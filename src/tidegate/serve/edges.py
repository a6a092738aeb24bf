"""The edges of an application: stdio, HTTP and PostgreSQL's wire protocol.

Their modules are imported by the runs that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from tidegate.app import App, surface_paths
from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.engines.registry import entry_of
from tidegate.model.sources import Source
from tidegate.product import found_already, load
from tidegate.protocol.kernel import Kernel
from tidegate.serve.bridges import open_handshake
from tidegate.serve.status import without_names
from tidegate.surfaces.registry import SURFACES

if TYPE_CHECKING:
    from tidegate.bridge.handshake_writer import HandshakeWriter
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.edges.http.endpoint import Endpoint
    from tidegate.edges.http.forwarded import TrustedProxies
    from tidegate.edges.http1.request import Application
    from tidegate.serve.lifecycle import Shutdown


HTTP = "http"
"""The name of the HTTP server among what listens; others have the names of their sections."""


def listening_addresses(config: Config) -> dict[str, str]:
    """HOST:PORT of all that listens, by name."""
    found = {} if config.http is None else {HTTP: config.http}
    for name, section in config.sections.items():
        if section.listen_address is not None:
            found[name] = section.listen_address
    return found


class Listener(NamedTuple):
    """What serves at an address of its own. `open` is called in the loop that serves; the
    certificate is read again on SIGHUP."""

    open: Callable[[App], Edge]
    certificate: ServerCertificate | None


Pages = Callable[[], "Endpoint"]
"""Gives pages of people. Called in the loop that serves."""
MakePages = Callable[[App, str, int, bool], Pages | None]
"""From the application, the host, the port and whether it speaks TLS: the pages there, if the
settings ask for them."""
MakeListener = Callable[["Config"], Listener | None]


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

    With `on_opened`, which is called when bridges can find the server, it asks `shutdown` for a
    stop after `bridge.idle_s` without a request. `settings` is the digest of the settings that
    bridges compare. With `certificate` it speaks HTTPS.
    """
    from tidegate.bridge.idle_shutdown import IdleShutdown
    from tidegate.edges.edge import Companion
    from tidegate.edges.http.application import HealthChecks, HttpApplication, HttpLimits
    from tidegate.edges.http.edge import HttpEdge
    from tidegate.edges.http.origin_checks import OriginChecks
    from tidegate.edges.passed_on import PassedOn

    config = app.config
    listening = app.sockets.take(HTTP, host, port)
    bound, bound_port = listening.place
    handshake = open_handshake(
        app, bound, bound_port, settings, on_opened, tls=certificate is not None
    )
    proxies = trusted_proxies(app, bound)
    passed_on = PassedOn(proxies.trusts, listens_at=bound) if config.proxy_protocol else None
    pages = open_pages(app, host, bound_port, tls=certificate is not None)
    pages_at = config.page_origins
    way = app.sockets.way
    relayed = way is not None and way.number > 1 and bool(pages)
    application = HttpApplication(
        http_endpoints(app, handshake, () if relayed else pages),
        app.authenticate,
        origin_checks=OriginChecks(
            (*config.allowed_hosts, *(each.partition("://")[2] for each in pages_at)),
            (*config.allowed_origins, *pages_at),
            bound=host,
            port=bound_port,
        ),
        proxies=proxies,
        limits=HttpLimits(config.body_limit_bytes, config.keep_alive_s),
        count_request=app.count_request,
        health=HealthChecks(app.readiness.tried, partial(without_names, app)),
    )
    if app.lease is not None:
        application.name_gate(app.lease.id)
    companions: list[Companion] = [] if handshake is None else [handshake]
    wrapper: Application | None = None
    if way is not None:
        from tidegate.edges.http.worker_relay import PagesRelay, RelayServer

        application.join(way)
        companions.append(RelayServer(application, way.listener))
        if relayed:
            paths = [each.pages_path for each in found_already() if each.pages]
            wrapper = PagesRelay(application, way, tuple(paths))
    if on_opened is None or shutdown is None:
        return HttpEdge(
            application,
            listening.socket,
            companions=companions,
            wrapper=wrapper,
            certificate=certificate,
            counts=listening.counts,
            passed_on=passed_on,
        )
    idle = IdleShutdown(application, config.bridge.idle_s, shutdown.stop)
    return HttpEdge(
        application,
        listening.socket,
        companions=[*companions, idle],
        wrapper=idle,
        certificate=certificate,
        passed_on=passed_on,
    )


def trusted_proxies(app: App, listens_at: str = "") -> TrustedProxies:
    """The proxies of the settings, as they are at each time, for a listener at an address."""
    from tidegate.edges.http.forwarded import TrustedProxies

    proxies = TrustedProxies(app.config.trusted_proxies, app.refresh_settings, listens_at)
    app.settings_listeners.append(lambda config: proxies.replace(config.trusted_proxies))
    return proxies


def open_pages(app: App, host: str, port: int, *, tls: bool) -> list[Pages]:
    """The pages of products for the HTTP server at this address."""
    makers: list[MakePages] = [load(each.pages) for each in found_already() if each.pages]
    return [pages for make in makers if (pages := make(app, host, port, tls)) is not None]


def listeners_of(config: Config) -> list[Listener]:
    """Where else the settings have the server listen. Raises: TidegateError CONFIG_INVALID."""
    makers: list[MakeListener] = [
        load(each.listener)
        for each in found_already()
        if each.listener and each.settings.keys() & config.sections.keys()
    ]
    return [listener for make in makers if (listener := make(config)) is not None]


def session_gate_of(source: Source) -> str:
    """The place of what sessions on the source send their calls through; empty: the gateway."""
    entry = entry_of(source)
    return "" if entry is None else entry.session_gate


def http_endpoints(
    app: App, handshake: HandshakeWriter | None = None, pages: Iterable[Pages] = ()
) -> Iterator[Endpoint]:
    """What is served over HTTP: the kernel of each surface, and the routes outside MCP: pairing,
    metadata for OAuth clients, the proof for bridges that have found `handshake`, and `pages`."""
    from tidegate.edges.http.endpoint import Endpoint, HttpConventions, JsonConventions
    from tidegate.edges.http.pairing import pairing_routes
    from tidegate.edges.http.router import Router
    from tidegate.edges.http.www_authenticate import Challenge, challenge_of, resource_pages

    config, paths = app.config, surface_paths(app.config)

    @cache
    def kernel(name: str, variant: str | None) -> Kernel:
        surface = app.surface(name, variant)
        served = name if variant is None else f"{name} {variant}"
        keeps = SURFACES[name].keeps_choices
        return app.kernel(surface, surface.settings, served, keeps_choices=keeps)

    for path, name in paths.items():
        realm, oauth = SURFACES[name].realm, config.oauth
        challenge = Challenge(realm) if oauth is None else challenge_of(oauth, path, realm)
        variant = next((each for each in SURFACES[name].variants if each.path == path), None)
        conventions: type[HttpConventions] = HttpConventions
        if variant is not None:
            conventions = load(variant.conventions)
        make = partial(kernel, name, None if variant is None else variant.name)
        keeps = SURFACES[name].keeps_choices
        yield Endpoint(path, make, conventions(challenge), keeps_choices=keeps)
    router = Router()
    if config.auth and config.pairing:
        router.include(pairing_routes(app.pairing_service))
    if config.oauth is not None:
        router.include(resource_pages(config.oauth, paths))
    if handshake is not None:
        router.include(handshake.routes())
    yield Endpoint("/", router, JsonConventions())
    for make_page in pages:
        yield make_page()
