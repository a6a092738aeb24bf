"""The dashboard and the alert rules, asked of a real Prometheus that reads a real gate: each query
finds something, and names only figures and labels that are there."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import yaml

import support.postgres_server as postgres_server
from products.vault.support.openbao import shared as shared_vault
from support.certificates import Authority
from support.command_line import Serving, serving
from support.documents import ROOT
from support.eventually import HANG_S, PATIENCE_S, wait_until
from support.free_ports import claim_port

pytestmark = [
    pytest.mark.needs("metrics", "vault"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus"),
]
DASHBOARD = ROOT / "deploy" / "grafana" / "tidegate.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
_SELECTOR = re.compile(r"\b([a-z]\w*)\{([^{}]*)\}|\b((?:tidegate|process)_\w+|up)\b")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")


class Prometheus(NamedTuple):
    port: int

    def get(self, path: str) -> Any:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())

    def ask(self, query: str) -> list[Any]:
        answer = self.get(f"/api/v1/query?query={quote(query)}")
        assert answer["status"] == "success", (query, answer)
        result: list[Any] = answer["data"]["result"]
        return result

    def scrapes(self) -> float:
        """How many times the gate was read, as far as it is known."""
        try:
            found = self.ask('count_over_time(up{job="tidegate"}[1m])')
        except OSError:
            return 0
        return float(found[0]["value"][1]) if found else 0


def call(port: int, sql: str, source: str = "shop") -> None:
    """Have the gate end one call."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "query", "arguments": {"sql": sql, "source": source}, "_meta": meta}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "query",
    }
    context = ssl._create_unverified_context()
    made = HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_S, context=context)
    with closing(made) as connection:
        connection.request("POST", "/mcp", json.dumps(frame), headers)
        assert connection.getresponse().status == 200


def begin(server: Serving) -> tuple[int, int]:
    mcp = int(re.findall(r":(\d+)/mcp", server.until("serving core"))[0])
    return mcp, int(server.until("serving metrics").rpartition(":")[2])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has read a gate a few times, between calls that ended in different ways."""
    directory = tmp_path_factory.mktemp("prometheus")
    database = postgres_server.Server(postgres_server.available()["wheel"])
    vault = shared_vault()
    path = vault.lease_role(database, "postgres", "1h")
    token = directory / "token"
    token.write_text(vault.token('path "database/creds/*" { capabilities = ["read"] }'))
    user, password = (f"${{VAULT:{path}#{field}}}" for field in ("username", "password"))
    leased = f"postgresql://{user}:{password}@127.0.0.1:{database.port}/postgres?sslmode=disable"
    cert, key = Authority(directory, "authority").sign("gate", "localhost")
    given = {
        "auth": False,
        "tls": {"cert": str(cert), "key": str(key)},
        "metrics": {"listen": "127.0.0.1:0"},
        "audit": {"checkpoint_s": 0.2},
        "sources": [
            {"name": "shop", "url": "sqlite:///:memory:"},
            {"name": "pooled", "url": database.url()},
            {"name": "leased", "url": leased},
        ],
        "ship": {"to": [{"name": "siem", "url": f"file://{directory}/record.jsonl"}]},
        "vault": {"address": vault.address, "token": f"${{FILE:{token}}}"},
    }
    words = ("serve", "--http", "127.0.0.1:0", "--config", json.dumps(given))
    with serving(words, directory / "state") as server:
        mcp, metrics = begin(server)
        port = claim_port()
        settings = {
            "global": {"scrape_interval": "250ms", "evaluation_interval": "250ms"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [
                {"job_name": "tidegate", "static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]}
            ],
        }
        file = directory / "prometheus.yaml"
        file.write_text(yaml.safe_dump(settings))
        process = subprocess.Popen(
            [
                "prometheus", f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        found = Prometheus(port)
        texts = ("SELECT 1", "DROP TABLE nothing", "SELECT * FROM nothing")
        try:
            for source in ("pooled", "leased"):
                call(mcp, "SELECT 1", source)
            for text in texts:
                call(mcp, text)
            wait_until(lambda: found.scrapes() >= 2, "the gate has been read")
            for text in texts:
                call(mcp, text)
            read = found.scrapes()
            wait_until(lambda: found.scrapes() >= read + 2, "it has been read again")
            yield found
        finally:
            process.terminate()
            process.wait(HANG_S)
            database.close()


def panels() -> list[Any]:
    found: list[Any] = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """The title of each panel with each of its queries, as Grafana would send it."""
    for panel in panels():
        for target in panel["targets"]:
            query: str = target["expr"]
            for name, value in (("$instance", ".*"), ("$source", ".*"), ("$__rate_interval", "1m")):
                query = query.replace(name, value)
            assert "$" not in query, query
            yield panel["title"], query


def named(query: str) -> Iterator[tuple[str, set[str]]]:
    """The figures that a query names, each with the labels that it asks for."""
    for name, labels, bare in _SELECTOR.findall(query):
        yield name or bare, set(_LABEL.findall(labels))


def test_each_query_of_the_dashboard_finds_something(prometheus: Prometheus) -> None:
    missing = [f"{title}: {query}" for title, query in queries() if not prometheus.ask(query)]
    assert missing == []
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)


def test_figures_and_labels_of_queries_and_alerts_are_those_of_the_gate(
    prometheus: Prometheus,
) -> None:
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    asked = [*dict(queries()).values(), *(rule["expr"] for rule in group["rules"])]
    wrong: list[str] = []
    for query in asked:
        pairs = list(named(query))
        assert pairs, query
        for name, labels in pairs:
            there = {label for each in prometheus.ask(name) for label in each["metric"]}
            if not there or not labels <= there:
                wrong.append(f"{name}{sorted(labels)}: {sorted(there)}")
    assert wrong == []


def test_prometheus_evaluates_each_alert_and_finds_what_is_due(prometheus: Prometheus) -> None:
    (group,) = prometheus.get("/api/v1/rules")["data"]["groups"]
    health = {rule["name"]: (rule["health"], rule["state"]) for rule in group["rules"]}
    assert {found[0] for found in health.values()} == {"ok"}, health
    due = {name for name, found in health.items() if found[1] != "inactive"}
    assert due == {"TidegateCertificateEnds"}, "that of this test ends tomorrow"
