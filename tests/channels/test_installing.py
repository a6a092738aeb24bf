"""Installed from an index into an empty home by each installer: a database, then an answer.

The wheel is that of a release, on an index on loopback; its dependencies come from the default one.
Nothing is typed but the first line and what the errors say to run next.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from external.install import python_of
from support.bridge_host import end_server
from support.package_index import serve_index
from support.stdio_question import ask_program

pytestmark = pytest.mark.needs("every product")

PATIENCE_S = 300
WAYS = {
    "pip": ("tidegate",),
    "pipx": ("tidegate",),
    "pipx run": ("pipx", "run", "tidegate"),
    "uv tool": ("tidegate",),
    "uvx": ("uvx", "tidegate"),
}
"""How a person starts the program that was installed in each way."""
INSTALLATIONS = {
    "pip": (
        (sys.executable, "-m", "venv", "venv"),
        ("venv/bin/python", "-m", "pip", "install", "-q", "tidegate"),
    ),
    "pipx": (("pipx", "install", "tidegate"),),
    "pipx run": (),
    "uv tool": (("uv", "tool", "install", "tidegate"),),
    "uvx": (),
}


@pytest.fixture(scope="module")
def index(released: Path) -> Iterator[str]:
    with serve_index(next(released.glob("*.whl"))) as url:
        yield url


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one installer has downloaded and unpacked, for the next account."""
    return tmp_path_factory.mktemp("downloads")


