"""A hand-made collector: it takes OTLP over HTTP on this machine, and reads what comes by
OpenTelemetry's own definitions. OpenTelemetry's collector is not run here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from support.eventually import wait_until
from support.otlp_server import otlp_server, respond

SERVER, CLIENT = 2, 3
"""Kinds of spans, as OTLP has them."""
FAILED = 2


class SeenSpan(NamedTuple):
    """A span as it arrived; ids are in hexadecimal digits."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: list[tuple[str, str]]
    status: int
    message: str
    about: dict[str, Any]
    state: str
    start: int
    end: int
    resource: dict[str, Any]


class SeenPoint(NamedTuple):
    """One series of a histogram."""

    metric: str
    about: dict[str, Any]
    count: int
    sum: float
    bounds: list[float]


class Collector:
    """What has come. `answer` is called with each request before it is kept; where it gives false,
    it has answered, or not, and nothing is kept."""

    def __init__(self) -> None:
        self.port = 0
        self.spans: list[SeenSpan] = []
        self.points: dict[tuple[str, frozenset[tuple[str, Any]]], SeenPoint] = {}
        """The newest of each series."""
        self.bytes: list[bytes] = []
        """The bodies, and the headers, of all requests."""
        self.headers: list[dict[str, str]] = []
        self.rejected = 0
        self.answer: Callable[[BaseHTTPRequestHandler], bool] = lambda handler: True
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, count: int) -> list[SeenSpan]:
        """The spans, once there are so many."""
        wait_until(lambda: len(self.spans) >= count, f"{count} spans have come")
        return list(self.spans)

    def find(self, name: str, **about: Any) -> SeenSpan:
        """The one span of this name, once it has come."""

        def found() -> list[SeenSpan]:
            wanted = {key.replace("__", "."): value for key, value in about.items()}
            return [
                each
                for each in list(self.spans)
                if each.name == name and wanted.items() <= each.about.items()
            ]

        (span,) = wait_until(found, f"the span {name} has come")
        return span

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        assert handler.headers["content-type"] == "application/x-protobuf"
        with self._lock:
            self.bytes.append(body)
            self.headers.append({name.lower(): text for name, text in handler.headers.items()})
        if not self.answer(handler):
            return
        if handler.path == "/v1/traces":
            self._keep_spans(ExportTraceServiceRequest.FromString(body))
        else:
            assert handler.path == "/v1/metrics"
            self._keep_points(ExportMetricsServiceRequest.FromString(body))
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = self.rejected
        respond(handler, 200, answer.SerializeToString())

    def _keep_spans(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [
                    SeenSpan(
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                        span.status.code,
                        span.status.message,
                        _read(span.attributes),
                        span.trace_state,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        _read(resource.resource.attributes),
                    )
                    for span in scope.spans
                ]

    def _keep_points(self, request: ExportMetricsServiceRequest) -> None:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.histogram.data_points:
                        about = _read(point.attributes)
                        self.points[metric.name, frozenset(about.items())] = SeenPoint(
                            metric.name, about, point.count, point.sum, list(point.explicit_bounds)
                        )


def _read(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(each) for each in value.array_value.values)
    return getattr(value, kind or "")


@contextmanager
def collector() -> Generator[Collector]:
    """The collector within a block."""
    made = Collector()

    with otlp_server(made.take) as port:
        made.port = port
        yield made
