"""What Prometheus reads of a gate that serves, by Prometheus' own parser."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S, wait_until

MANY = 70
"""Sources, of which some have no figures of their own."""
SECRET = "a token for figures"


class Gate(NamedTuple):
    server: Serving
    mcp: int
    metrics: int

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": params["name"],
        }
        with closing(HTTPConnection("127.0.0.1", self.mcp, timeout=PATIENCE_S)) as connection:
            connection.request("POST", "/mcp", json.dumps(frame), headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer

    def query(self, sql: str, source: str) -> dict[str, Any]:
        return self.ask(
            "tools/call", {"name": "query", "arguments": {"sql": sql, "source": source}}
        )

    def get(self, path: str, **headers: str) -> tuple[int, str, str]:
        """Status, content type and body."""
        with closing(HTTPConnection("127.0.0.1", self.metrics, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers["Content-Type"], response.read().decode()

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        status, _, text = self.get("/metrics")
        assert status == 200
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in read_text(text)
            for sample in family.samples
        }

    def value(self, name: str, /, **labels: str) -> float | None:
        return self.samples().get((name, frozenset(labels.items())))


def began(server: Serving) -> Gate:
    mcp = int(re.findall(r":(\d+)/mcp", server.until("serving core"))[0])
    metrics = int(server.until("serving metrics").rpartition(":")[2])
    return Gate(server, mcp, metrics)


def words(**settings: Any) -> tuple[str, ...]:
    given = {"auth": False, "metrics": {"listen": "127.0.0.1:0"}} | settings
    return ("serve", "--http", "127.0.0.1:0", "--config", json.dumps(given))


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    sources = [{"name": f"s{n}", "url": "sqlite:///:memory:"} for n in range(MANY)]
    state = tmp_path_factory.mktemp("state")
    with serving(words(sources=sources), state) as server:
        yield began(server)


def test_calls_their_ends_rows_and_times_are_counted(gate: Gate) -> None:
    assert "result" in gate.query("VALUES (1), (2), (3)", "s1")
    gate.query("SELECT * FROM nothing", "s1")
    gate.query("DROP TABLE nothing", "s1")
    found = gate.samples()

    def of(name: str, **labels: str) -> float | None:
        return found.get((name, frozenset(labels.items())))

    calls = {"surface": "core", "tool": "query"}
    assert of("tidegate_calls_total", **calls, outcome="ok", code="") == 1
    assert of("tidegate_calls_total", **calls, outcome="failed", code="sql.failed") == 1
    assert of("tidegate_calls_total", **calls, outcome="denied", code="policy.read_only") == 1
    assert of("tidegate_source_calls_total", source="s1", outcome="ok", code="") == 1
    assert of("tidegate_rows_total", source="s1") == 3
    assert of("tidegate_call_duration_seconds_count", source="s1") == 3
    assert (of("tidegate_result_bytes_total", source="s1") or 0) > 0


def test_no_text_of_a_caller_becomes_a_label(gate: Gate) -> None:
    secret = "hunter2-of-a-caller"
    gate.query("SELECT 1", secret)
    gate.query(f"SELECT '{secret}'", "s1")
    gate.ask("tools/call", {"name": secret, "arguments": {}})
    gate.ask("tools/call", {"name": "query", "arguments": {"sql": 1, secret: 2}})
    _, _, text = gate.get("/metrics")
    assert secret not in text
    assert (gate.value("tidegate_events_total", name="call.rejected") or 0) >= 1
    assert (
        gate.value(
            "tidegate_source_calls_total", source="other", outcome="denied", code="source.unknown"
        )
        or gate.value(
            "tidegate_source_calls_total", source="other", outcome="failed", code="source.unknown"
        )
    ) == 1


def test_at_most_64_sources_have_figures_of_their_own(gate: Gate) -> None:
    for n in range(MANY):
        gate.query("SELECT 1", f"s{n}")
    named = {
        value
        for (name, labels), _ in gate.samples().items()
        for label, value in labels
        if label == "source" and name == "tidegate_source_calls_total"
    }
    assert len(named - {"other", ""}) == 64
    assert "other" in named


def test_what_is_so_now_is_read_with_each_scrape(gate: Gate) -> None:
    gate.query("SELECT 1", "s1")
    found = gate.samples()
    parts = {dict(labels)["part"]: value for (name, labels), value in found.items()
             if name == "tidegate_failing"}  # fmt: skip
    assert parts == dict.fromkeys(("audit", "descriptors", "server", "state"), 0.0)
    for name in (
        "tidegate_approvals_waiting", "tidegate_calls_running", "tidegate_degraded",
        "tidegate_loop_stall_seconds_count", "process_resident_memory_bytes",
        "tidegate_late_events_total",
    ):  # fmt: skip
        assert (name, frozenset()) in found, name
    of = frozenset({("source", "s1")})
    assert found["tidegate_source_statements_waiting", of] == 0
    assert found["tidegate_source_pool_waits_total", of] >= 1, "its first connection was opened"
    assert found["tidegate_source_pool_wait_seconds_total", of] > 0


def test_prometheus_gets_the_form_that_it_asks_for(gate: Gate) -> None:
    _, kind, text = gate.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert any(family.name == "tidegate_calls" for family in read_open(text))


@pytest.mark.parametrize("version", ["abc", '"', "1." * 600])
def test_a_form_that_cannot_be_read_gets_the_plain_one(gate: Gate, version: str) -> None:
    accept = f"application/openmetrics-text;version={version}"
    status, kind, _ = gate.get("/metrics", Accept=accept)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")


def test_probes_are_there_and_nothing_else(gate: Gate) -> None:
    assert gate.get("/health")[0] == 200
    assert gate.get("/ready")[0] == 200
    assert gate.get("/mcp")[0] == 404
    assert gate.get("/metrics", Host="evil.example")[0] == 403


def test_with_a_token_the_figures_are_for_its_holder_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET + "\n")
    file.chmod(0o600)
    settings = {"metrics": {"listen": "127.0.0.1:0", "token": f"${{FILE:{file}}}"}}
    with serving(words(**settings), tmp_path / "state") as server:
        gate = began(server)
        assert gate.get("/metrics")[0] == 401
        assert gate.get("/metrics", Authorization="Bearer another")[0] == 401
        status, _, text = gate.get("/metrics", Authorization=f"Bearer {SECRET}")
        assert (status, SECRET in text) == (200, False)


def test_a_server_that_drains_says_so_in_its_figures(tmp_path: Path) -> None:
    with serving(words(drain_delay_s=600), tmp_path) as server:
        gate = began(server)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: gate.value("tidegate_failing", part="server") == 1, "it says so")


def test_a_token_that_is_no_reference_is_refused(tmp_path: Path) -> None:
    given = json.dumps({"metrics": {"listen": "127.0.0.1:0", "token": SECRET}})
    ended = tidegate("config", "check", "--config", given, state=tmp_path)
    assert ended.status != 0
    assert "metrics.token" in ended.err + ended.out
    assert SECRET not in ended.err + ended.out


def test_without_the_setting_the_library_is_not_loaded(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom tidegate.app import App\nfrom tidegate.config.model import Config\n"
        "from tidegate.serve.edges import listeners_of\n"
        f"app = App.open(Config(state={str(tmp_path)!r}))\nassert listeners_of(app.config) == []\n"
        "print([name for name in sys.modules if name.startswith('prometheus')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_refusals_of_budgets_are_counted_by_what_they_measure(tmp_path: Path) -> None:
    sources = [{"name": "s0", "url": "sqlite:///:memory:"}]
    given = json.dumps({"sources": sources})
    asked = ("budget", "set", "1", "calls/day", "--source", "s0", "--config", given)
    assert tidegate(*asked, state=tmp_path).status == 0
    with serving(words(sources=sources), tmp_path) as server:
        gate = began(server)
        for _ in range(3):
            gate.query("SELECT 1", "s0")
        name, labels = "tidegate_budget_refusals_total", {"measure": "calls", "window": "day"}
        assert gate.value(name, **labels) == 2.0
        assert gate.value(name, measure="rows", window="hour") == 0.0
        found = [each for each, _ in gate.samples() if each == name]
        assert len(found) == 12
