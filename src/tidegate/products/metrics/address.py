"""The address at which Prometheus reads the figures: what is set for it, and what answers there."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from tidegate.config.addresses import http_address, is_this_machine
from tidegate.config.installation import add_command
from tidegate.config.model import Config
from tidegate.edges.edge import Companion, Edge
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.products.metrics.settings import MetricsSettings
from tidegate.secrets.references import resolve_option

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from tidegate.edges.http.application import HealthChecks
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.edges.http.router import HttpRequest, HttpResponse


_MOST_ACCEPT = 1_024
"""Characters; that of Prometheus has about 200. The version in it is in the answer."""


class MetricsAddress(NamedTuple):
    """Where the figures are, the token that they take if one is set, and the certificate."""

    host: str
    port: int
    token: str | None
    certificate: ServerCertificate | None


def address_of(config: Config) -> MetricsAddress | None:
    """What the settings say of the address; None if there is none. Raises: TidegateError
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
    if config.tls is not None and not is_this_machine(host):
        from tidegate.edges.http.certificate import ServerCertificate

        certificate = ServerCertificate(config.tls)
    token = None if settings.token is None else resolve_option(settings.token).strip()
    return MetricsAddress(host, port, token, certificate)


def serve_figures(
    address: MetricsAddress,
    listener: socket.socket,
    prepare: Callable[[], Awaitable[Collector]],
    health: HealthChecks,
    allowed_hosts: Sequence[str],
    companions: Sequence[Companion] = (),
) -> Edge:
    """The edge at a bound socket. `prepare` is awaited before each answer, and gives what is
    encoded then, on a thread."""
    from tidegate.edges.http.application import HttpApplication
    from tidegate.edges.http.edge import HttpEdge
    from tidegate.edges.http.endpoint import Endpoint, JsonConventions
    from tidegate.edges.http.origin_checks import OriginChecks
    from tidegate.edges.http.router import Router

    one_at_a_time = asyncio.Lock()

    async def answer(request: HttpRequest) -> HttpResponse:
        from tidegate.edges.http.router import HttpResponse

        _check(address.token, request)
        encode, kind = _choose(request.headers.get(b"accept", b"").decode("latin-1"))
        async with one_at_a_time:
            collector = await prepare()
            text = await asyncio.to_thread(encode, collector)
        return HttpResponse(200, text, [(b"content-type", kind.encode())])

    router = Router()
    router.add("GET", "/metrics", answer)
    checks = OriginChecks(allowed_hosts, bound=address.host, port=listener.getsockname()[1])
    application = HttpApplication(
        [Endpoint("/", router, JsonConventions())],
        _nobody,
        origin_checks=checks,
        health=health,
    )
    edge = HttpEdge(application, listener, companions=companions, certificate=address.certificate)
    edge.name = f"metrics on {edge.name}"
    return edge


def _choose(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """What encodes the figures, and as what, by the header of a request. One that cannot be
    read counts as none: the library fails at a version that is no number."""
    from prometheus_client.exposition import choose_encoder

    try:
        return choose_encoder(accept if len(accept) <= _MOST_ACCEPT else "")
    except (TypeError, ValueError):
        return choose_encoder("")


def _nobody(bearer: str | None, client: str) -> Actor:
    """No call of MCP arrives here."""
    raise TidegateError(Code.AUTH_INVALID, "Figures are read here, and nothing else.")


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
