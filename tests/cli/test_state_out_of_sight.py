"""A server whose state is gone lets nothing through, and works again when it is back."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S, wait_until

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """Asks a server on HTTP, with a token."""

    def __init__(self, server: Serving, token: str) -> None:
        line = server.until("serving")
        self.place = next(word for word in line.split() if word.startswith("http://"))
        self.token = token

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> tuple[int, Any, Any]:
        place = self.place.removeprefix("http://").partition("/")[0]
        connection = HTTPConnection(place, timeout=PATIENCE_S)
        headers = {"content-type": "application/json", "accept": "application/json", **more}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, answer.headers, text
        finally:
            connection.close()

    def query(self) -> tuple[int, Any, Any]:
        params = {"name": "query", "arguments": {"sql": "SELECT 1"}, "_meta": META}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self.ask(
            *("POST", "/mcp/core", frame),
            **{
                "authorization": f"Bearer {self.token}",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "query",
            },
        )


@pytest.mark.needs("console")
def test_no_call_and_no_page_is_answered_until_the_state_is_seen_again(
    database: Path, state: Path
) -> None:
    token = tidegate("token", "create", "agent", "--scope", "readOnly", state=state).out.strip()
    words = ("serve", "--http", "127.0.0.1:0", "--console", "--source", f"t=sqlite:///{database}")
    with serving(words, state) as server:
        client = Client(server, token)
        assert client.query()[0] == 200
        file, aside = state / "state.db", state / "aside.db"
        file.rename(aside)
        wait_until(lambda: client.query()[0] == 503, "calls are refused")
        _, headers, text = client.query()
        assert headers["retry-after"] and "The state has not been read" in text
        status, _, text = client.ask("GET", "/ready")
        assert status == 503
        page = {"origin": client.place.rpartition("/mcp")[0], "sec-fetch-site": "same-origin"}
        status, _, text = client.ask("POST", "/console/api/session", {"key": "k"}, **page)
        assert (status, json.loads(text)["error"]) == (503, "state.failed")
        shown = tidegate("status", state=state)
        assert "state       The state has not been read" in shown.out, shown.out
        aside.rename(file)
        wait_until(lambda: client.query()[0] == 200, "calls are answered again")
