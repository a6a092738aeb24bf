"""The edges of an application: stdio, HTTP and PostgreSQL's wire protocol.

Their modules are imported by the runs that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from tidegate.app import App, surface_paths
from tidegate.config.addresses import LOOPBACK
from tidegate.edges.edge import Edge
from tidegate.model.sources import Source
from tidegate.product import load
from tidegate.protocol.kernel import Kernel
from tidegate.serve.bridges import open_handshake
from tidegate.serve.status import without_names
from tidegate.surfaces.registry import SURFACES, read_settings

if TYPE_CHECKING:
    from ssl import SSLObject

    from tidegate.bridge.handshake_writer import HandshakeWriter
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.edges.http.endpoint import Endpoint
    from tidegate.products.console.request_checks import RequestChecks
    from tidegate.products.wire.gate import WireGate
    from tidegate.serve.lifecycle import Shutdown


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
    from tidegate.edges.http.application import HttpApplication
    from tidegate.edges.http.edge import HttpEdge, bind
    from tidegate.edges.http.forwarded import TrustedProxies
    from tidegate.edges.http.origin_checks import OriginChecks
    from tidegate.products.console.request_checks import RequestChecks

    config = app.config
    listener = bind(host, port)
    bound, bound_port = listener.getsockname()[:2]
    handshake = open_handshake(
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
        keep_alive_s=config.keep_alive_s,
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
    from tidegate.products.wire.descriptor_limit import ensure_descriptors
    from tidegate.products.wire.logins import Logins
    from tidegate.products.wire.server import WireServer

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
        from tidegate.products.cloud.surface.settings import CloudSurfaceSettings
        from tidegate.products.cloud.surface.wire_calls import RecordedGateway

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
            conventions = load(variant.conventions)
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
        from tidegate.serve.console import console_endpoint

        yield console_endpoint(app, console)
