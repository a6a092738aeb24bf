"""How long requests and statements take, counted for every one, traced or not.

What is the same for all requests of a kind is made once: the attributes, which the span has too,
and the series of the histogram. To count one costs a look-up, a search and a sum. The SDK's own
instruments cost some fifty times that in a running server; its types of data are used, and its
encoder.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from math import inf

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from tidegate import __version__
from tidegate.products.otel import conventions as names
from tidegate.tracing import ServedRequest

MOST_SERIES = 2_000
"""Of each histogram: names come from closed sets, and their combinations are bounded all the
same."""


class Series:
    """What ended in one way: the name and the attributes of its spans, and how long it took."""

    __slots__ = ("about", "bounds", "counts", "least", "most", "name", "others", "seconds")

    def __init__(self, name: str, about: dict[str, str], bounds: Sequence[float]) -> None:
        self.name = name
        self.about = about
        self.others: Series | None = None
        """In which it is counted, where there are too many series."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0
        self.least = inf
        self.most = 0.0

    def count(self, seconds: float) -> None:
        """Count one."""
        if self.others is not None:
            self.others.count(seconds)
            return
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds
        if seconds > self.most:
            self.most = seconds
        if seconds < self.least:
            self.least = seconds

    def point(self, since: int, now: int) -> HistogramDataPoint:
        """What was counted until now."""
        counts = tuple(self.counts)
        return HistogramDataPoint(
            *(self.about, since, now, sum(counts), self.seconds, counts),
            *(self.bounds, self.least, self.most),
        )


class Durations:
    """The histograms. Counted on the event loop, and read on any thread."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._since = time.time_ns()
        self._requests: dict[tuple[object, ...], Series] = {}
        self._statements: dict[tuple[object, ...], Series] = {}
        self._sessions: dict[tuple[object, ...], Series] = {}
        self._scope = InstrumentationScope(names.SCOPE, __version__)

    def of_request(self, served: ServedRequest, error: str) -> Series:
        """The series of a request that has ended, with this error."""
        key = (
            *(served.method, served.tool, served.prompt, served.revision),
            *(served.over_http, error, served.rpc_error is None),
        )
        found = self._requests.get(key)
        if found is None:
            name, about = _of_request(served, error)
            found = _keep(self._requests, key, Series(name, about, names.MCP_SECONDS))
        return found

    def of_statement(self, dialect: str, operation: str, source: str, error: str) -> Series:
        """The series of a statement that has ended, with this error."""
        key = dialect, operation, source, error
        found = self._statements.get(key)
        if found is None:
            about = {
                names.DB_SYSTEM: names.system_of(dialect),
                names.DB_OPERATION: operation,
                names.SOURCE: source,
            }
            if error:
                about[names.ERROR] = error
            found = _keep(self._statements, key, Series(operation, about, names.DB_SECONDS))
        return found

    def of_session(self, revision: str, over_http: bool) -> Series:
        """The series of a session that has ended."""
        key = revision, over_http
        found = self._sessions.get(key)
        if found is None:
            about = {names.MCP_REVISION: revision} | _of_transport(over_http)
            found = _keep(self._sessions, key, Series("session", about, names.MCP_SECONDS))
        return found

    def read(self) -> MetricsData | None:
        """The metrics of now; None while there are none."""
        now = time.time_ns()
        metrics = [
            Metric(name, about, "s", self._histogram(list(series.values()), now))
            for name, about, series in (
                (names.MCP_DURATION, "How long requests of MCP take.", self._requests),
                (names.DB_DURATION, "How long databases take.", self._statements),
                (names.SESSION_DURATION, "How long sessions of MCP are open.", self._sessions),
            )
            if series
        ]
        if not metrics:
            return None
        scope = ScopeMetrics(self._scope, metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _histogram(self, series: Sequence[Series], now: int) -> Histogram:
        points = [each.point(self._since, now) for each in series if any(each.counts)]
        return Histogram(points, AggregationTemporality.CUMULATIVE)


def _of_request(served: ServedRequest, error: str) -> tuple[str, dict[str, str]]:
    """The name of its span, and what is known of it."""
    name = served.method
    about = {names.MCP_METHOD: name}
    if served.tool:
        about[names.TOOL] = served.tool
        about[names.GEN_AI_OPERATION] = names.EXECUTE_TOOL
        name = f"{name} {served.tool}"
    if served.prompt:
        about[names.PROMPT] = served.prompt
        name = f"{name} {served.prompt}"
    if served.revision:
        about[names.MCP_REVISION] = served.revision
    about |= _of_transport(served.over_http)
    if error:
        about[names.ERROR] = error
        if served.rpc_error is not None:
            about[names.RPC_STATUS] = error
    return name, about


def _of_transport(over_http: bool) -> dict[str, str]:
    if over_http:
        return {names.TRANSPORT: names.TCP, names.PROTOCOL: names.HTTP}
    return {names.TRANSPORT: names.PIPE}


def _keep(kept: dict[tuple[object, ...], Series], key: tuple[object, ...], made: Series) -> Series:
    """Keep a series. Beyond `MOST_SERIES` it is counted in one with all such, which has the mark of
    the SDK for that."""
    if len(kept) < MOST_SERIES:
        kept[key] = made
    else:
        if () not in kept:
            kept[()] = Series("", {names.OVERFLOW: "true"}, made.bounds)
        made.others = kept[()]
    return made
