"""TRIALS B15 and D6: how a server stops, what it reads again, and what it serves by default."""

from __future__ import annotations

import json
import os
import signal
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.audit_records import records
from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S, wait_until
from tidegate.cli.parser import build
from tidegate.errors import ERRORS, Code

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
BRIEF = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) "
    "SELECT max(i) AS most FROM n"
)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def address(server: Serving) -> str:
    line = server.until("serving")
    return next(word for word in line.split() if word.startswith("http")).removesuffix("/mcp")


def begin(where: str, sql: str) -> HTTPConnection:
    """Send a query and leave its answer for later."""
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "query",
    }
    params = {"name": "query", "arguments": {"sql": sql}, "_meta": META}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection = HTTPConnection(where.removeprefix("http://"), timeout=PATIENCE_S)
    connection.request("POST", "/mcp", json.dumps(frame), headers)
    # The server reads what came first, first: with this answer it has begun with the query.
    health = HTTPConnection(connection.host, connection.port, timeout=PATIENCE_S)
    health.request("GET", "/health")
    assert health.getresponse().status == 200
    health.close()
    return connection


def names(state: Path) -> list[str]:
    return [str(event.get("name")) for event in records(state)]


def words(database: Path, settings: str) -> tuple[str, ...]:
    source = ("--source", f"towns=sqlite:///{database}")
    return ("serve", "--http", "127.0.0.1:0", "--no-auth", *source, "--config", settings)


def test_b15_a_running_call_is_answered_after_sigterm(database: Path, state: Path) -> None:
    with serving(words(database, '{"stop_grace_s": 600}'), state) as server:
        connection = begin(address(server), BRIEF)
        server.process.send_signal(signal.SIGTERM)
        response = connection.getresponse()
        assert response.status == 200
        assert b"3000000" in response.read()
        connection.close()
        assert server.process.wait(PATIENCE_S) == 0
    assert names(state).count("server.stopped") == 1


def test_b15_a_second_signal_cancels_and_leaves_the_stop_on_record(
    database: Path, state: Path
) -> None:
    settings = '{"stop_grace_s": 600, "limits": {"timeout_s": 300}}'
    with serving(words(database, settings), state) as server:
        connection = begin(address(server), ENDLESS)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: _refuses(connection), "the server accepts no more callers")
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        connection.close()
    assert names(state).count("server.stopped") == 1


def _refuses(connection: HTTPConnection) -> bool:
    other = HTTPConnection(connection.host, connection.port, timeout=PATIENCE_S)
    try:
        other.connect()
    except OSError:
        return True
    finally:
        other.close()
    return False


def test_b15_no_grace_cancels_at_once(database: Path, state: Path) -> None:
    settings = '{"stop_grace_s": 0, "limits": {"timeout_s": 300}}'
    with serving(words(database, settings), state) as server:
        connection = begin(address(server), ENDLESS)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        connection.close()
    assert names(state).count("server.stopped") == 1


def test_b15_a_hangup_reads_the_settings_again(database: Path, state: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"auth": false}')
    with serving(words(database, str(settings)), state) as server:
        address(server)
        settings.write_text('{"auth": false, "body_limit_bytes": 5000}')
        os.utime(settings, (1, 1))
        server.process.send_signal(signal.SIGHUP)
        line = server.until("restart")
        assert "WARNING" in line and "body_limit_bytes" in line
        assert server.process.poll() is None
        ended = server.tell(signal.SIGTERM)
        assert ended.status == 0
    assert names(state).count("server.stopped") == 1


def test_b15_a_hangup_without_a_settings_file_kills_nothing(state: Path) -> None:
    with serving(("serve", "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        address(server)
        server.process.send_signal(signal.SIGHUP)
        assert "no settings file" in server.until("SIGHUP")
        assert server.tell(signal.SIGTERM).status == 0


def tools_at(where: str, path: str) -> set[str]:
    """The names of the tools that are served at a path."""
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    connection = HTTPConnection(where, timeout=PATIENCE_S)
    connection.request("POST", path, json.dumps(frame), headers)
    reply = json.loads(connection.getresponse().read())
    connection.close()
    return {tool["name"] for tool in reply["result"]["tools"]}


def test_d6_core_has_a_path_and_is_the_default(state: Path) -> None:
    with serving(("serve", "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        where = address(server).removeprefix("http://")
        assert tools_at(where, "/mcp") == tools_at(where, "/mcp/core")
        assert "query" in tools_at(where, "/mcp")


@pytest.mark.needs("workbench")
def test_d6_every_surface_has_a_path(state: Path) -> None:
    with serving(("serve", "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        where = address(server).removeprefix("http://")
        assert tools_at(where, "/mcp/core") != tools_at(where, "/mcp/workbench")
        assert "execute_query" in tools_at(where, "/mcp/workbench")


def test_d6_stdio_serves_core_by_default(state: Path) -> None:
    with serving(("serve",), state) as server:
        tools = server.ask("tools/list", {})["result"]["tools"]
    assert "query" in {tool["name"] for tool in tools}


def test_c8_stdio_and_http_are_served_by_one_process(state: Path) -> None:
    with serving(("serve", "--stdio", "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        where = address(server).removeprefix("http://")
        assert "result" in server.ask("tools/list", {})
        assert server.process.stdin is not None
        server.process.stdin.close()
        connection = HTTPConnection(where, timeout=PATIENCE_S)
        connection.request("GET", "/ready")
        assert connection.getresponse().status == 200
        connection.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        server.process.stdin = None
    assert names(state).count("server.started") == names(state).count("server.stopped") == 1


def test_without_a_server_the_command_that_starts_one_is_whole(tmp_path: Path) -> None:
    for told in (tidegate("stop", state=tmp_path).err, ERRORS[Code.BRIDGE_NO_SERVER].hint):
        words = told.partition("`tidegate ")[2].partition("`")[0].split()
        assert build(words).parse_args(words).http, told
