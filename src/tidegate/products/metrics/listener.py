"""The figures of one process: Prometheus reads them, or the parent of workers gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.model.actors import Actor
from tidegate.products.metrics.address import MetricsAddress, address_of, serve_figures
from tidegate.products.metrics.packed import TOPIC, pack
from tidegate.products.metrics.settings import MetricsSettings
from tidegate.serve.edges import Listener
from tidegate.serve.status import without_names

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from tidegate.products.metrics.gauges import LoopStall


def make_listener(config: Config) -> Listener | None:
    """What serves at `metrics.listen`; None if that is not set. Raises: TidegateError
    CONFIG_INVALID, ENGINE_MISSING."""
    address = address_of(config)
    if address is None:
        return None
    return Listener(partial(open_metrics, address=address), address.certificate)


def open_metrics(app: App, address: MetricsAddress) -> Edge:
    """The edge at an address; port 0 takes a free one. One that does not listen, where the parent
    of workers serves the figures of all. Raises: TidegateError CONFIG_INVALID."""
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

    from tidegate.edges.http.application import HealthChecks
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

    async def prepare() -> CollectorRegistry:
        gauges.take()
        return registry

    if app.siblings.are_there:
        return _WorkerFigures(app, prepare, stall)
    return serve_figures(
        address,
        app.sockets.take(MetricsSettings.NAME, address.host, address.port).socket,
        prepare,
        HealthChecks(app.readiness.tried, partial(without_names, app)),
        app.config.allowed_hosts,
        [stall],
    )


class _WorkerFigures:
    """Gives the figures of this worker to its parent when that asks (`edges.edge.Edge`,
    `identity.revocation.SessionOwner`)."""

    name = "metrics"
    listens = False

    def __init__(
        self, app: App, prepare: Callable[[], Awaitable[CollectorRegistry]], stall: LoopStall
    ) -> None:
        self._stall = stall
        self._ended = asyncio.Event()
        one_at_a_time = asyncio.Lock()

        async def answer() -> bytes:
            async with one_at_a_time:
                registry = await prepare()
                return await asyncio.to_thread(pack, registry)

        app.siblings.answers[TOPIC] = answer

    @property
    def sessions(self) -> _WorkerFigures:
        """No caller comes here."""
        return self

    async def start(self) -> None:
        """Measure the event loop."""
        await self._stall.start()

    async def wait_ended(self) -> None:
        """Return after `stop`."""
        await self._ended.wait()

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Measure no more."""
        await self._stall.stop()
        self._ended.set()

    def actors(self) -> Iterable[Actor]:
        """There are none."""
        return ()

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """There is nothing to end."""

    def end_expired(self, now: float, reason: str) -> None:
        """There is nothing to end."""
