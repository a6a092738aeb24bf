"""Counts calls and events as they end; on the path of every call.

No text of a caller becomes a label: sources are those of the gate, `MOST_SOURCES` of them at most,
and the others, and names that no source has, share `OTHER`. Surfaces, tools and codes are ours, and
bounded all the same.

A call is counted in numbers of ours, by one look-up: what Prometheus' library does for each of its
figures, each time, costs several times as much. It reads them when it is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from tidegate.audit.event import Event
from tidegate.errors import Code
from tidegate.gateway.call_figures import outcome_of
from tidegate.gateway.source_labels import SourceLabels
from tidegate.model.budgets import MEASURES, RULE, WINDOWS
from tidegate.tracing import OTHER

MOST_TOOLS = 256
MOST_SERIES = 4_096
"""By surface, tool, ending and code; beyond that the tool is `OTHER`."""
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LIMITS = (*map(str, SECONDS), "+Inf")
_MILLISECONDS = tuple([1_000 * each for each in SECONDS])
_OF_BUDGETS = Code.LIMIT_BUDGET.value

Family = CounterMetricFamily | HistogramMetricFamily


class _Count:
    """A number of calls."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


class _SourceCount:
    """What is counted of one source; `buckets` has calls by their time."""

    __slots__ = ("buckets", "milliseconds", "rows", "size")

    def __init__(self) -> None:
        self.buckets = [0] * len(_LIMITS)
        self.milliseconds = 0.0
        self.rows = self.size = 0


class _Place(NamedTuple):
    """Where calls that are alike count."""

    of_tool: _Count
    of_ending: _Count
    source: _SourceCount


class CallMetrics(Collector):
    """The counters in `registry`. `sources` gives the names that the gate knows now."""

    def __init__(self, registry: CollectorRegistry, sources: Callable[[], Container[str]]) -> None:
        self._labels = SourceLabels(lambda name: name in sources())
        self._events = Counter(
            "tidegate_events", "Events of the server that are put on record, by name.",
            ("name",), registry=registry,
        )  # fmt: skip
        self._refusals = Counter(
            "tidegate_budget_refusals", "Calls that a budget refused or ended.",
            ("measure", "window"), registry=registry,
        )  # fmt: skip
        self._refusals_kept = {
            f"{RULE}.{measure}.{window}": self._refusals.labels(measure, window)
            for measure in MEASURES
            for window in WINDOWS
        }
        self._places: dict[tuple[str, str, str, str, str], _Place] = {}
        self._of_tools: dict[tuple[str, str, str, str], _Count] = {}
        self._of_endings: dict[tuple[str, str, str], _Count] = {}
        self._of_sources: dict[str, _SourceCount] = {}
        self._tools: set[str] = set()
        self._names: set[str] = set()
        registry.register(self)

    def observe(self, event: Event) -> None:
        """Count a call that has ended (`gateway.GatewayOptions.observers`)."""
        code = event.code
        outcome = outcome_of(event) if code or event.phase != "outcome" else "ok"
        key = event.surface, event.tool, event.source, outcome, code
        of_tool, of_ending, source = self._places.get(key) or self._find_place(key)
        of_tool.calls += 1
        of_ending.calls += 1
        if code == _OF_BUDGETS and event.rule in self._refusals_kept:
            self._refusals_kept[event.rule].inc()
        elapsed_ms, rows, size = event.elapsed_ms, event.rows, event.bytes
        if elapsed_ms is not None:
            source.buckets[bisect_left(_MILLISECONDS, elapsed_ms)] += 1
            source.milliseconds += elapsed_ms
        if rows:
            source.rows += rows
        if size:
            source.size += size

    def note(self, name: str) -> None:
        """Count an event of the server (`ServerAudit.observers`)."""
        if name not in self._names:
            if len(self._names) >= MOST_TOOLS:
                name = OTHER
            self._names.add(name)
        self._events.labels(name).inc()

    def describe(self) -> Iterable[Family]:
        """Nothing: the registry would collect to find out."""
        return ()

    def collect(self) -> Iterator[Family]:
        """What was counted. On any thread: a call that ends meanwhile may be in one figure and not
        yet in another."""
        calls = CounterMetricFamily(
            "tidegate_calls", "Calls that have ended.",
            labels=("surface", "tool", "outcome", "code"),
        )  # fmt: skip
        for of_tool, count in list(self._of_tools.items()):
            calls.add_metric(of_tool, count.calls)
        endings = CounterMetricFamily(
            "tidegate_source_calls", "Calls that have ended, by source.",
            labels=("source", "outcome", "code"),
        )  # fmt: skip
        for ending, count in list(self._of_endings.items()):
            endings.add_metric(ending, count.calls)
        yield from (calls, endings, *self._collect_sources())

    def _collect_sources(self) -> Iterable[Family]:
        seconds = HistogramMetricFamily(
            "tidegate_call_duration_seconds", "How long calls took, by source.",
            labels=("source",),
        )  # fmt: skip
        rows = CounterMetricFamily(
            "tidegate_rows", "Rows that were returned or changed.", labels=("source",)
        )
        size = CounterMetricFamily(
            "tidegate_result_bytes", "Bytes of the rows that were returned, as JSON.",
            labels=("source",),
        )  # fmt: skip
        for name, source in list(self._of_sources.items()):
            below = zip(_LIMITS, map(float, accumulate(source.buckets)), strict=True)
            seconds.add_metric([name], list(below), source.milliseconds / 1_000)
            rows.add_metric([name], source.rows)
            size.add_metric([name], source.size)
        return seconds, rows, size

    def _find_place(self, key: tuple[str, str, str, str, str]) -> _Place:
        """Where a call of this kind counts, which was not looked up yet."""
        surface, tool, name, outcome, code = key
        if tool not in self._tools and len(self._tools) >= MOST_TOOLS:
            tool = OTHER
        of_tool = surface, tool, outcome, code
        if of_tool not in self._of_tools and len(self._of_tools) >= MOST_SERIES:
            of_tool = surface, OTHER, outcome, code
        self._tools.add(of_tool[1])
        label = self._labels.label(name)
        place = _Place(
            self._of_tools.setdefault(of_tool, _Count()),
            self._of_endings.setdefault((label, outcome, code), _Count()),
            self._of_sources.setdefault(label, _SourceCount()),
        )
        # A name that no source has may be that of one later, and callers make up as many as they
        # like.
        if label == name and len(self._places) < MOST_SERIES:
            self._places[key] = place
        return place
