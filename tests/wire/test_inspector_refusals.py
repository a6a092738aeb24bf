"""The Inspector shows a refusal of the gate as what it is (trials, C): not as a login that is
missing, and not as a failure of the transport."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from external.install import node, node_environment, node_modules
from support.command_line import serving
from support.eventually import HANG_S
from support.free_ports import claim_port
from wire.test_inspector import LAUNCHER

DELETE = "DELETE FROM towns"


def call(home: Path, target: str, tool: str, arguments: dict[str, str]) -> tuple[int, str]:
    """The exit status, and all that a person reads."""
    script = str(node_modules() / LAUNCHER)
    given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    done = subprocess.run(
        [str(node()), script, "--cli", "-q", "--protocol-era", "legacy", "--method", "tools/call",
         *given, "--format", "json", "--transport", "http", target],
        env={**node_environment(), "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("surface", ["workbench", "core"])
def test_the_inspector_shows_a_refusal_with_its_rule(tmp_path: Path, surface: str) -> None:
    path = tmp_path / "towns.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript("CREATE TABLE towns (id INTEGER); INSERT INTO towns VALUES (1)")
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    port = claim_port()
    words = ("serve", "--http", f"127.0.0.1:{port}", "--no-auth", "--surface", surface)
    with serving((*words, "--source", f"towns=sqlite:///{path}"), state) as server:
        server.until(str(port))
        target = f"http://127.0.0.1:{port}/mcp/{surface}"
        tool, arguments = "query", {"sql": DELETE}
        if surface == "workbench":
            status, said = call(tmp_path, target, "list_connections", {})
            assert status == 0, said
            found = json.loads(said)["result"]["structuredContent"]["connections"]
            tool, arguments = "execute_query", {"connection_id": found[0]["id"], "query": DELETE}
        status, said = call(tmp_path, target, tool, arguments)
    assert status != 0
    assert "read-only" in said, said
    assert "auth_required" not in said and "transport" not in said.lower()
    with closing(sqlite3.connect(path)) as kept:
        assert kept.execute("SELECT count(*) FROM towns").fetchone() == (1,)
