"""Sends spans and metrics to the collector, on a thread of its own.

What waits is bounded: a span for which there is no place is dropped, and counted. A batch that the
collector could not take is sent again, at longer and longer intervals, and meanwhile nothing else
is; one that it refuses is dropped. Requests go through the server's own HTTP client, by its rules.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from tidegate.errors import TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, HttpResponse
from tidegate.paths import expand
from tidegate.products.otel.settings import OtelSettings
from tidegate.retrying_http import retry_after
from tidegate.secrets.references import resolve, resolve_option

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

logger = logging.getLogger("tidegate.otel")

BATCH = 512
"""Spans of one request to the collector."""
TIMEOUT_S = 10.0
STOP_S = 3.0
"""What the last requests may take, when the server stops."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0
_MOST_ANSWER_BYTES = 1_048_576
_TYPE = "application/x-protobuf"
_AGAIN = frozenset({408, 429, 502, 503, 504})
"""Statuses after which a batch is sent again, as OTLP says."""


class _Failure(NamedTuple):
    """Why a request failed. `again`: the collector may take it later, after `wait_s` if it says
    so."""

    reason: str
    again: bool
    wait_s: float | None = None


class Export(SpanProcessor):
    """`read_metrics` gives the metrics of now; without it none are sent. A stop waits for `stop_s`
    at most."""

    def __init__(
        self,
        settings: OtelSettings,
        read_metrics: Callable[[], MetricsData | None] | None,
        stop_s: float = STOP_S,
    ) -> None:
        self._settings = settings
        self._stop_s = min(stop_s, STOP_S)
        self._read_metrics = read_metrics
        self._queue: deque[ReadableSpan] = deque()
        self._taken: list[ReadableSpan] = []
        """The batch that is being sent."""
        self._wake, self._stopping = Event(), Event()
        self._wait_s = _FIRST_WAIT_S
        self._not_before = 0.0
        self._metrics_at = time.monotonic() + settings.metrics_interval_s
        self._clients = _client(settings, TIMEOUT_S), _client(settings, max(self._stop_s, 0.1))
        self._thread = Thread(target=self._run, name="tidegate-otel", daemon=True)
        self.sent = 0
        self.dropped = 0
        """Spans."""
        self.metrics_failed = 0
        """Reports of the metrics that did not arrive. The next one makes up for them."""
        self.failure = ""
        """Why the last request failed."""

    @property
    def waiting(self) -> int:
        """Spans that are not sent yet."""
        return len(self._queue) + len(self._taken)

    def on_end(self, span: ReadableSpan) -> None:
        if len(self._queue) >= self._settings.max_queue:
            self.dropped += 1
            return
        self._queue.append(span)
        if len(self._queue) == BATCH:
            self._wake.set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send what waits, as far as there is time, and count what is left."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(self._stop_s)
        left = self.waiting
        self._queue.clear()
        self.dropped += left
        if left:
            logger.warning("%d spans were not sent: %s", left, self.failure or "no time left")

    def _run(self) -> None:
        while not self._stopping.is_set():
            now = time.monotonic()
            due = max(self._not_before, now + self._settings.flush_s)
            if self._read_metrics is not None:
                due = min(due, max(self._metrics_at, self._not_before))
            self._wake.wait(max(0.0, due - now))
            self._wake.clear()
            if self._stopping.is_set():
                break
            if time.monotonic() >= self._not_before:
                self._send_all()
        self._not_before = 0.0
        self._metrics_at = 0.0
        self._send_all()

    def _send_all(self) -> None:
        try:
            while self._queue or self._taken:
                if not self._send_spans():
                    return
            if self._read_metrics is not None and time.monotonic() >= self._metrics_at:
                self._send_metrics(self._read_metrics)
        except Exception as error:  # calls go on, and so must this
            logger.exception("traces")
            self.failure = type(error).__name__
            self.dropped += len(self._taken)
            self._taken = []
            self._hold(None)

    def _send_spans(self) -> bool:
        """Whether the next batch may follow."""
        if not self._taken:
            most = min(BATCH, len(self._queue))
            self._taken = [self._queue.popleft() for _ in range(most)]
        found = self._send("/v1/traces", encode_spans(self._taken).SerializeToString())
        if isinstance(found, _Failure):
            self._fail(found)
            if found.again and not self._stopping.is_set():
                return False
            if not found.again:
                self.dropped += len(self._taken)
                self._taken = []
            return not self._stopping.is_set()
        count, self._taken = len(self._taken), []
        rejected = min(_rejected_in(found), count)
        self.sent += count - rejected
        self.dropped += rejected
        self._recover(f"it rejected {rejected} spans" if rejected else "")
        return True

    def _send_metrics(self, read: Callable[[], MetricsData | None]) -> None:
        self._metrics_at = time.monotonic() + self._settings.metrics_interval_s
        metrics = read()
        if metrics is None:
            return
        found = self._send("/v1/metrics", encode_metrics(metrics).SerializeToString())
        if isinstance(found, _Failure):
            self.metrics_failed += 1
            self._fail(found)
        else:
            self._recover("")

    def _send(self, path: str, body: bytes) -> HttpResponse | _Failure:
        settings = self._settings
        client = self._clients[self._stopping.is_set()]
        try:
            request = HttpRequest(
                url=f"{resolve(settings.endpoint or '').rstrip('/')}{path}",
                verb="POST",
                headers=(("Content-Type", _TYPE), ("Accept", _TYPE)),
                credentials=[
                    (name, resolve_option(value).strip())
                    for name, value in settings.headers.items()
                ],
                body=body,
                name="the collector",
                networks=None,  # the operator names the host
            )
            response = client.send_blocking(request)
        except TidegateError as error:
            return _Failure(error.without_secrets().message, again=True)
        if response.status == 200:
            return response
        return _Failure(
            f"the collector answered {path} with HTTP status {response.status}",
            response.status in _AGAIN,
            retry_after(response.headers.get("retry-after")),
        )

    def _fail(self, failure: _Failure) -> None:
        self.failure = failure.reason
        self._hold(failure.wait_s)

    def _hold(self, wait_s: float | None) -> None:
        """Send nothing for a while."""
        wait_s = self._wait_s if wait_s is None else min(max(wait_s, 0.0), _LONGEST_WAIT_S)
        self._not_before = time.monotonic() + wait_s
        self._wait_s = min(self._wait_s * 2, _LONGEST_WAIT_S)

    def _recover(self, failure: str) -> None:
        self.failure = failure
        self._wait_s, self._not_before = _FIRST_WAIT_S, 0.0


def _client(settings: OtelSettings, total_s: float) -> HttpClient:
    ca_file = None if settings.ca_file is None else str(expand(settings.ca_file))
    return HttpClient(
        ClientRules(
            max_bytes=_MOST_ANSWER_BYTES, total_s=total_s, ca_file=ca_file,
            ca_setting="otel.ca_file", proxies=None,
        )
    )  # fmt: skip


def _rejected_in(response: HttpResponse) -> int:
    """How many spans the collector has thrown away."""
    if not response.body or not response.headers.get("content-type", "").startswith(_TYPE):
        return 0
    try:
        answer = ExportTraceServiceResponse.FromString(response.body)
    except ValueError:  # DecodeError is one
        return 0
    return max(0, answer.partial_success.rejected_spans)
