"""Counts calls and events as they end; on the path of every call.

No text of a caller becomes a label: sources are those of the gate, `MOST_SOURCES` of them at most,
and the others, and names that no source has, share `OTHER`. Surfaces, tools and codes are ours, and
bounded all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram

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


class _SourceMetrics(NamedTuple):
    """What is counted of one source."""

    seconds: Histogram
    rows: Counter
    size: Counter


class CallMetrics:
    """The counters in `registry`. `sources` gives the names that the gate knows now."""

    def __init__(self, registry: CollectorRegistry, sources: Callable[[], Container[str]]) -> None:
        self._labels = SourceLabels(lambda name: name in sources())
        self._calls = Counter(
            "tidegate_calls", "Calls that have ended.",
            ("surface", "tool", "outcome", "code"), registry=registry,
        )  # fmt: skip
        self._source_calls = Counter(
            "tidegate_source_calls", "Calls that have ended, by source.",
            ("source", "outcome", "code"), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "tidegate_call_duration_seconds", "How long calls took, by source.",
            ("source",), buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._rows = Counter(
            "tidegate_rows", "Rows that were returned or changed.", ("source",), registry=registry
        )
        self._size = Counter(
            "tidegate_result_bytes", "Bytes of the rows that were returned, as JSON.",
            ("source",), registry=registry,
        )  # fmt: skip
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
        self._calls_kept: dict[tuple[str, str, str, str], Counter] = {}
        self._source_calls_kept: dict[tuple[str, str, str], Counter] = {}
        self._sources_kept: dict[str, _SourceMetrics] = {}
        self._tools: set[str] = set()
        self._names: set[str] = set()

    def observe(self, event: Event) -> None:
        """Count a call that has ended (`gateway.GatewayOptions.observers`)."""
        code, outcome = event.code, outcome_of(event)
        key = event.surface, event.tool, outcome, code
        calls = self._calls_kept.get(key) or self._count_tool(key)
        calls.inc()
        source = event.source
        of_source = self._sources_kept.get(source)
        if of_source is None:
            source, of_source = self._find_source(source)
        whose = source, outcome, code
        source_calls = self._source_calls_kept.get(whose)
        if source_calls is None:
            source_calls = self._source_calls_kept[whose] = self._source_calls.labels(*whose)
        source_calls.inc()
        if code == Code.LIMIT_BUDGET.value and event.rule in self._refusals_kept:
            self._refusals_kept[event.rule].inc()
        if event.elapsed_ms is not None:
            of_source.seconds.observe(event.elapsed_ms / 1_000)
        if event.rows:
            of_source.rows.inc(event.rows)
        if event.bytes:
            of_source.size.inc(event.bytes)

    def note(self, name: str) -> None:
        """Count an event of the server (`ServerAudit.observers`)."""
        if name not in self._names:
            if len(self._names) >= MOST_TOOLS:
                name = OTHER
            self._names.add(name)
        self._events.labels(name).inc()

    def _count_tool(self, key: tuple[str, str, str, str]) -> Counter:
        surface, tool, outcome, code = key
        if len(self._calls_kept) >= MOST_SERIES or (
            tool not in self._tools and len(self._tools) >= MOST_TOOLS
        ):
            return self._calls.labels(surface, OTHER, outcome, code)
        self._tools.add(tool)
        made = self._calls_kept[key] = self._calls.labels(*key)
        return made

    def _find_source(self, name: str) -> tuple[str, _SourceMetrics]:
        """The label of a source that has not been counted yet, and its metrics."""
        name = self._labels.label(name)
        found = self._sources_kept.get(name)
        if found is None:
            found = self._sources_kept[name] = _SourceMetrics(
                self._seconds.labels(name), self._rows.labels(name), self._size.labels(name)
            )
        return name, found
