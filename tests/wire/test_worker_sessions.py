"""Sessions at a gate of workers: what comes to one of them is done at the one that it is for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from support.command_line import tidegate
from support.eventually import wait_until
from support.worker_gate import WorkerGate, shop, worker_gate

REVISION = "2025-06-18"
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000000)"
    " SELECT max(i) AS m FROM n"
)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerGate]:
    folder = tmp_path_factory.mktemp("gate")
    source = {
        "name": "shop", "url": f"sqlite:///{shop(folder)}", "access": "write",
        "approval_for": "writes",
    }  # fmt: skip
    with worker_gate(folder, auth=True, sources=[source]) as made:
        made.token = tidegate(
            "token", "create", "writer", "--scope", "readWrite", state=made.state
        ).out.strip()
        yield made


class Client:
    """A client of the handshake era, whose requests come to the worker that each names."""

    def __init__(self, gate: WorkerGate, at: int) -> None:
        self.gate = gate
        self.headers = {
            "Authorization": f"Bearer {gate.token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        info = {"name": "test", "version": "1"}
        about = {
            "protocolVersion": REVISION, "capabilities": {"elicitation": {}}, "clientInfo": info
        }  # fmt: skip
        with closing(gate.connection_at(at)) as connection:
            opened = self.post(connection, {"id": 1, "method": "initialize", "params": about})
            opened.read()
            self.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = REVISION

    def post(self, connection: HTTPConnection, message: dict[str, Any]) -> HTTPResponse:
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), self.headers)
        return connection.getresponse()

    def tell(self, at: int, message: dict[str, Any]) -> int:
        """Send what needs no answer to a worker, and return the status."""
        with closing(self.gate.connection_at(at)) as connection:
            response = self.post(connection, message)
            response.read()
            return response.status


def call(sql: str) -> dict[str, Any]:
    return {"name": "query", "arguments": {"sql": sql}}


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream, as they come."""
    for line in response:
        if line.startswith(b"data: ") and line.strip() != b"data:":
            yield json.loads(line[6:])


def test_the_answer_to_a_question_may_come_to_another_worker(gate: WorkerGate) -> None:
    client = Client(gate, at=1)
    with closing(gate.connection_at(1)) as connection:
        asked = {"id": 7, "method": "tools/call", "params": call("DELETE FROM items WHERE id = 7")}
        stream = events(client.post(connection, asked))
        question = next(each for each in stream if each.get("method") == "elicitation/create")
        allowed = {"action": "accept", "content": {"decision": "allow once"}}
        answer = {"id": question["id"], "result": allowed}
        assert client.tell(2, answer) == 202
        done = next(each for each in stream if each.get("id") == 7)
    assert not done["result"].get("isError"), done


def test_a_call_is_cancelled_by_what_comes_to_another_worker(gate: WorkerGate) -> None:
    client = Client(gate, at=2)
    with closing(gate.connection_at(1)) as connection:
        connection.request(
            "POST", "/mcp",
            json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call(SLOW)}),
            client.headers,
        )  # fmt: skip
        wait_until(lambda: running(gate) == 1, "the statement runs")
        params = {"requestId": 9, "reason": "no longer needed"}
        assert client.tell(2, {"method": "notifications/cancelled", "params": params}) == 202
        wait_until(lambda: running(gate) == 0, "the statement ends")


def running(gate: WorkerGate) -> float:
    return gate.figures()["tidegate_calls_running"]


def test_a_session_ends_at_every_worker_and_outlives_the_one_that_began_it(
    gate: WorkerGate,
) -> None:
    client = Client(gate, at=1)
    listing = {"id": 3, "method": "tools/list", "params": {}}
    assert client.tell(2, listing) == 200
    gate.kill(1)
    wait_until(lambda: gate.figures()["tidegate_workers"] == 2, "two workers serve")
    assert [client.tell(number, listing) for number in (1, 2)] == [200, 200]
    with closing(gate.connection_at(2)) as connection:
        connection.request("DELETE", "/mcp", headers=client.headers)
        assert connection.getresponse().status == 204
    wait_until(lambda: client.tell(1, listing) == 404, "the other worker has been told")
    assert client.tell(2, listing) == 404


def test_what_a_caller_has_chosen_on_a_surface_holds_whichever_worker_its_calls_come_to(
    gate: WorkerGate,
) -> None:
    tokens = [
        tidegate("token", "create", f"t{n}", "--scope", "readOnly", state=gate.state).out.strip()
        for n in range(4)
    ]
    for token in tokens:  # of which some belong to each of the workers
        headers = {
            "Authorization": f"Bearer {token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        statuses: list[int] = []
        for number in (1, 2, 1, 2):
            about = {
                "protocolVersion": REVISION, "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }  # fmt: skip
            first = "Mcp-Session-Id" not in headers
            message = {"id": 1, "method": "initialize" if first else "tools/list",
                       "params": about if first else {}}  # fmt: skip
            with closing(gate.connection_at(number)) as connection:
                body = json.dumps({"jsonrpc": "2.0", **message})
                connection.request("POST", "/mcp/workbench", body, headers)
                response = connection.getresponse()
                assert b"jsonrpc" in response.read()
                statuses.append(response.status)
                if first:
                    headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
                    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                    connection.request("POST", "/mcp/workbench", json.dumps(ready), headers)
                    assert connection.getresponse().read() == b""
        assert statuses == [200] * 4
