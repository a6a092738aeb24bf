"""How long requests and statements take, as metrics by the SDK. Every one is counted, traced or
not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from tidegate import __version__
from tidegate.products.otel import conventions as names


class Reader(MetricReader):
    """Reads the metrics when it is asked to, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._read: MetricsData | None = None

    def read(self) -> MetricsData | None:
        """The metrics of now; None while there are none."""
        self.collect()
        found, self._read = self._read, None
        return found

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> None:
        self._read = metrics_data

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Nothing is open."""


class Durations:
    """The two histograms; `reader` reads them."""

    def __init__(self, resource: Resource) -> None:
        self.reader = Reader()
        provider = MeterProvider(
            (self.reader,), resource, AlwaysOffExemplarFilter(), shutdown_on_exit=False
        )
        meter = provider.get_meter(names.SCOPE, __version__)
        self._requests = meter.create_histogram(
            names.MCP_DURATION,
            "s",
            "How long requests of MCP take.",
            explicit_bucket_boundaries_advisory=names.MCP_SECONDS,
        )
        self._statements = meter.create_histogram(
            names.DB_DURATION,
            "s",
            "How long databases take.",
            explicit_bucket_boundaries_advisory=names.DB_SECONDS,
        )
        self._provider = provider

    def count_request(self, seconds: float, about: Mapping[str, Any]) -> None:
        self._requests.record(seconds, about)

    def count_statement(self, seconds: float, about: Mapping[str, Any]) -> None:
        self._statements.record(seconds, about)
