"""Nothing but the HTTP client sends HTTP to others, and a start does not pay for it."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "tidegate"
SPEAKS = re.compile(
    r"HttpResponseParser|urllib\.request|urlopen|http\.client"
    r"|^\s*(?:from|import) (?:httpx|aiohttp|requests|urllib3)\b",
    re.MULTILINE,
)
OTHERS = {
    "bridge/http_client.py": "our own server",
    "cli/commands/pair.py": "our own server",
    "cli/demo_mcp_client.py": "our own server",
    "products/jdbc/maven/driver_cache.py": "the environment's proxies, no request",
    "products/vault/bounded_session.py": "the answers to the requests of hvac, within bounds",
    "products/vault/server.py": "the requests of hvac: to the address of the settings, no proxy",
}


def test_no_other_module_speaks_http_to_others() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if SPEAKS.search(path.read_text())
    }
    assert {path for path in found if not path.startswith("http_client/")} <= OTHERS.keys()


def test_the_first_answer_comes_without_the_client(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "x.db").close()
    query = {"name": "query", "arguments": {"sql": "SELECT 1", "source": "x"}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "x", "version": "1"}  # type: ignore[assignment]
    lines = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": query},
    ]
    command = [sys.executable, "-X", "importtime", "-m", "tidegate", "serve"]
    command += ["--state", str(tmp_path / "state"), "--source", f"x=sqlite:///{tmp_path}/x.db"]
    text = "".join(f"{json.dumps({'jsonrpc': '2.0', **each})}\n" for each in lines)
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert r"[[1]]" in ran.stdout
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "tidegate.app" in imported
    assert not imported & {"tidegate.http_client", "httptools", "urllib.request", "http.client"}
