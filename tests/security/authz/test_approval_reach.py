"""Whoever holds a token cannot answer a question: no tool, no resource, no address leads there."""

from __future__ import annotations

import ast
import http.client
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import tidegate
from support.command_line import serving
from support.command_line import tidegate as run
from support.eventually import PATIENCE_S
from tidegate.surfaces.registry import SURFACES
from wire.wires import MODERN, HttpPeer

SQL = "UPDATE t SET name = 'new' WHERE id = 1"
PATHS = ("/", "/approvals", "/v1/approvals", "/mcp/approvals", "/console", "/health", "/mcp")


def _filled(schema: dict[str, Any], id: str, answer: str) -> dict[str, Any]:
    """Arguments in which whatever may be a text is the question's id or an answer."""
    given: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        if name in ("sql", "query"):
            given[name] = f"SELECT '{answer} {id}'"
        elif field.get("type") == "string":
            given[name] = field["enum"][0] if "enum" in field else id
    return given


def test_nothing_that_a_token_opens_answers_a_question(tmp_path: Path) -> None:
    database, state = tmp_path / "t.db", tmp_path / "state"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'old')")
    words = (
        "source",
        "add",
        "t",
        f"sqlite:///{database}",
        "--allow-writes",
        "--approval-for",
        "writes",
    )
    assert run(*words, state=state).status == 0
    token = run("token", "create", "agent", "--scope", "fullAccess", state=state).out.strip()
    surfaces = [name for name in ("core", "workbench") if name in SURFACES]
    named = [word for name in surfaces for word in ("--surface", name)]
    serve = ["serve", *named, "--http", "127.0.0.1:0"]
    with serving(serve, state) as server:
        address = next(word for word in server.until("serving").split() if word.startswith("http"))
        port = int(address.removesuffix("/mcp").rpartition(":")[2])
        peer = HttpPeer(port, MODERN, capabilities={}, path="/mcp/core")
        peer.token = token
        assert "approval.needed" in peer.call("query", {"sql": SQL}).text
        (asked,) = run("approvals", "list", "--json", state=state).json["approvals"]
        id = asked["id"]
        called = 0
        for name in surfaces:
            peer.path = f"/mcp/{name}"
            tools = peer.request("tools/list").result["tools"]
            for tool in tools:
                for answer in ("allow", "allowed"):
                    given = _filled(tool["inputSchema"], id, answer)
                    peer.request("tools/call", {"name": tool["name"], "arguments": given})
                    called += 1
            for method in ("approvals/allow", "approvals/decide", "elicitation/create"):
                peer.request(method, {"id": id, "decision": "allow once"})
        assert called > (40 if "workbench" in surfaces else 10)
        for path in PATHS:
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
                _knock(port, method, f"{path}?allow={id}", token, id)
                _knock(port, method, f"{path}/{id}/allow", token, id)
        (kept,) = run("approvals", "list", "--json", state=state).json["approvals"]
        assert (kept["id"], kept["state"], kept["decided_by"]) == (id, "pending", "")
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT name FROM t").fetchall() == [("old",)]


def _knock(port: int, method: str, path: str, token: str, id: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps({"id": id, "decision": "allow"}), headers)
    connection.getresponse().read()
    connection.close()


GRANTS = ("resolve", "answer_approval", "record_client_answer")


def test_only_the_inbox_and_the_client_s_form_resolve() -> None:
    """A new way to grant needs a change of this test, and so a decision."""
    root = Path(tidegate.__file__).parent
    resolvers: set[tuple[str, str]] = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in GRANTS:
                owner = ast.unparse(node.value)
                if owner.endswith(("approvals", "_store", "gate", "gateway")):
                    resolvers.add((file.relative_to(root).as_posix(), f"{owner}.{node.attr}"))
    expected = {
        ("cli/commands/approvals.py", "app.approvals.resolve"),
        ("cli/commands/undo.py", "app.approvals.resolve"),
        ("products/console/inbox.py", "self._approvals.resolve"),
        ("products/console/changes.py", "self._approvals.resolve"),
        ("gateway/approval.py", "services.approvals.record_client_answer"),
        ("surfaces/elicitation.py", "gate.answer_approval"),
        ("approvals/approvals.py", "self._store.resolve"),
    }
    assert resolvers == {
        each for each in expected if root.joinpath(*each[0].split("/")[:2]).exists()
    }
