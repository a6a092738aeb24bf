"""What Prometheus reads of a gate of workers: what of theirs is added up, and what is not."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as read_text

from support.eventually import wait_until
from support.worker_gate import WorkerGate, worker_gate
from tidegate.products.metrics.merged import HIGHEST, LOWEST, SUMMED

OF_THE_PARENT = {"tidegate_workers"}


def gauges(gate: WorkerGate) -> set[str]:
    with closing(HTTPConnection("127.0.0.1", gate.ports["metrics"])) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    families = [each for each in read_text(text) if each.type == "gauge"]
    # Those of counters and histograms that say when these began.
    return {each.name for each in families if not each.name.endswith("_created")}


def open_files(gate: WorkerGate) -> list[int]:
    return [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in gate.workers().values()]


def test_each_figure_of_a_moment_is_said_how_it_is_put_together(tmp_path: Path) -> None:
    """Else a new one would be added up without a thought: an age, a time, a share of a limit."""
    away = "http://127.0.0.1:9"
    receivers = {
        "ship": {"to": [{"name": "away", "url": f"{away}/v1/logs"}]},
        "otel": {"endpoint": away},
    }
    with worker_gate(tmp_path, **receivers) as gate:
        gate.query("SELECT 1")
        found = gauges(gate)
        assert {"tidegate_ship_lag_bytes", "tidegate_otel_failing"} <= found
        assert found - OF_THE_PARENT <= HIGHEST | LOWEST | SUMMED
        assert not (HIGHEST & LOWEST or HIGHEST & SUMMED or LOWEST & SUMMED)


def test_open_files_are_those_of_the_worker_that_has_most_as_each_has_its_limit(
    tmp_path: Path,
) -> None:
    with worker_gate(tmp_path) as gate:
        wait_until(lambda: len(gate.workers()) == gate.count, "all workers run")
        for number in gate.workers():
            with closing(gate.connection_at(number)) as connection:
                gate.query("SELECT 1", connection)
        found, counted = gate.figures(), open_files(gate)
        assert 0.5 * max(counted) < found["process_open_fds"] < 0.75 * sum(counted)
        limits = Path(f"/proc/{next(iter(gate.workers().values()))}/limits").read_text()
        (most,) = [line.split()[3] for line in limits.splitlines() if "open files" in line]
        assert found["process_max_fds"] == float(most)
