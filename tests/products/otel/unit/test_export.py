"""A collector that does not take what is sent costs no call, and what is lost is counted."""

from __future__ import annotations

import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from products.otel.support.collector import Collector, collector
from products.otel.support.traced_gate import TracedGate, traced_gate
from support.eventually import PATIENCE_S, wait_until
from support.free_ports import claim_port
from support.otlp_server import respond


@pytest.fixture
def seen() -> Generator[Collector]:
    with collector() as made:
        yield made


def figures(gate: TracedGate) -> dict[str, float]:
    found = {each.name.removeprefix("tidegate_otel_"): each for each in gate.service.figures()}
    assert not any(each.labels for each in found.values())
    return {name: each.value for name, each in found.items()}


def query(gate: TracedGate, times: int = 1) -> None:
    for _ in range(times):
        assert "isError" not in gate.query("SELECT 1")["result"]


def test_what_the_collector_has_taken_is_counted(seen: Collector, tmp_path: Path) -> None:
    with traced_gate(tmp_path, seen.url) as gate:
        query(gate, 3)
        wait_until(lambda: figures(gate)["spans_sent"] == 6, "they are sent by themselves")
        assert gate.service.problems() == {}
        found = figures(gate)
        assert (found["spans_dropped"], found["failing"], found["spans_waiting"]) == (0, 0, 0)


def test_with_a_dead_collector_calls_go_on_and_the_newest_spans_are_dropped(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{claim_port()}"
    with traced_gate(tmp_path, endpoint, max_queue=8) as gate:
        query(gate)
        wait_until(gate.service.problems, "it says that the collector is not there")
        query(gate, 20)
        found = figures(gate)
        assert (found["failing"], found["spans_sent"]) == (1, 0)
        assert found["spans_dropped"] >= 42 - 2 * 8
        assert found["spans_waiting"] <= 2 * 8
        (problem,) = gate.service.problems().items()
        assert problem[0] == "tracing"
        assert "Connection refused" in problem[1]
        # It is said beside what works, and the server is ready.
        assert gate.app.readiness.failures() == {}
        gate.stop()
        assert figures(gate)["spans_dropped"] == 42


def test_a_batch_that_could_not_be_taken_comes_again(seen: Collector, tmp_path: Path) -> None:
    statuses = [503, 429]

    def busy(handler: BaseHTTPRequestHandler) -> bool:
        if statuses:
            respond(handler, statuses.pop(), retry_after="0")
            return False
        return True

    seen.answer = busy
    with traced_gate(tmp_path, seen.url, metrics=False) as gate:
        query(gate, 2)
        assert len(seen.wait(4)) == 4
        # They are counted once the collector's answer was read.
        wait_until(lambda: figures(gate)["spans_sent"] == 4, "they are counted")
        assert figures(gate)["spans_dropped"] == 0
        wait_until(lambda: not gate.service.problems(), "it works again")
        assert len({each.id for each in seen.spans}) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_a_batch_that_is_refused_is_dropped_and_the_next_one_is_sent(
    seen: Collector, tmp_path: Path, status: int
) -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> bool:
        respond(handler, status, b"a page of a proxy")
        return False

    seen.answer = refuse
    with traced_gate(tmp_path, seen.url, metrics=False) as gate:
        query(gate)
        wait_until(lambda: figures(gate)["spans_dropped"] == 2, "they are dropped")
        assert f"HTTP status {status}" in gate.service.problems()["tracing"]
        seen.answer = lambda handler: True
        query(gate)
        gate.stop()
        assert (len(seen.spans), figures(gate)["spans_sent"]) == (2, 2)


def test_spans_that_the_collector_throws_away_are_counted(seen: Collector, tmp_path: Path) -> None:
    seen.rejected = 1
    with traced_gate(tmp_path, seen.url, metrics=False) as gate:
        query(gate, 2)
        gate.stop()
        found = figures(gate)
        assert (found["spans_sent"], found["spans_dropped"]) == (3, 1)
        assert "rejected 1" in gate.service.problems()["tracing"]


def test_a_stop_does_not_wait_for_a_silent_collector_until_it_answers(
    seen: Collector, tmp_path: Path
) -> None:
    going, asked = threading.Event(), threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> bool:
        asked.set()
        going.wait(PATIENCE_S)
        return False

    seen.answer = hang
    try:
        with traced_gate(tmp_path, seen.url, stop_grace_s=0.2) as gate:
            query(gate)
            wait_until(asked.is_set, "the collector is asked")
            query(gate, 5)  # which wait for nothing
            gate.stop()
            assert not going.is_set()
            assert figures(gate)["spans_dropped"] == 12
    finally:
        going.set()


def test_metrics_come_at_intervals_and_a_report_that_fails_is_made_up_for(
    seen: Collector, tmp_path: Path
) -> None:
    failed: list[str] = []

    def fail_once(handler: BaseHTTPRequestHandler) -> bool:
        if handler.path == "/v1/metrics" and not failed:
            failed.append(handler.path)
            respond(handler, 503, retry_after="0")
            return False
        return True

    seen.answer = fail_once
    with traced_gate(tmp_path, seen.url, metrics_interval_s=1.0, sample_ratio=0.0) as gate:
        query(gate, 3)
        wait_until(lambda: seen.points, "a report has come")
        counts = {each.metric: each.count for each in seen.points.values()}
        assert counts["mcp.server.operation.duration"] == 3
        assert figures(gate)["metrics_failed"] == 1
