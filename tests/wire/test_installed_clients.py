"""Entries that `tidegate install` writes, read back and started by the clients themselves.

They are large (1.5 GB), so that `./dev clients` runs this, and `./dev test` compares the entries
with what these clients read (`tests/cli/test_install.py`). None of them is signed in at a vendor:
each only lists its servers.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pytest

from external import install
from support.command_line import environment, serving, tidegate
from support.eventually import HANG_S
from tidegate.cli.client_entries import MCP_REMOTE

pytestmark = pytest.mark.skipif(
    "TIDEGATE_TEST_CLIENTS" not in os.environ, reason="`./dev clients` installs them"
)

TOKEN = "SHOP_TOKEN"  # the variable's name


class Person(NamedTuple):
    """Somebody with an empty home directory and a project, and a state with one source."""

    home: Path
    project: Path
    state: Path

    def run(self, command: list[str], **variables: str) -> str:
        kept = {**environment(self.state), "HOME": str(self.home), "TERM": "dumb", **variables}
        kept = {name: value for name, value in kept.items() if not name.endswith("_CONFIG_DIR")}
        path = f"{install.node().parent}{os.pathsep}{kept['PATH']}"
        done = subprocess.run(
            command, cwd=self.project, env={**kept, "PATH": path}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def install(self, *words: str, **variables: str) -> None:
        kept = {**environment(self.state), "HOME": str(self.home), **variables}
        ended = tidegate("install", *words, cwd=self.project, variables=kept)
        assert ended.status == 0, ended.err


class Entry(NamedTuple):
    """What a client says of an entry: what it starts or where it connects, and whether it did, None
    if it does not say."""

    target: str
    connected: bool | None


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def towns(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "towns.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript("CREATE TABLE towns (id INTEGER); INSERT INTO towns VALUES (1), (2)")
    added = tidegate("source", "add", "towns", f"sqlite:///{path}", state=state)
    assert added.status == 0, added.err


@pytest.fixture
def person(tmp_path: Path, state: Path, towns: None) -> Person:
    made = Person(tmp_path / "home", tmp_path / "project", state)
    made.home.mkdir()
    made.project.mkdir()
    subprocess.run(["git", "init", "--quiet", str(made.project)], check=True)
    # Each asks once whether a folder is trusted before it reads the settings in it.
    (made.home / ".codex").mkdir()
    (made.home / ".codex/config.toml").write_text(
        f'# mine\n[projects."{made.project}"]\ntrust_level = "trusted"\n'
    )
    (made.home / ".copilot").mkdir()
    (made.home / ".copilot/config.json").write_text(
        json.dumps({"trusted_folders": [str(made.project)]})
    )
    return made


def program(name: str) -> list[str]:
    """The command of a client; two of them are linked by scripts that are not run here."""
    modules = install.clients_of_node()
    linked = {
        "claude": "@anthropic-ai/claude-code-*/claude",
        "opencode": "opencode-*/bin/opencode",
    }
    if name not in linked:
        return [str(modules / ".bin" / name)]
    found = sorted(modules.glob(linked[name]), key=lambda path: len(str(path)))
    return [str(found[0])]


def from_codex(person: Person, name: str) -> Entry:
    said = person.run([*program("codex"), "mcp", "list", "--json"])
    listed: list[dict[str, Any]] = json.loads(said[said.index("[\n") : said.rindex("]") + 1])
    (found,) = [each["transport"] for each in listed if each["name"] == name]
    if found["type"] == "stdio":
        return Entry(" ".join([found["command"], *found["args"]]), None)
    return Entry(f"{found['url']} {found['bearer_token_env_var'] or ''}".strip(), None)


def from_copilot(person: Person, name: str) -> Entry:
    found = json.loads(person.run([*program("copilot"), "mcp", "list", "--json"]))
    entry = found["mcpServers"][name]
    assert entry["tools"] == ["*"] and entry["enabled"]
    if entry["type"] == "local":
        return Entry(" ".join([entry["command"], *entry["args"]]), None)
    token = entry.get("headers", {}).get("Authorization", "")
    return Entry(f"{entry['url']} {token}".strip(), None)


def from_gemini(person: Person, name: str) -> Entry:
    said = person.run(
        [*program("gemini"), "mcp", "list"],
        GEMINI_CLI_TRUST_WORKSPACE="true", **{TOKEN: os.environ.get(TOKEN, "")},
    )  # fmt: skip
    found = re.search(rf"{name}: (.+?) \((?:stdio|http)\) - (\w+)", said)
    assert found, said
    return Entry(found[1], found[2] == "Connected")


def from_claude(person: Person, name: str) -> Entry:
    said = person.run([*program("claude"), "mcp", "list"], **{TOKEN: os.environ.get(TOKEN, "")})
    found = re.search(rf"^{name}: (.+?)(?: \(HTTP\))? - (.+)$", said, re.MULTILINE)
    assert found, said
    return Entry(found[1], None if "pending" in found[2].lower() else "Connected" in found[2])


def from_opencode(person: Person, name: str) -> Entry:
    said = person.run([*program("opencode"), "mcp", "list"], **{TOKEN: os.environ.get(TOKEN, "")})
    found = re.search(rf"{name} +(connected|failed|needs \w+)[^\n]*\n(.*?)(?:●|└)", said, re.DOTALL)
    assert found, said
    lines = [line.strip("│ ") for line in found[2].splitlines()]
    return Entry([line for line in lines if line][-1], found[1] == "connected")


READ: dict[str, Callable[[Person, str], Entry]] = {
    "claude-code": from_claude,
    "codex": from_codex,
    "copilot": from_copilot,
    "gemini": from_gemini,
    "opencode": from_opencode,
}


@pytest.fixture
def address(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a running server, whose token is in the variable."""
    made = tidegate("token", "create", "clients", "--scope", "readOnly", state=state)
    monkeypatch.setenv(TOKEN, made.out.strip())
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        yield next(word for word in server.until("serving").split() if "http" in word).rstrip(",")


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", READ)
def test_a_client_finds_the_entry_and_starts_it(person: Person, client: str, scope: str) -> None:
    person.install(client, "--stdio", "--scope", scope)
    entry = READ[client](person, "tidegate")
    words = ["serve", "--state", str(person.state)]
    assert entry.target.endswith(" ".join(words)), entry
    assert entry.connected in (True, None), entry


