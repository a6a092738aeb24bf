"""A gate that is killed at any moment loses nothing on its way to a destination."""

from __future__ import annotations

import json
import re
import signal
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from products.shipping.support.receivers import otlp_receiver
from products.shipping.support.record import ids_of, uids
from support.command_line import Serving, serving
from support.eventually import PATIENCE_S, wait_until
from tidegate.audit.shipped import find_gate_id

ROUNDS = 5
CALLS = 150


def port_of(server: Serving) -> int:
    return int(re.findall(r":(\d+)/mcp", server.until("serving core"))[0])


def ask_many(port: int, count: int) -> None:
    """Send reads over one connection, one after the other."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "query", "arguments": {"sql": "SELECT 1", "source": "s"}, "_meta": meta}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call", "Mcp-Name": "query",
    }  # fmt: skip
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        for _ in range(count):
            connection.request("POST", "/mcp", frame, headers)
            assert connection.getresponse().read()


@pytest.mark.parametrize("kind", ["otlp", "file"])
def test_a_gate_that_is_killed_mid_batch_ships_every_line_in_the_end(
    tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "record.jsonl"
    state = tmp_path / "state"
    with otlp_receiver() as receiver:
        url = receiver.url if kind == "otlp" else f"file://{file}"
        settings: dict[str, Any] = {
            "auth": False,
            "sources": [{"name": "s", "url": "sqlite:///:memory:"}],
            "ship": {"to": [{"name": "to", "url": url}], "poll_s": 0.01},
        }
        (tmp_path / "tidegate.json").write_text(json.dumps(settings))
        words = ("serve", "--http", "127.0.0.1:0", "--config", str(tmp_path / "tidegate.json"))

        def came() -> list[str]:
            if kind == "otlp":
                return receiver.ids
            return uids(file.read_bytes().splitlines()) if file.exists() else []

        for number in range(ROUNDS):
            with serving(words, state) as server:
                port = port_of(server)
                before = len(came())
                ask_many(port, CALLS * (number + 1) // ROUNDS)
                wait_until(lambda before=before: len(came()) > before, "some came")
                server.process.send_signal(signal.SIGKILL)
        with serving(words, state) as server:
            port_of(server)
            record = state / "audit"
            wait_until(lambda: set(ids_of(record, find_gate_id(record))) <= set(came()), "all came")
        found = came()
    ids = ids_of(record, find_gate_id(record))
    assert set(found) <= set(ids)
    assert len(ids) > CALLS
