"""TRIALS D8: the client's address of calls over HTTP, behind proxies and with forged headers."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving, tidegate
from support.eventually import PATIENCE_S, wait_until
from wire.raw_http import http_request
from wire.test_gate import _port

GUESS = f"tg_{'a' * 43}"
PAIRS = [
    ("x-forwarded-for", "198.51.100.1, 203.0.113.9"),
    ("forwarded", 'for=198.51.100.1, for="203.0.113.9:4711"'),
]


class Gate:
    """A server with one source, and the token `analyst` that may read it."""

    def __init__(self, directory: Path, proxies: Sequence[str]) -> None:
        with sqlite3.connect(directory / "shop.db") as connection:
            connection.execute("CREATE TABLE items (id INTEGER)")
        connection.close()
        self.state = directory / "state"
        self.settings = directory / "tidegate.json"
        source = {"name": "shop", "url": f"sqlite:///{directory / 'shop.db'}"}
        self.settings.write_text(
            json.dumps({"sources": [source], "trusted_proxies": list(proxies)})
        )
        self.settings.chmod(0o600)
        made = tidegate("token", "create", "analyst", "--scope", "readOnly", state=self.state)
        self.token = made.out.strip()
        self.port = 0

    def call(
        self,
        *headers: tuple[str, str],
        token: str = "",
        tool: str = "query",
        sql: str = "SELECT * FROM items",
        connection: HTTPConnection | None = None,
    ) -> int:
        """The status of a call, on an open connection if one is given."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": {"sql": sql}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        sent = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", f"Bearer {token or self.token}"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
            *headers,
        ]
        body = json.dumps(message).encode()
        if connection is not None:
            connection.request("POST", "/mcp/core", body, dict(sent))
            kept = connection.getresponse()
            kept.read()
            return kept.status
        response = http_request(self.port, "POST", "/mcp/core", body, sent)
        response.read()
        response.close()
        return response.status

    def records(self) -> list[dict[str, Any]]:
        files = sorted((self.state / "audit").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@contextmanager
def gate(directory: Path, *proxies: str) -> Iterator[Gate]:
    """A running gate. When it ends, its record is verified."""
    made = Gate(directory, proxies)
    words = ["serve", "--config", str(made.settings), "--http", "127.0.0.1:0"]
    with serving(words, made.state) as server:
        made.port = _port(server)
        yield made
    assert tidegate("audit", "verify", state=made.state).status == 0


@pytest.mark.parametrize("forged", PAIRS)
def test_forged_headers_of_a_client_that_is_no_trusted_proxy_change_nothing(
    tmp_path: Path, forged: tuple[str, str]
) -> None:
    with gate(tmp_path, "10.0.0.5") as served:
        assert served.call(forged) == 200
        statuses = [served.call((forged[0], f"192.0.2.{n}"), token=GUESS) for n in range(6)]
        assert statuses == [401] * 5 + [429]
    calls = [record for record in served.records() if "call_id" in record]
    assert [record["address"] for record in calls] == ["127.0.0.1"]
    failures = [record for record in served.records() if record.get("name") == "login.failed"]
    assert {record["details"]["address"] for record in failures} == {"127.0.0.1"}


@pytest.mark.parametrize("given", PAIRS)
def test_calls_and_refusals_through_a_trusted_proxy_have_the_address_of_the_client(
    tmp_path: Path, given: tuple[str, str]
) -> None:
    with gate(tmp_path, "127.0.0.1") as served:
        assert served.call(given) == 200
        served.call(given, sql="DELETE FROM items")
        served.call(given, tool="drop_everything")
        assert served.call() == 200
    calls = [record for record in served.records() if "call_id" in record]
    assert [(record["phase"], record["address"]) for record in calls] == [
        ("outcome", "203.0.113.9"),
        ("refusal", "203.0.113.9"),
        ("outcome", "127.0.0.1"),
    ]
    (rejected,) = [each for each in served.records() if each.get("name") == "call.rejected"]
    assert rejected["address"] == "203.0.113.9"
    for record in [*calls, rejected]:
        assert record["actor"].startswith("tok_") and record["actor_name"] == "analyst"
    shown = tidegate("audit", "tail", state=served.state).out
    assert shown.count("address=203.0.113.9") == 3
    assert shown.count(f"analyst ({calls[0]['actor']})") == 4


def test_a_client_behind_a_proxy_is_locked_out_and_others_there_are_not(tmp_path: Path) -> None:
    def came_from(address: str) -> tuple[str, str]:
        return "x-forwarded-for", address

    with gate(tmp_path, "127.0.0.1") as served:
        # What the client writes before the proxy's own word does not matter.
        statuses = [
            served.call(came_from(f"192.0.2.{n}, 203.0.113.9"), token=GUESS) for n in range(6)
        ]
        assert statuses == [401] * 5 + [429]
        assert served.call(came_from("203.0.113.10"), token=GUESS) == 401
        assert served.call(token=GUESS) == 401
        assert served.call(came_from("203.0.113.9")) == 200
    locked = [each for each in served.records() if each.get("name") == "login.locked_out"]
    assert [record["details"] for record in locked] == [{"address": "203.0.113.9"}]


@pytest.mark.parametrize("told", ["by SIGHUP", "by the next request"])
def test_proxies_follow_the_settings_while_connections_stay(tmp_path: Path, told: str) -> None:
    settings = tmp_path / "tidegate.json"

    def trust(*proxies: str) -> None:
        changed = json.loads(settings.read_text()) | {"trusted_proxies": list(proxies)}
        settings.write_text(json.dumps(changed))
        if told == "by SIGHUP":
            before = len(changes(served))
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(changes(served)) > before, "the settings are read again")

    def changes(served: Gate) -> list[dict[str, Any]]:
        return [each for each in served.records() if each.get("name") == "settings.changed"]

    served = Gate(tmp_path, ())
    words = ["serve", "--config", str(settings), "--http", "127.0.0.1:0"]
    with serving(words, served.state) as server:
        served.port = _port(server)
        with closing(HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)) as connection:
            for proxies in ((), ("127.0.0.1",), ("127.0.0.0/8",), ()):
                trust(*proxies)
                # Guesses never reach the gate, and their address counts as well.
                assert served.call(PAIRS[0], token=GUESS) == 401
                assert served.call(PAIRS[0], connection=connection) == 200
    calls = [record["address"] for record in served.records() if "call_id" in record]
    proxy, client = "127.0.0.1", "203.0.113.9"
    assert calls == [proxy, client, client, proxy]
    failures = [each for each in served.records() if each.get("name") == "login.failed"]
    assert [each["details"]["address"] for each in failures] == calls
    assert tidegate("audit", "verify", state=served.state).status == 0
