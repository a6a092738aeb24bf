"""What is hidden changes no figure that Prometheus reads, and no span, but for how long it took."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, generate_latest

from hidden_data import worlds
from hidden_data.reads import Reads
from support.repeated_calls import NoSender
from support.surface_client import WRITER, modern_meta
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.gateway.source_labels import SourceLabels
from tidegate.products.metrics.call_metrics import CallMetrics
from tidegate.products.metrics.gauges import Gauges
from tidegate.products.otel.durations import Durations
from tidegate.products.otel.sampling import Limit
from tidegate.products.otel.tracer import OtelTracer
from tidegate.protocol.transport import TransportContext

pytestmark = pytest.mark.needs("duckdb", "metrics", "otel")

COUNT = 30
CHANGES = (
    "UPDATE visits SET cost = 5 WHERE id > 20",
    "UPDATE people SET pay = 7 WHERE pay = 3",
    "INSERT INTO people (id, card) SELECT 900, card FROM people WHERE id = 1",
    "DELETE FROM visits WHERE room > 20",
)
BY_TIME = re.compile(r"_seconds_(?:bucket|sum|total)|_age_|_created|_waits|_source_connections|^#")
"""Lines that depend on how long things take."""


async def observed(place: Path, world: str) -> tuple[list[str], list[Any], list[Any]]:
    """The exposition, the spans and the counted series after one conversation about a world."""
    engines = ("sqlite", "duckdb")
    made = [
        {"name": each, "url": worlds.make(each, place, world, 3), "access": "write", **worlds.RULES}
        for each in engines
    ]
    app = App.open(convert_settings({"state": str(place / "state"), "sources": made}))
    registry, spans = CollectorRegistry(), InMemorySpanExporter()
    calls, gauges = CallMetrics(registry, lambda: engines), Gauges(app, registry)
    app.call_observers.append(calls.observe)
    app.server_audit.observers.append(calls.note)
    provider = TracerProvider(resource=Resource({}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    durations = Durations(Resource({}))
    app.tracing.tracer = OtelTracer(
        provider.get_tracer("tests"), Limit(1.0, 10**6), durations, SourceLabels(lambda _: True)
    )
    surface = app.surface("core")
    kernel = app.kernel(surface, surface.settings, "core")
    try:
        for source in engines:
            reads = Reads(Random(7), source)
            texts = [reads.read() for _ in range(COUNT)]
            for text, params in [*texts, *((change, ()) for change in CHANGES)]:
                given = {"source": source, "sql": text, **({"params": params} if params else {})}
                whole = {"name": "query", "arguments": given, "_meta": modern_meta()}
                frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": whole}
                transport = TransportContext(WRITER, NoSender())
                assert await kernel.serve(json.dumps(frame).encode(), transport) is not None
        gauges.take()
        exposition = generate_latest(registry).decode().splitlines()
    finally:
        await app.close()
    metrics = durations.read()
    assert metrics is not None
    counted = [
        (metric.name, dict(point.attributes or {}), point.count)
        for metric in metrics.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if isinstance(point, HistogramDataPoint)
    ]
    told = [
        (each.name, each.kind, each.status.status_code, without_call(each.attributes), each.events)
        for each in spans.get_finished_spans()
    ]
    return [line for line in exposition if not BY_TIME.search(line)], told, counted


def without_call(attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if "tidegate.call.id" not in name}


async def test_two_worlds_that_differ_in_hidden_data_give_the_same_figures(tmp_path: Path) -> None:
    found: list[tuple[list[str], list[Any], list[Any]]] = []
    for world in ("a", "b"):
        (tmp_path / world).mkdir()
        found.append(await observed(tmp_path / world, world))
    for one, other in zip(*found, strict=True):
        # By what is in one alone: a list of some hundred is not to be read.
        assert [each for each in one if each not in other] == []
        assert [each for each in other if each not in one] == []
        assert one == other
    assert len(found[0][1]) > 4 * COUNT, "spans of requests and of statements"
    assert any("policy.masked" in line for line in found[0][0])
