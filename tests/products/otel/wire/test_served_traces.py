"""Traces of a server as its clients have it: over HTTP and stdio, in every revision, with what its
log, probes and figures say. The collector is hand-made."""

from __future__ import annotations

import json
import re
import signal
import threading
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from products.otel.support.collector import SERVER, Collector, collector
from support.command_line import Serving, serving
from support.eventually import PATIENCE_S, wait_until
from support.free_ports import claim_port
from support.wire_server import wire_server

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SPAN = "00f067aa0ba902b7"
PLACE = "io.modelcontextprotocol/"
SOURCE = {"name": "shop", "url": "sqlite:///:memory:"}


def settings(seen: Collector, **more: Any) -> str:
    otel = {"endpoint": seen.url, "flush_s": 0.05, "traces_per_s": 1_000}
    given = {"auth": False, "sources": [SOURCE], "otel": otel}
    return json.dumps(given | more)


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{SPAN}-01"


def call(number: int, meta: dict[str, Any]) -> dict[str, Any]:
    params = {"name": "query", "arguments": {"sql": "SELECT 1"}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def hello(revision: str) -> dict[str, Any]:
    params = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class HttpClient:
    """A client over HTTP, after its handshake if its revision has one."""

    def __init__(self, port: int, revision: str) -> None:
        self.revision = revision
        self.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": revision,
        }
        self.modern = revision == REVISIONS[-1]
        if not self.modern:
            self.post(hello(revision))
            self.post(INITIALIZED)

    def post(self, frame: dict[str, Any], **headers: str) -> str:
        given = {**self.headers, **headers}
        self.connection.request("POST", "/mcp", json.dumps(frame), given)
        response = self.connection.getresponse()
        text = response.read().decode()
        assert response.status in (200, 202), text
        if session := response.headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        return text

    def query(self, number: int, meta: dict[str, Any], **headers: str) -> str:
        if self.modern:
            own = {f"{PLACE}protocolVersion": self.revision, f"{PLACE}clientCapabilities": {}}
            meta = {**own, **meta}
            headers = {"Mcp-Method": "tools/call", "Mcp-Name": "query", **headers}
        return self.post(call(number, meta), **headers)


def port_of(server: Serving) -> int:
    return int(re.findall(r":(\d+)/mcp", server.until("serving core"))[0])


def test_a_client_of_every_revision_over_http_is_the_parent_of_its_calls(tmp_path: Path) -> None:
    words = ("serve", "--http", "127.0.0.1:0", "--config")
    with collector() as seen, serving((*words, settings(seen)), tmp_path / "state") as server:
        port = port_of(server)
        for number, revision in enumerate(REVISIONS, 100):
            client = HttpClient(port, revision)
            with closing(client.connection):
                for again in (0, 1, 2):  # what comes again is recognized by its bytes
                    meta = {"traceparent": traceparent(number * 10), "tracestate": "a=1"}
                    header = {"traceparent": traceparent(number * 10 + 1)} if again else {}
                    assert "[[1]]" in client.query(2 + again, meta, **header).replace("\\", "")
                client.query(9, {}, traceparent=traceparent(number * 10 + 2))

        def calls() -> list[Any]:
            return [each for each in list(seen.spans) if each.name == "tools/call query"]

        wait_until(lambda: len(calls()) == 4 * len(REVISIONS), "the spans have come")
        for number, revision in enumerate(REVISIONS, 100):
            own = [each for each in calls() if each.about["mcp.protocol.version"] == revision]
            of_meta, of_header = f"{number * 10:032x}", f"{number * 10 + 2:032x}"
            assert [each.trace for each in own] == [of_meta] * 3 + [of_header]
            assert {each.parent for each in own} == {SPAN}
            link = [(f"{number * 10 + 1:032x}", SPAN)]
            assert [each.links for each in own] == [[], link, link, []]
            assert [each.about["jsonrpc.request.id"] for each in own] == ["2", "3", "4", "9"]
            assert {each.about["network.transport"] for each in own} == {"tcp"}
        shaken = [each for each in seen.spans if each.name == "initialize"]
        assert [each.about["mcp.protocol.version"] for each in shaken] == list(REVISIONS[:4])
        inside = {each.parent for each in seen.spans if each.name == "select"}
        assert inside == {each.id for each in calls()}


