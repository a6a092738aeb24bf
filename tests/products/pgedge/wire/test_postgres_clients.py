"""The official clients and the Inspector on both endpoints of the surface `postgres`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from external.install import node, node_environment, node_modules
from support.eventually import HANG_S
from support.free_ports import claim_port
from support.postgres_surface import PostgresShop
from wire.conversations import python_sdk, typescript_sdk
from wire.served import Served

CLIENTS = {
    "python 1": partial(python_sdk, 1),
    "python 2": partial(python_sdk, 2),
    "typescript 1": partial(typescript_sdk, 1),
    "typescript 2": partial(typescript_sdk, 2),
}
LAUNCHER = Path("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
SELECT = "SELECT id, email FROM users ORDER BY id"
TOOLS = {
    "generate_embedding",
    "get_schema_info",
    "query_database",
    "read_resource",
    "similarity_search",
}


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting()
    yield shop
    shop.drop()


@pytest.fixture(scope="module")
def server(shop: PostgresShop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    port = claim_port()
    state = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-m", "tidegate", "serve", "--surface", "postgres", "--no-auth"]
    command += ["--http", f"127.0.0.1:{port}", "--state", str(state)]
    served = Served([*command, "--source", f"shop={shop.url}"], port)
    yield served
    served.close()


@pytest.mark.parametrize("path", ["/mcp/v1", "/mcp/postgres"])
@pytest.mark.parametrize("client", CLIENTS)
def test_each_official_client_reads_and_is_refused_a_change(
    server: Served, shop: PostgresShop, client: str, path: str
) -> None:
    calls = [
        ["query_database", {"query": SELECT, "limit": 2}],
        ["query_database", {"query": "DELETE FROM users"}],
        ["get_schema_info", {"compact": True}],
        ["read_resource", {"uri": "pg://system_info"}],
    ]
    url = f"http://127.0.0.1:{server.port}{path}"
    mode = {"mode": "auto"} if client.endswith("2") else {}
    report = CLIENTS[client]({"url": url, "calls": calls, **mode})
    if path == "/mcp/v1" and report["revision"] is not None:
        assert report["revision"] == "2024-11-05"
    assert set(report["tools"]) == TOOLS
    first, refused, tables, info = report["results"]
    assert '{"id": 2, "email": "u2@example.org"}' in first["text"]
    assert refused["is_error"]
    assert "policy.read_only" in refused["text"]
    assert "public.users: id, email, status" in tables["text"]
    assert json.loads(info["text"])["database"] == shop.database
    assert shop.ask("SELECT count(*) FROM users") == [(20,)]


@pytest.mark.parametrize("path", ["/mcp/v1", "/mcp/postgres", None])
def test_the_inspectors_command_line_lists_and_calls(
    server: Served, shop: PostgresShop, tmp_path: Path, path: str | None
) -> None:
    if path is None:
        serve = [sys.executable, "-m", "tidegate", "serve", "--surface", "postgres"]
        target = [*serve, "--state", str(tmp_path / "state"), "--source", f"shop={shop.url}"]
    else:
        target = ["--transport", "http", f"http://127.0.0.1:{server.port}{path}"]
    listed = _inspect(tmp_path, "tools/list", target)
    assert {tool["name"] for tool in listed["result"]["tools"]} == TOOLS
    given = json.dumps({"query": SELECT, "limit": 1})
    options = ("--tool-name", "query_database", "--tool-args-json", given)
    called = _inspect(tmp_path, "tools/call", target, *options)
    assert '{"id": 1, "email": "u1@example.org"}' in called["result"]["content"][0]["text"]
    resources = _inspect(tmp_path, "resources/list", target)
    assert len(resources["result"]["resources"]) == 4


def _inspect(home: Path, method: str, target: list[str], *options: str) -> Any:
    script = str(node_modules() / LAUNCHER)
    command = [str(node()), script, "--cli", "-q", "--protocol-era", "legacy", "--method", method]
    done = subprocess.run(
        [*command, *options, "--format", "json", *target],
        env={**node_environment(), "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_documents_fetch_snippet_reads_a_stream(server: Served, tmp_path: Path) -> None:
    """As the document writes it, from Node: no Accept, a bearer that is not needed here."""
    sql = "SELECT i, repeat('x', 100) AS pad FROM generate_series(1, 5000) AS i"
    script = tmp_path / "snippet.mjs"
    script.write_text(
        f"""
const response = await fetch('http://127.0.0.1:{server.port}/mcp/v1', {{
  method: 'POST',
  headers: {{
    'Authorization': 'Bearer YOUR_TOKEN',
    'Content-Type': 'application/json'
  }},
  body: JSON.stringify({{
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {{
      name: 'query_database',
      arguments: {{ query: {json.dumps(sql)}, limit: 5000 }}
    }}
  }})
}});
const reader = response.body.getReader();
const decoder = new TextDecoder();
let whole = '', chunks = 0;
while (true) {{
  const {{ done, value }} = await reader.read();
  if (done) break;
  chunks += 1;
  whole += decoder.decode(value, {{ stream: true }});
}}
const reply = JSON.parse(whole);
const text = reply.result.content[0].text;
console.log(JSON.stringify({{ chunks, ends: text.includes('5000 rows'), id: reply.id }}));
"""
    )
    done = subprocess.run(
        [str(node()), str(script)], capture_output=True, text=True, timeout=HANG_S, check=True
    )
    said = json.loads(done.stdout)
    assert said["chunks"] > 1
    assert (said["ends"], said["id"]) == (True, 1)
