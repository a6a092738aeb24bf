"""Attacks by leaving: a client that goes away must not leave a statement behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.attack_target import META, RUNAWAY, Target, computes, make_shop
from support.command_line import serving
from support.eventually import PATIENCE_S


@pytest.mark.parametrize("tool", ["query", "explain"])
def test_a_statement_ends_when_its_client_disconnects(server: Target, tool: str) -> None:
    text = RUNAWAY if tool == "query" else f"SELECT * FROM ({RUNAWAY})"
    connection = server.begin(tool, sql=text)
    if tool == "query":
        server.computes(0.2)
    connection.close()
    server.wait_until_idle()


def test_a_stdio_server_ends_soon_when_its_client_has_died(tmp_path: Path) -> None:
    database = make_shop(tmp_path / "shop" / "shop.db")
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    words = ["serve", "--surface", "core", "--source", f"shop=sqlite:///{database}"]
    words += ["--config", '{"limits": {"timeout_s": 300}, "stop_grace_s": 600}']
    with serving(words, state) as server:
        assert "result" in server.ask("tools/list", {})
        params = {"name": "query", "arguments": {"sql": RUNAWAY}, "_meta": META}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        computes(server.process.pid, 0.2)
        assert server.process.poll() is None
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        server.process.stdin.close()
        server.process.stdout.close()
        assert server.process.wait(PATIENCE_S) == 0
        server.process.stdin = server.process.stdout = None