def test_a_client_of_every_revision_on_stdio_is_the_parent_of_its_calls(tmp_path: Path) -> None:
    with collector() as seen:
        for number, revision in enumerate(REVISIONS, 100):
            words = ("serve", "--config", settings(seen))
            with serving(words, tmp_path / "state") as server:
                meta = {"traceparent": traceparent(number)}
                if revision == REVISIONS[-1]:
                    meta[f"{PLACE}protocolVersion"] = revision
                    meta[f"{PLACE}clientCapabilities"] = {}  # type: ignore[assignment]
                else:
                    server.send(hello(revision))
                    server.line()
                    server.send(INITIALIZED)
                server.send(call(2, meta))
                assert "[[1]]" in server.line().replace("\\", "")
                assert server.process.stdin is not None
                server.process.stdin.close()  # the end of its input ends it, with what waits sent
                server.process.wait(PATIENCE_S)
            found = [each for each in seen.spans if each.trace == f"{number:032x}"]
            assert len(found) == 2
            (own,) = [each for each in found if each.kind == SERVER]
            assert (own.name, own.parent) == ("tools/call query", SPAN)
            assert own.about["mcp.protocol.version"] == revision
            assert own.about["network.transport"] == "pipe"


@pytest.mark.needs("metrics")
def test_a_collector_that_hangs_is_said_and_delays_neither_calls_nor_the_stop(
    tmp_path: Path,
) -> None:
    metrics, going = claim_port(), threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> bool:
        going.wait(PATIENCE_S)
        return False

    with collector() as seen:
        seen.answer = hang
        otel = {"endpoint": seen.url, "flush_s": 0.01, "max_queue": 4}
        more = {"otel": otel, "metrics": {"listen": f"127.0.0.1:{metrics}"}, "stop_grace_s": 0.5}
        words = ("serve", "--http", "127.0.0.1:0", "--config", settings(seen, **more))
        with serving(words, tmp_path / "state") as server:
            port = port_of(server)
            client = HttpClient(port, REVISIONS[-1])
            with closing(client.connection):
                for number in range(1, 21):
                    assert "[[1]]" in client.query(number, {}).replace("\\", "")
            assert httpx.get(f"http://127.0.0.1:{port}/ready", trust_env=False).status_code == 200

            def dropped() -> float:
                text = httpx.get(f"http://127.0.0.1:{metrics}/metrics", trust_env=False).text
                return float(re.findall(r"(?m)^tidegate_otel_spans_dropped (\S+)", text)[0])

            assert wait_until(dropped, "drops are counted") > 0
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE_S) == 0
            assert not going.is_set()
            assert "spans were not sent" in server.until("spans were not sent")
            going.set()


def test_lines_of_the_log_have_the_trace_and_the_call(tmp_path: Path) -> None:
    gone = {"name": "gone", "url": f"sqlite:///{tmp_path}/no/such/folder/x.db"}
    with collector() as seen:
        given = settings(seen, log_format="json", sources=[SOURCE, gone])
        words = ("serve", "--http", "127.0.0.1:0", "--config", given)
        with serving(words, tmp_path / "state") as server:
            client = HttpClient(port_of(server), REVISIONS[-1])
            with closing(client.connection):
                own = {f"{PLACE}protocolVersion": client.revision, f"{PLACE}clientCapabilities": {}}
                frame = call(5, {**own, "traceparent": traceparent(77)})
                frame["params"]["arguments"]["source"] = "gone"
                client.post(frame, **{"Mcp-Method": "tools/call", "Mcp-Name": "query"})
            line = json.loads(server.until('"trace"'))
            assert line["trace"] == f"{77:032x}"
            request = seen.find("tools/call query")
            assert line["call"] == request.about["tidegate.call.id"]
            assert request.about["tidegate.error.code"].startswith("source.")


@pytest.mark.needs("pgwire")
def test_each_statement_of_the_wire_has_a_trace_of_its_own(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    with collector() as seen:
        otel = {"endpoint": seen.url, "flush_s": 0.05}
        with wire_server(tmp_path, otel=otel) as server:
            with psycopg.connect(server.conninfo(), autocommit=True) as connection:
                assert connection.execute("SELECT name FROM item WHERE id = 2").fetchall()
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute("UPDATE item SET price = 4 WHERE id = 3")
                    list(cursor.stream("SELECT * FROM item"))
                with pytest.raises(psycopg.Error):
                    connection.execute("SELECT 1/0 FROM no_such_table")
            server.process.process.send_signal(signal.SIGTERM)
            server.process.process.wait(PATIENCE_S)
    roots = [each for each in seen.spans if each.kind == SERVER]
    assert len({each.trace for each in roots}) == len(roots) >= 4
    assert {each.about["tidegate.surface"] for each in roots} == {"pgwire"}
    inside = {each.trace: each for each in seen.spans if each.kind != SERVER}
    operations = {each.about["db.operation.name"] for each in inside.values()}
    assert {"select", "update"} <= operations
    assert {each.parent for each in inside.values()} <= {each.id for each in roots}
    (failed,) = [each for each in roots if each.status]
    assert failed.about["error.type"].startswith("sql.")
    assert "no_such_table" not in str(seen.spans)