@pytest.mark.parametrize("client", READ)
def test_a_client_reaches_a_server_with_the_token_of_the_variable(
    person: Person, client: str, address: str
) -> None:
    person.install(client, "--http", address, "--token-env", TOKEN)
    entry = READ[client](person, "tidegate")
    assert entry.target.split()[0] == address
    assert entry.connected in (True, None), entry
    if client in ("codex", "copilot"):
        assert TOKEN in entry.target


@pytest.mark.parametrize("client", READ)
def test_a_client_finds_the_address_alone(person: Person, client: str) -> None:
    person.install(client, "--http", "https://127.0.0.1:1/mcp")
    assert READ[client](person, "tidegate").target == "https://127.0.0.1:1/mcp"


NPX = """\
#!/bin/sh
test "$1 $2" = "-y {package}" || exit 9
shift 2
exec {node} {program} "$@"
"""
"""What npx does once the package is downloaded: the one of Node's wheel does not run."""


def greet(entry: dict[str, Any], home: Path) -> dict[str, Any]:
    """The answer to the first message, from a program that ends with its input."""
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "desktop", "version": "1"},
        },
    }  # fmt: skip
    process = subprocess.Popen(
        [entry["command"], *entry["args"]], cwd="/", env={"HOME": str(home), **entry["env"]},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    late = Timer(HANG_S, process.kill)
    late.start()
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())
    finally:
        late.cancel()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("client", ["claude-desktop", "junie"])
def test_mcp_remote_is_started_by_an_entry_as_a_desktop_does(
    person: Person, tmp_path: Path, client: str
) -> None:
    npx = tmp_path / "node" / "npx"
    npx.parent.mkdir()
    remote = install.clients_of_node() / "mcp-remote" / "dist" / "proxy.js"
    npx.write_text(NPX.format(package=MCP_REMOTE, node=install.node(), program=remote))
    npx.chmod(0o755)
    words = ["serve", "--http", "127.0.0.1:0", "--no-auth"]
    with serving(words, person.state) as server:
        url = next(word for word in server.until("serving").split() if "http" in word).rstrip(",")
        person.install(client, "--http", url, PATH=f"{npx.parent}:/usr/bin:/bin")
        (file,) = [path for path in person.home.rglob("*.json") if ".copilot" not in path.parts]
        entry = json.loads(file.read_text())["mcpServers"]["tidegate"]
        assert entry["command"] == str(npx)
        assert greet(entry, person.home)["result"]["serverInfo"]["name"] == "tidegate-core"
