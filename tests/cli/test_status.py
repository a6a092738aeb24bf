"""The server of a state: what `status` shows, what `stop` ends, which one a bridge replaces, and
that a written entry works as a client on a desktop starts it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.command_line import Ended, environment, serving, tidegate
from support.desktop import as_a_desktop_starts_it
from support.eventually import HANG_S, wait_until
from tidegate import __version__

Run = Callable[..., Ended]
_PROGRAM = (sys.executable, "-m", "tidegate")
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.fixture(autouse=True)
def ended(state: Path) -> Iterator[None]:
    """Ends the server that a bridge of the test has started."""
    yield
    tidegate("stop", state=state)


def status(run: Run) -> Any:
    return run("status", "--json").json


def bridge(state: Path, **variables: str) -> Ended:
    """A bridge that is asked once."""
    return started(["-m", "tidegate", "bridge", "--state", str(state)], variables)


def started(words: Sequence[str], variables: dict[str, str]) -> Ended:
    done = subprocess.run(
        [sys.executable, *words], input=PING, capture_output=True, text=True, check=False,
        timeout=HANG_S, env={**environment(), **variables},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def test_status_shows_the_server_that_runs_and_stop_ends_it(
    run: Run, towns: Path, state: Path
) -> None:
    assert run("status").status == 69 and run("stop").status == 69
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        address = server.until("serving")
        found = status(run)
        assert found["pid"] == server.process.pid
        assert found["version"] == __version__ and found["started_by"] == "an operator"
        assert f"{found['address']}/mcp" in address
        assert "/mcp/core" in found["surfaces"] and found["failing"] == {}
        (source,) = found["sources"]
        assert (source["name"], source["status"]) == ("towns", "disconnected")
        shown = run("status")
        assert shown.status == 0 and "towns (sqlite): disconnected" in shown.out
        stopped = run("stop")
        assert stopped.status == 0 and str(server.process.pid) in stopped.out
        assert server.process.wait(HANG_S) == 0
    assert run("status").status == 69


def test_status_names_each_part_that_does_not_work(run: Run, towns: Path, state: Path) -> None:
    tokens = towns.parent / "tokens"
    tokens.write_text("")
    tokens.chmod(0o600)
    with serving(["serve", "--http", "127.0.0.1:0", "--token-file", str(tokens)], state) as server:
        server.until("serving")
        assert "fails" not in run("status").out
        tokens.chmod(0o666)
        wait_until(lambda: f"fails       token file {tokens}: " in run("status").out, "it is named")


def test_every_server_of_a_state_is_listed_and_ended_by_name(
    run: Run, towns: Path, state: Path
) -> None:
    serve = ["serve", "--http", "127.0.0.1:0"]
    with ExitStack() as servers:
        first = servers.enter_context(serving(serve, state))
        first.until("serving")  # bridges use the first
        second = servers.enter_context(serving([*serve, "--surface", "core"], state))
        stdio = servers.enter_context(serving(["serve"], state))
        address = second.until("serving").split()[-1].removesuffix("/mcp")
        wait_until(lambda: len(status(run)["others"]) == 2, "both are listed")
        found = status(run)
        assert found["pid"] == first.process.pid
        others = {each["pid"]: each for each in found["others"]}
        assert others[second.process.pid]["places"] == [address]
        assert others[second.process.pid]["surfaces"] == ["core"]
        assert others[stdio.process.pid]["places"] == ["stdio"]
        assert str(second.process.pid) in run("status").out
        assert str(second.process.pid) in run("doctor").out

        refused = run("stop")
        assert refused.status == 2 and str(first.process.pid) in refused.err
        assert first.process.poll() is second.process.poll() is None
        assert run("stop", "1").status == 2

        assert run("stop", str(second.process.pid)).status == 0
        assert second.process.wait(HANG_S) == 0
        assert run("stop").status == 0  # one listens: the one on stdio belongs to its client
        assert first.process.wait(HANG_S) == 0
        assert stdio.process.poll() is None
        refused = run("stop")
        assert refused.status == 2 and "--all" in refused.err
        assert run("stop", "--all").status == 0
        assert stdio.process.wait(HANG_S) == 0
    assert run("status").status == 69


@pytest.mark.needs("pgwire")
def test_a_server_that_was_killed_is_listed_no_more(run: Run, state: Path) -> None:
    with serving(["serve", "--pg", "127.0.0.1:0"], state) as server:
        server.until("serving")
        (other,) = status(run)["others"]
        assert other["pid"] == server.process.pid
        assert other["places"][-1].startswith("postgresql://127.0.0.1:")
        assert not any("key" in name or "token" in name for name in other)
        server.process.kill()
        server.process.wait(HANG_S)
        assert run("status").status == 69
    assert list((state / "servers").iterdir()) == []


def test_no_one_without_the_handshake_reads_the_status(run: Run, state: Path) -> None:
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        server.until("serving")
        host, _, port = status(run)["address"].removeprefix("http://").partition(":")
        for headers in ({}, {"tidegate-proof": "0" * 64}):
            connection = http.client.HTTPConnection(host, int(port))
            connection.request("GET", "/v1/bridge/status", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 403 and b"sources" not in answer.read()
            connection.close()


def test_a_bridge_replaces_a_server_that_has_other_values(
    run: Run, state: Path, tmp_path: Path
) -> None:
    text = "postgresql://me:${ENV:SHOP_PW}@127.0.0.1:1/shop"
    assert run("source", "add", "shop", text, "--anyway").status == 0
    assert bridge(state).status == 0
    first = status(run)
    assert first["variables"] == {"SHOP_PW": "is not set"}
    assert bridge(state).status == 0
    assert status(run)["pid"] == first["pid"]
    assert bridge(state, SHOP_PW="sesame").status == 0
    second = status(run)
    assert second["pid"] != first["pid"] and second["variables"] == {"SHOP_PW": "is set"}
    assert bridge(state, SHOP_PW="sesame").status == 0
    assert bridge(state).status == 0  # one that has none asks for none
    assert status(run)["pid"] == second["pid"]
    assert "sesame" not in (state / "bridge" / "handshake.json").read_text()


def test_a_bridge_replaces_a_server_of_another_version(run: Run, state: Path) -> None:
    assert bridge(state).status == 0
    first = status(run)["pid"]
    file = state / "bridge" / "handshake.json"
    written = json.loads(file.read_text())
    file.write_text(json.dumps({**written, "release": "0.0.1"}))
    assert bridge(state).status == 0
    assert status(run)["pid"] != first and status(run)["version"] == __version__


def test_a_server_that_an_operator_started_stays(run: Run, state: Path) -> None:
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        server.until("serving")
        file = state / "bridge" / "handshake.json"
        written = json.loads(file.read_text())
        file.write_text(json.dumps({**written, "release": "0.0.1"}))
        said = bridge(state)
        assert said.status == 0 and "tidegate stop" in said.err
        assert status(run)["pid"] == server.process.pid


@pytest.mark.parametrize("how", ["--bridge", "--stdio"])
@pytest.mark.parametrize("kept", ["variable", "file"])
def test_a_written_entry_works_as_a_desktop_starts_it(
    run: Run, state: Path, tmp_path: Path, how: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres_server.shared("wheel")
    name = server.new_database()
    server.ask("CREATE TABLE towns (id int); INSERT INTO towns VALUES (1), (2)", name)
    password = "${ENV:PGTEST_PASSWORD}"
    text = server.tcp_url(name)
    monkeypatch.setenv("PGTEST_PASSWORD", postgres_server.PASSWORD)
    words: tuple[str, ...] = ("--env", "PGTEST_PASSWORD")
    if kept == "file":
        words, text = (), text.replace(f":{password}@", "@")
        given = run(
            "source", "add", "towns", text, "--password-stdin", stdin=postgres_server.PASSWORD
        )
    else:
        given = run("source", "add", "towns", text)
    assert given.status == 0, given.err
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [*_PROGRAM, "install", "claude-desktop", how, *words, "--state", str(state)],
        env={**environment(), "HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    entry = json.loads(file.read_text())["mcpServers"]["tidegate"]
    assert (postgres_server.PASSWORD in file.read_text()) == (kept == "variable")
    answer = as_a_desktop_starts_it(entry, home)
    assert not answer.get("isError") and "2" in json.dumps(answer["content"])


def test_an_entry_that_lacks_a_variable_is_noted(run: Run, state: Path, tmp_path: Path) -> None:
    text = "postgresql://me:${ENV:SHOP_PW}@127.0.0.1:1/shop"
    run("source", "add", "shop", text, "--anyway")
    words = [*_PROGRAM, "install", "cursor", "--state", str(state)]
    variables = {**environment(), "HOME": str(tmp_path)}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "SHOP_PW" in done.stderr and "--env SHOP_PW" in done.stderr
    missing = subprocess.run(
        [*words, "--env", "SHOP_PW"], env=variables, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 2 and "`SHOP_PW` is not set" in missing.stderr
    shared = subprocess.run(
        [*words, "--env", "SHOP_PW", "--scope", "project", "--print"],
        env={**variables, "SHOP_PW": "sesame"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    entry = json.loads(shared.stdout)["mcpServers"]["tidegate"]
    assert entry["env"] == {"SHOP_PW": "${env:SHOP_PW}"}
