"""Passwords of sources in the operating system's keyring (D2), here that of GNOME."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

import support.postgres_server as postgres_server
from cli.conftest import Run
from cli.test_source_add import SECRET, everything_in, saved, url
from support.command_line import environment, serving
from support.secret_service import SecretService, missing, secret_service
from support.terminal import terminal

COUNT = ("query", "shop", "SELECT count(*) AS n FROM towns", "--json")
BUS = "DBUS_SESSION_BUS_ADDRESS"

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")


def process_list(pid: int) -> bytes:
    """The commands of a process and of all that it started, as anyone on the machine sees them.
    Those of tests beside this one may name their own server's password, which is the same."""
    found = b""
    with suppress(OSError):
        found = Path(f"/proc/{pid}/cmdline").read_bytes()
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                found += process_list(int(child))
    return found


@pytest.fixture(scope="module")
def server() -> postgres_server.Server:
    return postgres_server.shared("wheel")


@pytest.fixture
def name(server: postgres_server.Server) -> str:
    database = server.new_database()
    server.ask("CREATE TABLE towns (id int); INSERT INTO towns VALUES (1), (2)", database)
    return database


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[SecretService]:
    directory = tmp_path / "desktop"
    directory.mkdir()
    with secret_service(directory) as service:
        monkeypatch.setenv(BUS, service.address)
        yield service


@pytest.fixture
def shop(run: Run, server: postgres_server.Server, name: str, keyring: SecretService) -> str:
    """A source whose password is in the keyring; the URL that it was given."""
    text = url(server, name)
    words = ("source", "add", "shop", text, "--password-stdin", "--keep-in", "keyring")
    added = run(*words, stdin=f"{SECRET}\n")
    assert added.status == 0, added.err
    return text


def test_a_password_in_the_keyring_opens_the_source_and_is_nowhere_else(
    run: Run, state: Path, shop: str, keyring: SecretService
) -> None:
    ((entry, secret),) = keyring.entries().items()
    assert secret == SECRET
    assert saved(run) == [shop.replace("@", f":${{KEYRING:{entry}}}@")]
    assert run(*COUNT).json["rows"] == [[2]]
    assert SECRET.encode() not in everything_in(state)
    (mark,) = (state / "passwords").iterdir()
    assert mark.read_bytes() == b""
    with serving(("serve",), state) as server:
        params = {"name": "query", "arguments": {"sql": "SELECT count(*) AS n FROM towns"}}
        assert "2" in str(server.ask("tools/call", params)["result"])


def test_an_entry_follows_its_source_and_ends_with_it(
    run: Run, state: Path, shop: str, keyring: SecretService
) -> None:
    assert run("source", "rename", "shop", "store").status == 0
    ((entry, secret),) = keyring.entries().items()
    assert entry.startswith("store.") and secret == SECRET
    assert run("query", "store", *COUNT[2:]).json["rows"] == [[2]]
    again = run("source", "update", "store", "--password-stdin", stdin=f"{SECRET}\n")
    assert again.status == 0, again.err
    assert list(keyring.entries()) != [entry] and list(keyring.entries().values()) == [SECRET]
    assert run("source", "remove", "store").status == 0
    assert keyring.entries() == {} and list((state / "passwords").iterdir()) == []


def test_a_password_moves_between_the_file_and_the_keyring(
    run: Run, state: Path, shop: str, keyring: SecretService
) -> None:
    assert run("source", "update", "shop", "--keep-in", "file").status == 0
    (kept,) = (state / "passwords").iterdir()
    assert kept.read_text() == SECRET and keyring.entries() == {}
    assert run(*COUNT).json["rows"] == [[2]]
    words = [sys.executable, "-m", "tidegate", "source", "update", "shop", "--keep-in", "keyring"]
    process = subprocess.Popen(words, env=environment(state), stderr=subprocess.DEVNULL)
    lists = [process_list(process.pid)]
    while process.poll() is None:
        lists.append(process_list(process.pid))
    assert process.returncode == 0
    assert any(b"--keep-in" in each for each in lists)
    assert not any(SECRET.encode() in each for each in lists)
    assert not kept.exists() and list(keyring.entries().values()) == [SECRET]
    assert run(*COUNT).json["rows"] == [[2]]


def test_a_keyring_that_is_locked_is_named_and_changes_nothing(
    run: Run, state: Path, shop: str, keyring: SecretService, server: postgres_server.Server
) -> None:
    before = saved(run)
    keyring.lock()
    refused = run(*COUNT)
    assert refused.status == 69 and refused.out == ""
    assert "The keyring is locked" in refused.err and "--keep-in file" in refused.err
    words = ("source", "add", "other", shop, "--password-stdin", "--keep-in", "keyring")
    refused = run(*words, stdin=f"{SECRET}\n")
    assert refused.status == 69 and "The keyring is locked" in refused.err
    assert saved(run) == before
    assert len(list((state / "passwords").iterdir())) == 1
    removed = run("source", "remove", "shop")
    assert removed.status == 0 and "stays in the keyring" in removed.err


def test_a_machine_without_a_keyring_names_what_to_do_instead(
    run: Run, state: Path, server: postgres_server.Server, name: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv(BUS, f"unix:path={tmp_path}/none")
    words = ("source", "add", "shop", url(server, name), "--password-stdin", "--keep-in", "keyring")
    refused = run(*words, stdin=f"{SECRET}\n")
    assert refused.status == 69
    assert "No keyring works here" in refused.err and "use --keep-in file" in refused.err
    assert "source update" not in refused.err  # there is no source yet
    assert saved(run) == [] and not any((state / "passwords").glob("*"))
    assert run(*words[:-1], "file", stdin=f"{SECRET}\n").status == 0
    missing = run("source", "update", "shop", "--url", url(server, name, ":${KEYRING:x}"))
    assert missing.status == 69 and "No keyring works here" in missing.err


def test_an_entry_that_is_not_there_is_named(
    run: Run, server: postgres_server.Server, name: str, keyring: SecretService
) -> None:
    refused = run("source", "add", "shop", url(server, name, ":${KEYRING:no such}"))
    assert refused.status == 69 and "no entry `no such`" in refused.err
    assert saved(run) == []


def test_an_installation_without_the_library_says_how_to_add_it(
    state: Path, server: postgres_server.Server, name: str, tmp_path: Path
) -> None:
    (tmp_path / "keyring.py").write_text("raise ImportError(name='keyring')")
    words = ("source", "add", "shop", url(server, name), "--password-stdin", "--keep-in", "keyring")
    ended = subprocess.run(
        [sys.executable, "-m", "tidegate", *words],
        input="x\n", capture_output=True, text=True, check=False,
        env={**environment(state), "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 69 and "keyring" in ended.stderr
    assert f"{sys.prefix}/bin/python -m pip install" in ended.stderr


def test_setup_asks_where_the_password_is_kept(
    run: Run, state: Path, server: postgres_server.Server, name: str, keyring: SecretService
) -> None:
    words = ("setup", "--url", url(server, name), "--name", "shop", "--client", "none")
    with terminal(words, state) as screen:
        screen.until("Password of")
        screen.type(SECRET)
        screen.until("Keep it in (keyring, file) [keyring]: ")
        screen.type("")
        screen.until("Make it now?")
        screen.type("")
        assert screen.end() == 0, screen.said
    assert list(keyring.entries().values()) == [SECRET]
    assert run(*COUNT).json["rows"] == [[2]]
