"""What a collector is told of requests, and what it is never told."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from products.otel.support.collector import CLIENT, FAILED, SERVER, Collector, collector
from products.otel.support.traced_gate import TracedGate, traced_gate
from support.repeated_calls import NoSender
from support.surface_client import READER, WRITER
from tidegate.errors import TidegateError
from tidegate.model.requests import Browse, Query
from tidegate.model.statements import Statement
from tidegate.products.otel import conventions
from tidegate.products.otel.conventions import MCP_SECONDS
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OUTER, OUTER_SPAN = "a" * 32, "b" * 16
PARENT = f"00-{TRACE}-{SPAN}-01"
HEADER = f"00-{OUTER}-{OUTER_SPAN}-01"


@pytest.fixture
def seen() -> Generator[Collector]:
    with collector() as made:
        yield made


@pytest.fixture
def gate(seen: Collector, tmp_path: Path) -> Generator[TracedGate]:
    with traced_gate(tmp_path, seen.url) as made:
        yield made


def test_a_call_is_a_server_span_with_the_span_of_its_statement_inside(
    seen: Collector, gate: TracedGate
) -> None:
    assert "result" in gate.query("SELECT 1", headers={})
    gate.stop()
    statement, request = seen.wait(2)
    assert (request.name, request.kind, request.parent) == ("tools/call query", SERVER, "")
    (line,) = gate.record()
    assert request.about == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "query",
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "jsonrpc.request.id": "7",
        "tidegate.call.id": line["call_id"],
    }
    assert (statement.name, statement.kind) == ("select", CLIENT)
    assert (statement.trace, statement.parent) == (request.trace, request.id)
    assert statement.about == {
        "db.system.name": "sqlite",
        "db.operation.name": "select",
        "tidegate.source": "shop",
        "tidegate.call.id": line["call_id"],
    }
    assert request.start <= statement.start <= statement.end <= request.end
    assert line["trace_id"] == request.trace
    assert request.resource["service.name"] == "tidegate"
    assert request.status == statement.status == 0


@pytest.mark.parametrize(
    ("meta", "header", "trace", "parent", "links"),
    [
        (PARENT, None, TRACE, SPAN, []),
        (None, HEADER, OUTER, OUTER_SPAN, []),
        (PARENT, HEADER, TRACE, SPAN, [(OUTER, OUTER_SPAN)]),
        ("malformed", HEADER, OUTER, OUTER_SPAN, []),
        (PARENT, "malformed", TRACE, SPAN, []),
        (7, None, None, "", []),
        (None, None, None, "", []),
    ],
)
def test_the_parent_is_that_of_meta_or_else_of_the_header_and_a_second_one_is_a_link(
    seen: Collector,
    gate: TracedGate,
    meta: Any,
    header: str | None,
    trace: str | None,
    parent: str,
    links: list[tuple[str, str]],
) -> None:
    given = {} if meta is None else {"traceparent": meta, "tracestate": "vendor=1"}
    headers = {b"tracestate": b"outer=2"}
    if header is not None:
        headers[b"traceparent"] = header.encode()
    gate.query("SELECT 1", meta=given, headers=headers)
    gate.stop()
    found = seen.find("tools/call query")
    assert (found.parent, found.links) == (parent, links)
    assert trace is None or found.trace == trace
    states = {TRACE: "vendor=1", OUTER: "outer=2"}
    assert found.state == states.get(trace or "", "")
    (line,) = gate.record()
    assert line["trace_id"] == found.trace


def test_a_callers_flag_does_not_get_it_more_traces_than_the_limit(
    seen: Collector, tmp_path: Path
) -> None:
    with traced_gate(tmp_path, seen.url, traces_per_s=1, sample_ratio=1.0) as gate:
        for n in range(1, 9):
            gate.query("SELECT 1", meta={"traceparent": f"00-{n:032x}-{SPAN}-01"}, headers={})
        gate.stop()
        figures = {each.name: each.value for each in gate.service.figures()}
        assert figures["tidegate_otel_traces_limited"] >= 4
        assert len(seen.spans) == 2 * (8 - figures["tidegate_otel_traces_limited"])
        # The caller's trace is on record all the same: it is somewhere, without our spans.
        assert [each["trace_id"] for each in gate.record()] == [f"{n:032x}" for n in range(1, 9)]
        counted = [
            each for each in seen.points.values() if each.metric == "mcp.server.operation.duration"
        ]
        assert [each.count for each in counted] == [8]


def test_a_session_is_counted_once_when_it_ends(seen: Collector, gate: TracedGate) -> None:
    about = {"name": "peer", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    served = TransportContext(READER, NoSender(), headers={})
    piped = TransportContext(READER, NoSender(), session=Session(READER))
    for transport in (served, piped):
        gate.loop.run(gate.kernel.serve(json.dumps(frame).encode(), transport))
    assert served.session is not None and piped.session is not None
    gate.kernel.sessions.end(served.session)
    for _ in range(2):
        piped.session.close()
    gate.stop()
    found = [each for each in seen.points.values() if each.metric == "mcp.server.session.duration"]
    assert [each.count for each in found] == [1, 1]
    transports = {each.about["network.transport"]: each.about for each in found}
    assert transports.keys() == {"tcp", "pipe"}
    assert all(each["mcp.protocol.version"] == "2025-11-25" for each in transports.values())


def test_a_caller_that_does_not_trace_is_not_traced(seen: Collector, gate: TracedGate) -> None:
    gate.query("SELECT 1", meta={"traceparent": f"{PARENT[:-1]}0"}, headers={})
    gate.stop()
    assert seen.spans == []
    (line,) = gate.record()
    assert line["trace_id"] == TRACE


def test_without_a_share_nothing_is_traced_and_the_record_names_no_trace(
    seen: Collector, tmp_path: Path
) -> None:
    with traced_gate(tmp_path, seen.url, sample_ratio=0.0) as gate:
        gate.query("SELECT 1", headers={})
        gate.stop()
        assert seen.spans == []
        assert len(seen.points) == 2
        (line,) = gate.record()
        assert "trace_id" not in line


def test_how_it_failed_is_said_by_codes_alone(seen: Collector, gate: TracedGate) -> None:
    gate.query("SELECT * FROM no_such_table_of_mine", id=1)
    gate.query("DROP TABLE customers", id=2)
    gate.send("tools/call", {"name": "query", "arguments": {"nothing": 1}}, id=3)
    gate.send("tools/call", {"name": "no_such_tool_of_mine", "arguments": {}}, id=4)
    gate.send("no/such/method/of/mine", {}, id=5)
    gate.send("prompts/get", {"name": "no_such_prompt_of_mine"}, id=6)
    gate.stop()
    found = {each.about["jsonrpc.request.id"]: each for each in seen.spans if each.kind == SERVER}
    assert {id: each.status for id, each in found.items()} == dict.fromkeys("123456", FAILED)
    assert {each.message for each in seen.spans} == {""}
    assert found["1"].about["tidegate.error.code"] == "sql.failed"
    assert found["2"].about["tidegate.error.code"] == "policy.scope"
    assert found["3"].about["tidegate.error.code"] == "argument.invalid"
    assert [found[id].about["error.type"] for id in "123"] == ["tool_error"] * 3
    assert found["4"].name == "tools/call other"
    assert (found["5"].name, found["5"].about["error.type"]) == ("other", "-32601")
    assert found["5"].about["rpc.response.status_code"] == "-32601"
    assert found["6"].about["mcp.method.name"] in ("prompts/get", "other")
    statement = seen.find("select")
    assert (statement.status, statement.about["error.type"]) == (FAILED, "sql.failed")
    assert not [each for each in seen.bytes if b"of_mine" in each or b"of/mine" in each]


def test_a_call_of_no_request_of_mcp_has_a_trace_of_its_own(
    seen: Collector, gate: TracedGate
) -> None:
    gate.call(Query(Statement("SELECT 1")))
    gate.call(Browse("catalog"), surface="console")
    with pytest.raises(TidegateError):
        gate.call(Query(Statement("SELECT * FROM nothing")))
    gate.stop()
    roots = [each for each in seen.wait(6) if each.kind == SERVER]
    assert [each.name for each in roots] == ["wire query", "console browse", "wire query"]
    assert [each.status for each in roots] == [0, 0, FAILED]
    assert roots[2].about["error.type"] == "sql.failed"
    assert roots[0].about["tidegate.surface"] == "wire"
    inside = {each.parent: each.name for each in seen.spans if each.kind == CLIENT}
    assert [inside[each.id] for each in roots] == ["select", "browse", "select"]
    assert [each["trace_id"] for each in gate.record()] == [each.trace for each in roots]


def test_a_request_that_sends_several_calls_names_them_all(
    seen: Collector, gate: TracedGate
) -> None:
    gate.send("tools/call", {"name": "search", "arguments": {"words": "customers"}})
    gate.stop()
    lines = gate.record()
    found = seen.find("tools/call search")
    ids = {each["call_id"] for each in lines}
    assert len(ids) > 1
    assert {each["trace_id"] for each in lines} == {found.trace}
    assert found.about["tidegate.call.id"] in ids
    assert set(found.about["tidegate.call.ids"]) == ids
    inside = {each.about["tidegate.call.id"] for each in seen.spans if each.parent == found.id}
    assert inside <= ids


def test_durations_are_counted_by_what_is_known(seen: Collector, gate: TracedGate) -> None:
    for _ in range(3):
        gate.query("SELECT 1", headers={})
    gate.query("SELECT * FROM nothing", headers={})
    gate.stop()
    found = {(each.metric, each.about.get("error.type", "")): each for each in seen.points.values()}
    good = found["mcp.server.operation.duration", ""]
    assert (good.count, good.bounds) == (3, list(MCP_SECONDS))
    assert (good.bounds[0], good.bounds[-1]) == (0.01, 300.0)
    assert found["mcp.server.operation.duration", "tool_error"].count == 1
    assert found["db.client.operation.duration", ""].count == 3
    assert found["db.client.operation.duration", "sql.failed"].count == 1
    assert not [each for each in seen.points.values() if "jsonrpc.request.id" in each.about]
    assert not [each for each in seen.points.values() if "tidegate.call.id" in each.about]


def test_metrics_can_be_left_out(seen: Collector, tmp_path: Path) -> None:
    with traced_gate(tmp_path, seen.url, metrics=False) as gate:
        gate.query("SELECT 1")
        gate.stop()
    assert (len(seen.spans), len(seen.points)) == (2, 0)


SECRETS = [f"planted-{n:02}-secret" for n in range(14)]


def test_no_text_of_a_caller_or_of_a_database_leaves(seen: Collector, tmp_path: Path) -> None:
    (
        statement, value, table, column, argument, tool, name, id, session, bearer, agent, baggage,
        reason, method,
    ) = SECRETS  # fmt: skip
    token = tmp_path / "token"
    token.write_text("for-the-collector\n")
    token.chmod(0o600)
    headers = {"Authorization": f"Bearer ${{FILE:{token}}}"}
    with traced_gate(tmp_path, seen.url, headers=headers) as gate:
        given = {
            b"authorization": f"Bearer {bearer}".encode(),
            b"user-agent": agent.encode(),
            b"baggage": f"user={baggage}".encode(),
            b"mcp-session-id": session.encode(),
            b"traceparent": f"00-{bearer}-{SPAN}-01".encode(),
            b"tracestate": f"no {agent}".encode(),
        }
        meta = {"baggage": f"user={baggage}", "tidegate/reason": reason, "traceparent": reason}
        more = {"headers": given, "meta": meta, "id": id, "actor": WRITER}
        made = f'CREATE TABLE "{table}"("{column}")'
        gate.call(Query(Statement(made)))
        gate.query(made, **more)
        gate.query(f"INSERT INTO \"{table}\" VALUES ('{value}')", **more)
        gate.query(f'SELECT "{column}" /* {statement} */ FROM "{table}"', **more)
        gate.query(f'SELECT "{statement}" FROM "{table}"', **more)
        gate.query(f"{statement.upper()} IS NO STATEMENT", **more)
        gate.send("tools/call", {"name": "query", "arguments": {argument: argument}}, **more)
        gate.send("tools/call", {"name": tool, "arguments": {}}, **more)
        gate.send("resources/read", {"uri": f"file:///{argument}"}, **more)
        gate.send("prompts/get", {"name": name, "arguments": {argument: argument}}, **more)
        gate.send("completion/complete", {"ref": {"type": name}, "argument": argument}, **more)
        gate.send(method, {"x": argument}, **more)
        gate.query("SELECT 1", headers=given, meta=meta, id=name, actor=WRITER)
        gate.stop()
        assert len(seen.wait(12)) >= 12
        assert seen.points
        whole = b"".join(seen.bytes)
        assert [each for each in SECRETS if each.encode() in whole.lower()] == []
        people = ("tok_", WRITER.name, "for-the-collector", "peer", "customers")
        assert [each for each in people if each.encode() in whole] == []
        assert {each["authorization"] for each in seen.headers} == {"Bearer for-the-collector"}
        recorded = json.dumps(gate.record())
        assert baggage not in recorded
        for span in seen.spans:
            assert "jsonrpc.request.id" not in span.about


def test_every_name_that_is_sent_is_in_the_one_file(seen: Collector, gate: TracedGate) -> None:
    known = {value for value in vars(conventions).values() if isinstance(value, str)}
    gate.query("SELECT 1", headers={})
    gate.query("SELECT * FROM nothing", headers={})
    gate.send("no/method", {})
    gate.call(Query(Statement("SELECT 1")))
    gate.stop()
    sent = {name for each in seen.wait(7) for name in each.about}
    sent |= {name for each in seen.points.values() for name in (*each.about, each.metric)}
    assert sent <= known


def test_work_that_outlives_its_request_does_not_belong_to_its_trace(
    seen: Collector, gate: TracedGate
) -> None:
    gate.query("SELECT 1")
    gate.query("SELECT 1")
    gate.stop()
    assert len({each.trace for each in seen.wait(4)}) == 2


def test_without_a_tracer_a_record_names_no_trace(seen: Collector, gate: TracedGate) -> None:
    gate.stop()
    gate.query("SELECT 1", meta={"traceparent": PARENT}, headers={})
    assert seen.spans == []
    assert "trace_id" not in gate.record()[-1]
