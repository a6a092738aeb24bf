"""`tidegate serve`: what it says where, who may write, and how it ends."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.command_line import STARTED, Ended, Serving, serving, tidegate
from support.eventually import PATIENCE_S

Run = Callable[..., Ended]
Contents = Callable[[], list[tuple[object, ...]]]

CORE = ("serve", "--surface", "core")
started = partial(serving, program=STARTED)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(server: Serving, tool: str, **arguments: Any) -> tuple[str, bool]:
    """(text, whether it is an error) of one tool call over stdio."""
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
    return result["content"][0]["text"], bool(result.get("isError"))


def post(address: str, tool: str, token: str | None = None, **arguments: Any) -> tuple[int, str]:
    """(HTTP status, body) of one tool call over HTTP."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    params = {"name": tool, "arguments": arguments, "_meta": META}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection = HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE_S)
    try:
        connection.request("POST", "/mcp/core", json.dumps(frame), headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def address(server: Serving) -> str:
    """Where a server on HTTP says that it listens."""
    line = server.until("serving")
    return next(word for word in line.split() if word.startswith("http")).removesuffix("/mcp")


def test_nothing_but_messages_is_on_stdout(database: Path, state: Path) -> None:
    words = (*CORE, "--source", f"towns=sqlite:///{database}")
    with started(words, state) as server:
        server.send({"not": "a message"})
        assert "error" in json.loads(server.line())
        text, is_error = call(server, "query", sql="SELECT name FROM towns ORDER BY id")
        assert not is_error and "Köln" in text
        ended = server.ended()
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_the_end_of_the_input_ends_it_at_once_when_nothing_was_asked(run: Run) -> None:
    assert run(*CORE) == (0, "", "")


def test_what_was_asked_before_the_end_of_the_input_is_answered(run: Run, database: Path) -> None:
    params = {"name": "query", "arguments": {"sql": "SELECT count(*) FROM towns"}, "_meta": META}
    frame = {"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": params}
    ended = run(*CORE, "--source", f"towns=sqlite:///{database}", stdin=json.dumps(frame) + "\n")
    assert ended.status == 0
    (line,) = ended.out.splitlines()
    assert json.loads(line)["id"] == "last" and "[[3]]" in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_stdio_cleanly(state: Path, number: signal.Signals) -> None:
    with started(CORE, state) as server:
        assert "result" in server.ask("tools/list", {})
        assert server.tell(number) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_http_cleanly(state: Path, number: signal.Signals) -> None:
    with started((*CORE, "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        address(server)
        ended = server.tell(number)
    assert (ended.status, ended.out) == (0, "")


def test_a_signal_ends_a_running_statement(database: Path, state: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    words = (*CORE, "--source", f"towns=sqlite:///{database}")
    with started((*words, "--config", '{"stop_grace_s": 0.1}'), state) as server:
        params = {"name": "query", "arguments": {"sql": endless}, "_meta": META}
        server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        assert "Köln" in call(server, "query", sql="SELECT name FROM towns")[0]
        assert server.tell(signal.SIGTERM).status == 0


def test_http_asks_for_a_token(run: Run, towns: Path, state: Path) -> None:
    token = run("token", "create", "test", "--scope", "readOnly").out.strip()
    with started((*CORE, "--http", "127.0.0.1:0"), state) as server:
        where = address(server)
        assert post(where, "sources")[0] == 401
        assert post(where, "sources", "tg_" + "x" * 43)[0] == 401
        status, body = post(where, "query", token, sql="SELECT name FROM towns")
        assert status == 200 and "Köln" in body


def test_a_token_for_other_sources_does_not_see_this_one(
    run: Run, towns: Path, state: Path
) -> None:
    elsewhere = towns.with_name("elsewhere.db")
    elsewhere.touch()
    assert run("source", "add", "elsewhere", f"sqlite:///{elsewhere}").status == 0
    words = ("--scope", "readOnly", "--source", "elsewhere")
    token = run("token", "create", "test", *words).out.strip()
    with started((*CORE, "--http", "127.0.0.1:0"), state) as server:
        where = address(server)
        assert "towns" not in post(where, "sources", token)[1]
        _, body = post(where, "query", token, source="towns", sql="SELECT name FROM towns")
        assert "Köln" not in body and "isError" in body


def test_without_a_token_yet_it_says_how_to_make_one(state: Path) -> None:
    with started((*CORE, "--http", "127.0.0.1:0"), state) as server:
        assert "tidegate token create" in server.until("no token")


def test_without_authentication_it_serves_on_loopback_for_reading(
    database: Path, state: Path, contents: Contents
) -> None:
    before = contents()
    source = ("--source", f"towns=sqlite:///{database}")
    with started((*CORE, *source, "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        where = address(server)
        assert "Köln" in post(where, "query", sql="SELECT name FROM towns")[1]
        assert "isError" in post(where, "query", sql="DELETE FROM towns")[1]
    assert contents() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--http", "0.0.0.0:0"), "loopback"),
        (("--http", "example.com:0"), "loopback"),
        (("--http", "[::]:0"), "loopback"),
        (("--http", "127.0.0.1:0", "--allow-writes"), "does not allow writes"),
        (("--allow-writes",), "does not allow writes"),
    ],
)
def test_without_authentication_nothing_more_is_served(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ended = tidegate("serve", "--no-auth", *words, state=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize("host", ["192.0.2.7", "nowhere.invalid"])
def test_an_address_of_another_machine_is_refused_in_its_own_words(
    tmp_path: Path, host: str
) -> None:
    ended = tidegate("serve", "--http", f"{host}:0", state=tmp_path)
    assert (ended.status, "an address of this machine" in ended.err) == (78, True), ended.err


def test_settings_cannot_open_writes_without_authentication(tmp_path: Path) -> None:
    settings = '{"auth": false, "allow_writes": true, "http": "127.0.0.1:0"}'
    ended = tidegate("serve", "--config", settings, state=tmp_path)
    assert (ended.status, ended.out) == (2, "")


def test_a_source_of_this_run_is_read_only(database: Path, state: Path, contents: Contents) -> None:
    before = contents()
    with started((*CORE, "--source", f"towns=sqlite:///{database}"), state) as server:
        text, is_error = call(server, "query", sql="DELETE FROM towns WHERE id = 1")
    assert is_error and text.startswith("policy.")
    assert contents() == before


def test_writes_are_done_only_when_they_are_allowed(
    database: Path, state: Path, contents: Contents
) -> None:
    words = (*CORE, "--source", f"towns=sqlite:///{database}", "--allow-writes")
    with started(words, state) as server:
        text, is_error = call(server, "query", sql="UPDATE towns SET people = 7 WHERE id = 2")
        server.ended()
    changed = contents() != [(1, "Köln", 1084831), (2, "京都", None), (3, "Львів", 717273)]
    assert changed is not is_error, text


@pytest.mark.needs("pgedge")
def test_the_source_of_this_run_is_the_default_of_the_surface_postgres(
    towns: Path, state: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE here (n INTEGER)")
    connection.close()
    serve = ("serve", "--surface", "postgres")
    with started((*serve, "--source", f"other=sqlite:///{other}"), state) as server:
        text, is_error = call(server, "query_database", query="SELECT count(*) AS n FROM here")
        assert not is_error, text
        assert '{"n": 0}' in text
    two = ("--source", f"a=sqlite:///{other}", "--source", f"b=sqlite:///{other}")
    with started((*serve, *two), state) as server:
        text, is_error = call(server, "query_database", query="SELECT count(*) AS n FROM here")
    assert is_error
    assert "a, b" in text


def test_a_saved_source_stays_read_only_when_writes_are_allowed(
    towns: Path, state: Path, contents: Contents
) -> None:
    before = contents()
    with started((*CORE, "--allow-writes"), state) as server:
        _, is_error = call(server, "query", sql="DELETE FROM towns WHERE id = 1")
    assert is_error
    assert contents() == before


def test_a_source_of_this_run_is_not_saved(run: Run, database: Path, state: Path) -> None:
    with started((*CORE, "--source", f"towns=sqlite:///{database}"), state) as server:
        assert "towns" in call(server, "sources")[0]
    assert run("source", "list", "--json").json == {"sources": []}


def test_a_missing_file_is_named_at_once_and_not_made(tmp_path: Path, state: Path) -> None:
    """The server starts: the file may come, and other sources work meanwhile."""
    path = tmp_path / "nowhere.db"
    ended = tidegate(*CORE, "--source", f"lost=sqlite:///{path}", state=state)
    assert (ended.status, ended.out) == (0, "")
    assert str(path) in ended.err
    assert not path.exists()


def test_an_address_that_is_taken_is_said(state: Path) -> None:
    with started((*CORE, "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        host = address(server).removeprefix("http://")
        ended = tidegate("serve", "--http", host, "--no-auth", state=state)
    assert (ended.status, ended.out) == (78, "")
    assert host in ended.err


@pytest.mark.needs("workbench")
def test_two_surfaces_have_their_own_paths(state: Path) -> None:
    words = ("serve", "--surface", "core", "--surface", "workbench")
    with started((*words, "--http", "127.0.0.1:0", "--no-auth"), state) as server:
        where = HTTPConnection(address(server).removeprefix("http://"), timeout=PATIENCE_S)
        for path, status in (("/mcp/core", 400), ("/mcp/workbench", 400), ("/mcp/jdbc", 404)):
            where.request("POST", path, "{}", {"Content-Type": "application/json"})
            answer = where.getresponse()
            assert (path, answer.status, answer.read() != b"") == (path, status, True)
        where.close()


def test_why_a_server_does_not_start_is_an_error_in_its_log(run: Run) -> None:
    ended = run("serve", "--config", '{"log_format": "json", "http": "192.0.2.1:1"}')
    found = json.loads(ended.err.splitlines()[-1])
    assert (ended.status, found["level"]) == (78, "ERROR")
    assert found["message"].startswith("Cannot listen on 192.0.2.1:1")