class Account:
    """A home that was empty, and an environment with the installers on its PATH."""

    def __init__(self, home: Path, index: str, way: str, downloads: Path) -> None:
        self.home = home
        self._base = {
            name: text for name, text in os.environ.items()
            if not name.startswith(("TIDEGATE_", "XDG_", "PYTHON", "VIRTUAL_ENV", "PIPX_"))
        }  # fmt: skip
        tools = home / "tools"
        tools.mkdir()
        for program in ("uv", "uvx") if way.startswith("uv") else ("pipx",):
            (tools / program).symlink_to(python_of("channels").with_name(program))
        own = [str(home / "venv" / "bin"), str(home / ".local" / "bin"), str(tools)]
        self._base |= {
            "HOME": str(home),
            "PATH": os.pathsep.join([*own, "/usr/local/bin", "/usr/bin", "/bin"]),
            "PIP_EXTRA_INDEX_URL": index,
            "UV_INDEX": index,
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
            "PIPX_DEFAULT_PYTHON": sys.executable,
            "PIP_CACHE_DIR": str(downloads / "pip"),
            "UV_CACHE_DIR": str(downloads / "uv"),
            "PIP_NO_COMPILE": "1",  # the few modules that run are compiled then
        }

    def run(
        self, *words: str, state: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.home, env=self.variables(state), input=stdin, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    def variables(self, state: Path | None = None) -> Mapping[str, str]:
        return self._base | ({} if state is None else {"TIDEGATE_STATE": str(state)})

    @property
    def entries(self) -> Path:
        return self.home / ".cursor" / "mcp.json"

    @property
    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = json.loads(self.entries.read_text())["mcpServers"]["tidegate"]
        return entry

    def set_up(self, way: str, url: str, state: Path, *more: str, stdin: str = "") -> list[str]:
        """Run `setup`, and then what an error says to run next; returns what was run by a shell."""
        options = ["--password-stdin", *more] if stdin else more
        line = [*WAYS[way], "setup", "--url", url, *options, "--client", "cursor"]
        done = self.run(*line, state=state, stdin=stdin)
        said: list[str] = []
        while done.returncode != 0 and len(said) < 3:
            assert " Run: " in done.stderr, done.stderr
            said.append(done.stderr.strip().rpartition(" Run: ")[2])
            done = self.run("sh", "-c", said[-1], state=state, stdin=stdin)
        assert done.returncode == 0, done.stdout + done.stderr
        return said

    def ask(self, sql: str, **arguments: str) -> str:
        """The answer over the entry that was written, started as the client starts it."""
        entry = self.entry
        # A client has the person's PATH or none; the index stands for the default one.
        variables = {**self.variables(), "PATH": "/usr/bin:/bin", **entry.get("env", {})}
        return ask_program([entry["command"], *entry["args"]], variables, sql, **arguments)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def account(tmp_path: Path, index: str, way: str, downloads: Path) -> Generator[Account]:
    home = tmp_path / "home"
    home.mkdir()
    account = Account(home, index, way, downloads)
    for words in INSTALLATIONS[way]:
        done = account.run(*words)
        assert done.returncode == 0, done.stderr
    yield account
    for state in tmp_path.glob("state-*"):
        end_server(state)
    shutil.rmtree(home)  # some 200 MB


def test_each_kind_of_database_ends_in_an_answered_question(
    account: Account, way: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE items (id INTEGER)")
        shop.execute("INSERT INTO items VALUES (1), (2)")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "people.csv").write_text("name\nAda\nBob\nEve\n")
    server = postgres_server.shared("wheel")
    database = server.new_database()
    server.ask("CREATE TABLE towns (id int); INSERT INTO towns VALUES (1)", database)
    url = f"postgresql://postgres@127.0.0.1:{server.port}/{database}"

    lite, folder, server_state = (tmp_path / f"state-{name}" for name in ("lite", "csv", "pg"))
    assert account.set_up(way, str(tmp_path / "shop.db"), lite) == []
    assert "[2]" in account.ask("SELECT count(*) AS n FROM items")

    account.entries.unlink()
    said = account.set_up(way, str(tmp_path / "files"), folder)
    assert len(said) == 1 and "duckdb" in said[0]
    assert "[3]" in account.ask("SELECT count(*) AS n FROM people")

    account.entries.unlink()
    said = account.set_up(way, url, server_state, stdin=f"{postgres_server.PASSWORD}\n")
    assert len(said) == 1 and "postgres" in said[0] and url in said[0]
    assert postgres_server.PASSWORD not in said[0]
    assert "[1]" in account.ask("SELECT count(*) AS n FROM towns")


@pytest.mark.parametrize("way", ["pipx run", "uvx"], indirect=True)
def test_a_new_kind_of_source_has_the_entry_written_again_with_its_extra(
    account: Account, way: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE items (id INTEGER)")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "people.csv").write_text("name\nAda\n")
    (tmp_path / "phrase").write_text("a long passphrase\n")
    (tmp_path / "phrase").chmod(0o600)
    state, phrase = tmp_path / "state-one", str(tmp_path / "phrase")
    set_one = [*WAYS[way], "passphrase", "set", "--new-passphrase-file", phrase]
    assert account.run(*set_one, state=state).returncode == 0
    agreed = ("--passphrase-file", phrase)
    assert account.set_up(way, str(tmp_path / "shop.db"), state, *agreed) == []
    told = account.run(*WAYS[way], "stop", state=tmp_path / "state-none").stderr
    program = " ".join(WAYS[way])  # there is no other program to type
    assert f"`{program} serve --http 127.0.0.1:8765`" in told
    assert "[" not in " ".join(account.entry["args"])

    folder = f"files://{tmp_path / 'files'}"
    words = ["source", "add", "people", folder, *agreed]
    refused = account.run(*WAYS[way], *words, state=state)
    assert refused.returncode != 0
    command = refused.stderr.strip().rpartition(" Run: ")[2]
    added = account.run("sh", "-c", command, state=state)
    assert added.returncode == 0, added.stderr
    assert "the entry `tidegate` of" in added.stderr

    again = added.stderr.strip().rpartition("To write it again: ")[2]
    written = account.run("sh", "-c", again, state=state)
    assert written.returncode == 0, written.stderr
    assert "tidegate[duckdb]" in account.entry["args"]
    assert "[1]" in account.ask("SELECT count(*) AS n FROM people", source="people")
    checked = account.run("sh", "-c", again.partition(" install ")[0] + " doctor", state=state)
    assert "without the extra" not in checked.stdout
