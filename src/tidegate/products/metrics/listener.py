"""Where Prometheus reads the figures: an address of its own, imported only if it is set."""

from __future__ import annotations

import asyncio
import hmac
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tidegate.app import App
from tidegate.config.addresses import LOOPBACK, http_address
from tidegate.config.installation import add_command
from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.errors import Code, TidegateError
from tidegate.products.metrics.settings import MetricsSettings
from tidegate.secrets import resolve_option
from tidegate.serve.edges import Listener
from tidegate.serve.status import without_names

if TYPE_CHECKING:
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.edges.http.router import HttpRequest, HttpResponse


def make_listener(config: Config) -> Listener | None:
    """What serves at `metrics.listen`; None if that is not set. Raises: TidegateError
    CONFIG_INVALID, ENGINE_MISSING."""
    settings = config.section(MetricsSettings)
    if settings.listen is None:
        return None
    if find_spec("prometheus_client") is None:
        raise TidegateError(
            Code.ENGINE_MISSING,
            "`metrics.listen` needs the package `prometheus_client`.",
            hint=f"Run: {add_command('metrics')}",
        )
    host, port = http_address(settings.listen)
    certificate: ServerCertificate | None = None
    if config.tls is not None and host not in LOOPBACK:
        from tidegate.edges.http.certificate import ServerCertificate

        certificate = ServerCertificate(config.tls)
    token = None if settings.token is None else resolve_option(settings.token).strip()
    open_listener = partial(
        open_metrics, host=host, port=port, token=token, certificate=certificate
    )
    return Listener(open_listener, certificate)


def open_metrics(
    app: App,
    host: str,
    port: int,
    *,
    token: str | None = None,
    certificate: ServerCertificate | None = None,
) -> Edge:
    """The edge at an address; port 0 takes a free one. Raises: TidegateError CONFIG_INVALID."""
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

    from tidegate.edges.http.application import HealthChecks, HttpApplication
    from tidegate.edges.http.edge import HttpEdge, bind
    from tidegate.edges.http.endpoint import Endpoint, JsonConventions
    from tidegate.edges.http.origin_checks import OriginChecks
    from tidegate.edges.http.router import Router
    from tidegate.products.metrics.call_metrics import CallMetrics
    from tidegate.products.metrics.gauges import Gauges, LoopStall

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)

    def source_names() -> frozenset[str]:
        return frozenset(source.name for source in app.connections.sources())

    calls = CallMetrics(registry, source_names)
    gauges, stall = Gauges(app, registry), LoopStall(registry)
    app.call_observers.append(calls.observe)
    app.server_audit.observers.append(calls.note)
    one_at_a_time = asyncio.Lock()

    async def answer(request: HttpRequest) -> HttpResponse:
        from prometheus_client.exposition import choose_encoder

        from tidegate.edges.http.router import HttpResponse

        _check(token, request)
        encode, kind = choose_encoder(request.headers.get(b"accept", b"").decode("latin-1"))
        async with one_at_a_time:
            gauges.take()
            text = await asyncio.to_thread(encode, registry)
        return HttpResponse(200, text, [(b"content-type", kind.encode())])

    router = Router()
    router.add("GET", "/metrics", answer)
    listener = bind(host, port)
    application = HttpApplication(
        [Endpoint("/", router, JsonConventions())],
        app.authenticate,
        origin_checks=OriginChecks(
            app.config.allowed_hosts, bound=host, port=listener.getsockname()[1]
        ),
        health=HealthChecks(app.readiness.tried, partial(without_names, app)),
    )
    edge = HttpEdge(application, listener, companions=[stall], certificate=certificate)
    edge.name = f"metrics on {edge.name}"
    return edge


def _check(token: str | None, request: HttpRequest) -> None:
    """Raises: HttpRefusal 401 unless the request has the token."""
    if token is None:
        return
    from tidegate.edges.http.responses import HttpRefusal

    given = request.headers.get(b"authorization", b"")
    if not hmac.compare_digest(given, b"Bearer " + token.encode()):
        raise HttpRefusal(
            401,
            "The figures need the bearer token of `metrics.token`",
            headers=[(b"www-authenticate", b'Bearer realm="metrics"')],
        )
