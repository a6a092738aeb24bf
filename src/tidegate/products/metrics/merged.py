"""The figures of all workers as one.

What is counted is added up, also of workers that have ended: a count never becomes less. Of what is
so at the moment the workers that run make the sum, as `SUMMED` says, except where a sum says
nothing: of what each of them says of the gate, of moments and ages, and of what has a limit in each
process. Then it is the highest or the lowest, as `HIGHEST` and `LOWEST` say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tidegate.products.metrics.packed import TOPIC, Family, unpack

if TYPE_CHECKING:
    from tidegate.serve.parent import Workers
    from tidegate.serve.worker_process import WorkerProcess

COUNTED = frozenset({"counter", "histogram", "summary", "gaugehistogram"})
CREATED = "_created"
"""The end of the name of when something began to be counted, as Unix time."""
HIGHEST = frozenset(
    {
        "process_open_fds", "python_info", "tidegate_approvals_waiting",
        "tidegate_audit_checkpoint_age_seconds", "tidegate_degraded", "tidegate_failing",
        "tidegate_info", "tidegate_otel_failing", "tidegate_ship_failing",
        "tidegate_ship_lag_bytes", "tidegate_ship_lag_seconds",
    }
)  # fmt: skip
"""Open files, too: each process has a limit of its own, so the fullest one is compared with it."""
LOWEST = frozenset(
    {
        "process_max_fds", "process_start_time_seconds",
        "tidegate_certificate_expiry_timestamp_seconds",
        "tidegate_source_lease_expiry_timestamp_seconds",
        "tidegate_source_lease_renewal_timestamp_seconds",
    }
)  # fmt: skip
SUMMED = frozenset(
    {
        "process_resident_memory_bytes", "process_virtual_memory_bytes", "tidegate_calls_running",
        "tidegate_otel_metrics_failed", "tidegate_otel_spans_dropped", "tidegate_otel_spans_sent",
        "tidegate_otel_spans_waiting", "tidegate_otel_traces_limited",
        "tidegate_source_connections", "tidegate_source_statements_running",
        "tidegate_source_statements_waiting",
    }
)  # fmt: skip
"""A product's figure that is in none of the sets is added up as well."""

Key = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a sample and its labels, in order."""


class _Sums:
    """The samples of one family, put together."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Key, float] = {}

    def add(self, family: Family) -> None:
        for sample in family.samples:
            key = sample.name, tuple(sample.labels.items())
            had = self.values.get(key)
            if had is None:
                self.values[key] = sample.value
            else:
                self.values[key] = _how(family, sample.name)((had, sample.value))

    def metric(self) -> Metric:
        made = Metric(self.family.name, self.family.about, self.family.type)
        for (name, labels), value in self.values.items():
            made.add_sample(name, dict(labels), value)
        return made


def _how(family: Family, sample: str) -> Callable[[Iterable[float]], float]:
    if sample.endswith(CREATED) or family.name in LOWEST:
        return min
    return max if family.name in HIGHEST else sum


class MergedFigures(Collector):
    """What the workers of a gate count and measure. `gather` asks them, on the event loop;
    `collect` gives what they said, on any thread."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._ended: dict[str, _Sums] = {}
        """What workers have counted that have ended."""
        self._gathered: list[Metric] = []
        workers.on_end.append(self._keep)

    def _keep(self, worker: WorkerProcess) -> None:
        """A worker has ended: what it counted stays."""
        for family in unpack(worker.last.get(TOPIC, b"")):
            if family.type in COUNTED:
                self._ended.setdefault(family.name, _Sums(family)).add(family)

    async def gather(self) -> MergedFigures:
        """Ask all workers. One that does not answer in time counts as it did the last time."""
        await self._workers.ask(TOPIC)
        sums: dict[str, _Sums] = {}
        running = self._workers.running
        for name, kept in self._ended.items():
            sums[name] = _Sums(kept.family)
            sums[name].values.update(kept.values)
        for worker in running:
            for family in unpack(worker.last.get(TOPIC, b"")):
                sums.setdefault(family.name, _Sums(family)).add(family)
        serving = GaugeMetricFamily(
            "tidegate_workers", "Workers that serve.", value=len(self._workers.serving)
        )
        restarts = CounterMetricFamily(
            "tidegate_worker_restarts", "Workers that were started because one had ended.",
            value=self._workers.restarts,
        )  # fmt: skip
        self._gathered = [*(each.metric() for each in sums.values()), serving, restarts]
        return self

    def describe(self) -> Iterable[Metric]:
        """Nothing is known before workers are asked."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """What they said."""
        yield from self._gathered
