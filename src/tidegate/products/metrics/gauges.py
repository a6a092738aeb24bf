"""What is so at the moment when Prometheus asks, read once for each answer; and how late the event
loop is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from tidegate import __version__
from tidegate.app import App
from tidegate.errors import TidegateError
from tidegate.gateway.source_connection import SourceConnection
from tidegate.gateway.source_labels import MOST_SOURCES

PARTS = ("audit", "descriptors", "server", "state")
"""What `/ready` may name; each has a figure, so that an alert need not ask whether it is there."""

Family = GaugeMetricFamily | CounterMetricFamily

BEAT_S = 0.25
LATE_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Gauges(Collector):
    """`take` reads what belongs to the event loop, there; `collect` gives it, and reads the state,
    on any thread."""

    def __init__(self, app: App, registry: CollectorRegistry) -> None:
        self._app = app
        self._taken: list[Family] = []
        registry.register(self)

    def describe(self) -> Iterable[Family]:
        """Nothing: the registry would collect to find out."""
        return ()

    def take(self) -> None:
        """Read what is in memory."""
        app = self._app
        failing = app.readiness.failures()
        parts = GaugeMetricFamily(
            "tidegate_failing", "1 where a part keeps the server from its work.", labels=["part"]
        )
        for part in PARTS:
            parts.add_metric([part], float(part in failing))
        info = GaugeMetricFamily("tidegate_info", "The version of the server.", labels=["version"])
        info.add_metric([__version__], 1.0)
        late = CounterMetricFamily(
            "tidegate_late_events", "Events that could not be put on record when they happened."
        )
        late.add_metric([], app.server_audit.late)
        degraded = _gauge(
            "tidegate_degraded", "Parts that do not work although the server can.",
            len(app.conditions.degraded()),
        )  # fmt: skip
        running = _gauge("tidegate_calls_running", "Calls under way.", len(app.gateway.running))
        self._taken = [info, parts, degraded, running, late, *_of_sources(app), *_of_files(app)]

    def collect(self) -> Iterator[Family]:
        """What was taken, and what the state says now."""
        yield from self._taken
        yield from _of_services(self._app)
        try:
            waiting = sum(each.state == "pending" for each in self._app.approvals.open())
        except TidegateError:
            return  # `tidegate_failing` says so
        yield _gauge("tidegate_approvals_waiting", "Calls that wait for a person.", waiting)


def _of_services(app: App) -> Iterable[Family]:
    families: dict[str, GaugeMetricFamily] = {}
    for service in app.services:
        for name, about, value, labels in service.figures():
            family = families.setdefault(
                name, GaugeMetricFamily(name, about, labels=sorted(labels))
            )
            family.add_metric([labels[each] for each in sorted(labels)], value)
    return families.values()


def _of_sources(app: App) -> Iterator[Family]:
    used = sorted(app.connections.in_use(), key=_name)[:MOST_SOURCES]
    yield from _of_places(used)
    yield from _of_connections(used)


def _of_places(used: Iterable[SourceConnection]) -> Iterable[Family]:
    """The places for statements, and the queue before them."""
    running = _by_source("tidegate_source_statements_running", "Statements under way.")
    waiting = _by_source("tidegate_source_statements_waiting", "Statements that wait for a place.")
    waits = CounterMetricFamily(
        "tidegate_source_waits", "Statements that had to wait for a place.", labels=["source"]
    )
    waited = CounterMetricFamily(
        "tidegate_source_wait_seconds", "How long statements waited for a place.",
        labels=["source"],
    )  # fmt: skip
    for each in used:
        labels, limiter = [each.source.name], each.limiter
        running.add_metric(labels, limiter.running)
        waiting.add_metric(labels, limiter.waiting)
        waits.add_metric(labels, limiter.waits)
        waited.add_metric(labels, limiter.waited_s)
    return running, waiting, waits, waited


def _of_connections(used: Iterable[SourceConnection]) -> Iterable[Family]:
    """The connections to databases, and the accounts on lease that they have."""
    opened = _by_source("tidegate_source_connections", "Open connections to the database.")
    waits = CounterMetricFamily(
        "tidegate_source_pool_waits",
        "Times that no connection was free: one had to be opened, or given back by another call.",
        labels=["source"],
    )
    waited = CounterMetricFamily(
        "tidegate_source_pool_wait_seconds", "How long connections were waited for.",
        labels=["source"],
    )  # fmt: skip
    renewals = _by_source(
        "tidegate_source_lease_renewal_timestamp_seconds",
        "When another account takes the place of the one on lease, in Unix time.",
    )
    ends = _by_source(
        "tidegate_source_lease_expiry_timestamp_seconds",
        "When the lease of the account ends, in Unix time.",
    )
    for each in used:
        labels, pooled, lease = [each.source.name], each.pool_waits, each.lease
        if each.open_connections is not None:
            opened.add_metric(labels, each.open_connections)
        if pooled is not None:
            waits.add_metric(labels, pooled.times)
            waited.add_metric(labels, pooled.seconds)
        if lease is not None:
            renewals.add_metric(labels, lease.renewal_at)
            ends.add_metric(labels, lease.ends_at)
    return opened, waits, waited, renewals, ends


def _of_files(app: App) -> Iterator[Family]:
    """The record's last signature, and the ends of certificates."""
    signed_at = app.audit.read_checkpoint_time()
    if signed_at is not None:
        age = max(0.0, time.time() - signed_at)
        yield _gauge(
            "tidegate_audit_checkpoint_age_seconds", "Since the record was last signed.", age
        )
    if app.certificate_ends:
        yield _gauge(
            "tidegate_certificate_expiry_timestamp_seconds",
            "When the first of the certificates expires, in Unix time.",
            min(end() for end in app.certificate_ends),
        )


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)


def _by_source(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["source"])


def _name(connection: SourceConnection) -> str:
    return connection.source.name


class LoopStall:
    """Measures, as long as an edge runs (`edges.edge.Companion`), how late the event loop is: while
    one thing holds it, no caller is answered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._late = Histogram(
            "tidegate_loop_stall_seconds", "How much later than it was due the event loop came.",
            buckets=LATE_S, registry=registry,
        )  # fmt: skip
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _measure(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self._late.observe(max(0.0, clock() - due))
