"""`tidegate demo`: from nothing to a served sample, with a conversation that proves itself."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import Ended, Serving, environment, serving, tidegate
from support.datalog import CACHE_HOME, prepare
from support.eventually import wait_until

Run = Callable[..., Ended]
ONCE = ("demo", "--once", "--port", "0")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A demo that ran once where the environment names the state of several gates, which is no
    place for a sample, and what it said."""
    state = tmp_path_factory.mktemp("demo") / "state"
    variables = {**environment(), "TIDEGATE_STATE_URL": "postgresql://gate@127.0.0.1:9/none"}
    return state, tidegate(*ONCE, "--state", str(state), variables=variables)


def shown(server: Serving) -> str:
    """All that a demo shows until it stays up."""
    lines: list[str] = []
    while not lines or "Press Ctrl-C" not in lines[-1]:
        lines.append(server.line())
        assert lines[-1], server.ended().err
    return "".join(lines)


def test_once_makes_converses_and_ends(made: tuple[Path, Ended]) -> None:
    state, ended = made
    assert ended.status == 0, ended.err
    assert "Creating the sample shop: done" in ended.err
    for request in ("tools/list", "sources", "search", "describe", "query SELECT", "query DELETE"):
        assert f"→ {request}" in ended.out
    assert "policy." in ended.out
    assert "not a row is missing" in ended.out
    assert "\x1b" not in ended.out + ended.err
    assert (state / "shop.db").exists()


def test_the_sample_is_a_source_afterwards(made: tuple[Path, Ended]) -> None:
    state, _ = made
    (source,) = tidegate("source", "list", "--json", state=state).json["sources"]
    assert (source["name"], source["access"]) == ("shop", "read")
    counted = tidegate("query", "shop", "SELECT count(*) FROM reviews", "--json", state=state)
    assert counted.json["rows"] == [[9500]]


def test_the_shop_is_a_datalog_source_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()
    state = tmp_path / "state"
    made = tidegate(*ONCE, "--state", str(state), "--datalog")
    assert made.status == 0, made.err
    assert "query [:find" in made.out and "not a row is missing" in made.out
    under = (
        "[:find [?n ...] :in $ % :where (under ?c) [?c :categories/name ?n]]",
        '[[(under ?c) [?t :categories/name "Home"] [?t :categories/id ?n]'
        " [?c :categories/parent_id ?n]]"
        " [(under ?c) (under ?b) [?b :categories/id ?n] [?c :categories/parent_id ?n]]]",
    )
    found = tidegate("query", "shop-facts", *under, "--json", state=state)
    assert found.status == 0, found.err
    assert {"Furniture", "Kitchen", "Lighting"} <= {name for (name,) in found.json["rows"]}
    for words, sources in (((), ["shop"]), (("--datalog",), ["shop", "shop-facts"])):
        again = tidegate(*ONCE, "--state", str(state), *words)
        assert again.status == 0, again.err
        assert "Importing" not in again.err
        tokens = tidegate("token", "list", "--json", state=state).json["tokens"]
        (token,) = [
            each for each in tokens if each["name"] == "demo" and each["state"] != "revoked"
        ]
        assert sorted(token["sources"]) == sources


def test_a_second_run_reuses_the_sample_and_the_token(made: tuple[Path, Ended]) -> None:
    state, _ = made
    before = (state / "shop.db").stat().st_mtime_ns
    again = tidegate(*ONCE, "--state", str(state))
    assert again.status == 0, again.err
    assert "Creating the sample" not in again.err
    assert (state / "shop.db").stat().st_mtime_ns == before
    token, clerk = tidegate("token", "list", "--json", state=state).json["tokens"]
    assert (clerk["scope"], clerk["sources"]) == ("readWrite", ["desk"])
    assert (token["name"], token["scope"], token["sources"]) == ("demo", "readOnly", ["shop"])


def test_the_token_is_readable_by_its_owner_alone(made: tuple[Path, Ended]) -> None:
    assert (made[0] / "demo.token").stat().st_mode & 0o077 == 0


def test_it_stays_up_with_entries_for_every_client(made: tuple[Path, Ended]) -> None:
    state, _ = made
    with serving(["demo", "--port", "0", "--state", str(state)], state) as server:
        text = shown(server)
        url = re.search(r"^Address +(\S+) ", text, re.MULTILINE)
        token = re.search(r"^Token +(tg_\S+)$", text, re.MULTILINE)
        assert url and token
        for client in ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "curl"):
            assert f"\n{client} (" in text
        desktop, cursor, code = (
            json.loads(entry)
            for entry in re.findall(r"^\{$.*?^\}$", text, re.MULTILINE | re.DOTALL)
        )
        remote = {"url": f"{url[1]}/mcp/core", "headers": {"Authorization": f"Bearer {token[1]}"}}
        assert cursor == {"mcpServers": {"shop": remote}}
        assert code == {"servers": {"shop": {"type": "http", **remote}}}
        command = desktop["mcpServers"]["shop"]
        assert Path(command["command"]).is_absolute()
        with serving(command["args"], state) as local:
            answer = local.ask("tools/call", {"name": "sources", "arguments": {}})
        assert "shop" in json.dumps(answer)
        assert f"claude mcp add --transport http shop {url[1]}/mcp/core" in text
        curl = text[text.index("curl -s") : text.index("\nServing on", text.index("curl -s"))]
        asked = subprocess.run(
            ["bash", "-c", curl], env=environment(), capture_output=True, text=True, check=False
        )
        # 127: this machine has no curl
        assert asked.returncode == 127 or "26000" in asked.stdout, asked.stderr
        assert server.tell(signal.SIGTERM).status == 0


def test_a_demo_waits_for_another_that_makes_the_token_and_uses_the_same(
    made: tuple[Path, Ended],
) -> None:
    state, _ = made
    kept = (state / "demo.token").read_text()
    (state / "demo.token").unlink()
    other = os.open(state, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with serving(["demo", "--port", "0", "--state", str(state)], state) as server:
        waits = f" {server.process.pid} "
        wait_until(
            lambda: any(
                "->" in line and waits in line
                for line in Path("/proc/locks").read_text().split("\n")
            ),
            "the demo at the lock",
        )
        (state / "demo.token").write_text(kept)
        os.close(other)
        assert kept.strip() in shown(server)


def test_ctrl_c_ends_it_cleanly(made: tuple[Path, Ended]) -> None:
    state, _ = made
    with serving(["demo", "--port", "0", "--state", str(state)], state) as server:
        shown(server)
        ended = server.tell(signal.SIGINT)
    assert (ended.status, ended.err) == (0, "")


def test_another_port_is_taken_when_the_wanted_one_is_busy(made: tuple[Path, Ended]) -> None:
    state, _ = made
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        ended = tidegate("demo", "--once", "--port", str(port), "--state", str(state))
    assert ended.status == 0, ended.err
    assert f":{port}/" not in ended.out


def test_a_changed_sample_is_noticed(made: tuple[Path, Ended], tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    spoiled = state / "shop.db"
    spoiled.write_bytes((made[0] / "shop.db").read_bytes())
    with closing(sqlite3.connect(spoiled)) as connection:
        connection.execute("DROP TABLE reviews")
    ended = tidegate(*ONCE, "--state", str(state))
    assert ended.status == 70
    assert ended.err.startswith("tidegate: ")


def test_without_a_state_directory_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ended = tidegate(*ONCE)
    assert ended.status == 0, ended.err
    assert list(tmp_path.iterdir()) == []
