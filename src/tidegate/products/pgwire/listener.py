"""Where the server listens for clients of PostgreSQL's wire protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, cast

import msgspec

from tidegate.app import App
from tidegate.config.addresses import http_address, is_this_machine
from tidegate.config.file_descriptors import ensure_descriptors
from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.edges.passed_on import PassedOn
from tidegate.model.sources import Source
from tidegate.model.worker_share import WorkerShare
from tidegate.product import load
from tidegate.products.pgwire.settings import PgWireSettings
from tidegate.serve.edges import Listener, session_gate_of, trusted_proxies

if TYPE_CHECKING:
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.products.pgwire.gate import WireGate


def make_listener(config: Config) -> Listener | None:
    """What serves at `pg.listen`; None if that is not set. With a certificate, a client that comes
    from elsewhere must use TLS. Raises: TidegateError CONFIG_INVALID."""
    settings = config.section(PgWireSettings)
    if settings.listen is None:
        return None
    host, port = http_address(settings.listen)
    certificate: ServerCertificate | None = None
    if config.tls is not None:
        from tidegate.edges.http.certificate import ServerCertificate

        certificate = ServerCertificate(
            config.tls, protocols=("postgresql",), client_ca=settings.client_ca
        )

    def open_listener(app: App) -> Edge:
        return open_pg(app, settings, host, port, certificate=certificate)

    return Listener(open_listener, certificate)


def open_pg(
    app: App,
    settings: PgWireSettings,
    host: str,
    port: int,
    *,
    certificate: ServerCertificate | None = None,
) -> Edge:
    """The edge at an address; port 0 takes a free one. Raises: TidegateError CONFIG_INVALID."""
    from tidegate.products.pgwire.logins import Logins
    from tidegate.products.pgwire.server import WireServer
    from tidegate.products.pgwire.tls import ServerTls

    config, settings = app.config, _divide(settings, app.siblings.share)
    tls = ServerTls(is_required=not is_this_machine(host) or settings.client_ca is not None)
    if certificate is not None:
        tls = tls._replace(context=certificate.context, end_point=certificate.end_point)
    ensure_descriptors(
        settings.max_connections + settings.max_logins,
        f"`pg.max_connections` {settings.max_connections}, `pg.max_logins` {settings.max_logins}",
    )
    listening = app.sockets.take(settings.NAME, host, port)
    if settings.proxy_protocol:
        listening = listening._replace(passed_on=PassedOn(trusted_proxies(app).trusts))
    server = WireServer(
        app.gateway,
        listening,
        Logins(app.tokens, app.authenticator) if config.auth else None,
        settings,
        config,
        tls=tls,
        gate_of=_gates(app),
    )
    server.join(app.siblings)
    return server


def _divide(settings: PgWireSettings, share: WorkerShare) -> PgWireSettings:
    """The settings with this worker's part of what they allow in all."""
    return msgspec.structs.replace(
        settings,
        max_connections=share.of(settings.max_connections),
        max_logins=share.of(settings.max_logins),
        max_transactions=share.of(settings.max_transactions),
    )


def _gates(app: App) -> Callable[[Source], WireGate]:
    """The gate of sessions by their source: an engine may have one of its own."""

    @cache
    def own(place: str) -> WireGate:
        return cast("WireGate", load(place)(app))

    def gate_of(source: Source) -> WireGate:
        place = session_gate_of(source)
        return own(place) if place else app.gateway

    return gate_of
