"""Durations are counted as the SDK's own histograms count them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from tidegate.products.otel import conventions, durations
from tidegate.products.otel.durations import Durations
from tidegate.tracing import ServedRequest

CALL = ServedRequest("tools/call", "query", revision="2026-07-28", over_http=True)


def points(found: MetricsData | None) -> list[HistogramDataPoint]:
    assert found is not None
    (resource,) = found.resource_metrics
    (scope,) = resource.scope_metrics
    (metric,) = scope.metrics
    given: Any = metric.data.data_points
    return list(given)


@given(st.lists(st.sampled_from([0.0, *conventions.MCP_SECONDS]) | st.floats(0, 400), min_size=1))
def test_a_histogram_is_the_one_that_the_sdk_makes(seconds: list[float]) -> None:
    own = Durations(Resource({}))
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], Resource({}), shutdown_on_exit=False).get_meter("x")
    others = meter.create_histogram(
        "y", explicit_bucket_boundaries_advisory=conventions.MCP_SECONDS
    )
    for each in seconds:
        own.of_request(CALL, "").count(each)
        others.record(each)
    (found,), (expected,) = points(own.read()), points(reader.get_metrics_data())
    assert list(found.bucket_counts) == list(expected.bucket_counts)
    assert list(found.explicit_bounds) == list(expected.explicit_bounds)
    assert (found.count, found.min, found.max) == (expected.count, expected.min, expected.max)
    assert found.sum == pytest.approx(expected.sum)


def test_nothing_is_read_before_something_was_counted() -> None:
    assert Durations(Resource({})).read() is None


def test_the_number_of_series_is_bounded_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durations, "MOST_SERIES", 3)
    own = Durations(Resource({}))
    for number in range(10):
        for _ in range(2):
            own.of_request(CALL, str(number)).count(0.5)
    found = {each.attributes.get("error.type", "") for each in points(own.read())}  # type: ignore[union-attr]
    assert found == {"0", "1", "2", ""}
    (rest,) = [
        each for each in points(own.read()) if "otel.metric.overflow" in (each.attributes or {})
    ]
    assert (rest.count, rest.sum) == (14, 7.0)
