"""`tidegate setup` on a terminal and without one: a first answer after one command, each mistake on
the way answered by what to do, and nothing half done left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.command_line import Ended, environment, tidegate
from support.desktop import as_a_desktop_starts_it
from support.eventually import HANG_S
from support.free_ports import claim_port
from support.terminal import Terminal, terminal

Run = Callable[..., Ended]
SECRET = postgres_server.PASSWORD


@pytest.fixture(scope="module")
def server() -> postgres_server.Server:
    return postgres_server.shared("wheel")


@pytest.fixture
def name(server: postgres_server.Server) -> str:
    database = server.new_database()
    server.ask("CREATE TABLE towns (id int); INSERT INTO towns VALUES (1), (2)", database)
    return database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    (path / ".cursor").mkdir(parents=True)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def url(server: postgres_server.Server, name: str, password: str = "") -> str:
    return f"postgresql://postgres{password}@127.0.0.1:{server.port}/{name}"


def entry_of(home: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    return entry["tidegate"]


def nothing_is_left(state: Path, home: Path) -> bool:
    sources = tidegate("source", "list", "--json", state=state).json["sources"]
    entries = [path for path in home.rglob("*") if path.is_file()]
    return sources == [] and entries == [] and not any((state / "passwords").glob("*"))


def answer(screen: Terminal, question: str, text: str) -> None:
    screen.until(question)
    screen.type(text)


def test_one_command_leads_to_a_first_answer(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path
) -> None:
    with terminal(("setup",), state, folder, {"HOME": str(home)}) as screen:
        answer(screen, "Database", url(server, name))
        answer(screen, "Password of postgres", SECRET)
        screen.until("connected: PostgreSQL")
        answer(screen, "Name of the source", "")
        answer(screen, "Client", "cursor")
        screen.until("without the gate this account could do more")
        screen.until(f"`tidegate source harden {name} --apply`")
        answer(screen, "Make it now? (y/n) [n]", "")
        assert screen.end() == 0, screen.said
        assert f"Which tables are in {name}?" in screen.said
        assert SECRET not in screen.said
    result = as_a_desktop_starts_it(entry_of(home), home)
    assert not result.get("isError") and "2" in json.dumps(result["content"])
    assert SECRET not in (home / ".cursor" / "mcp.json").read_text()
    tidegate("stop", state=state)


def test_each_mistake_is_answered_and_asked_about_again(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path
) -> None:
    with terminal(("setup",), state, folder, {"HOME": str(home)}) as screen:
        answer(screen, "Database", "shop")
        screen.until(f"There is no file or folder at {folder / 'shop'}")
        answer(screen, "Database", "postgrse://me@db/shop")
        screen.until("Did you mean `postgres")
        answer(screen, "Database", f"postgresql://me@127.0.0.1:{(dead := claim_port())}/shop")
        screen.until(f"127.0.0.1:{dead}: PostgreSQL cannot be reached: Connection refused")
        answer(screen, "Database", url(server, "no_such_database"))
        answer(screen, "Password of", SECRET)
        screen.until("does not exist")
        screen.until("Check the database's")
        answer(screen, "Database", f"psql '{url(server, name)}'")
        answer(screen, "Password of", "wrong")
        screen.until("password authentication failed")
        assert nothing_is_left(state, home)
        answer(screen, "Password of", SECRET)
        answer(screen, "Name of the source", "no name")
        screen.until("cannot name a source")
        answer(screen, "Name of the source", "shop")
        answer(screen, "Client", "emacs")
        screen.until("There is no client 'emacs'")
        answer(screen, "Client", "cursor")
        answer(screen, "Make it now?", "y")
        answer(screen, "Administrator's account", "postgres")
        answer(screen, "Password of postgres", SECRET)
        answer(screen, "Type harden to agree: ", "harden")
        screen.until("the source shop uses it from now on")
        assert screen.end() == 0, screen.said
    assert tidegate("query", "shop", "SELECT count(*) FROM towns", state=state).status == 0
    assert "bridge" in entry_of(home)["args"]


@pytest.mark.parametrize("password", ["p@hidden/w", "p@hidden?w", "p@hidden/w=1"])
def test_no_part_of_a_password_that_ends_early_is_looked_up_as_a_host(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path, password: str
) -> None:
    with terminal(("setup",), state, folder, {"HOME": str(home)}) as screen:
        answer(screen, "Database", url(server, name, f":{password}"))
        screen.until("Leave the password out of the URL")
        assert "known for hidden" not in screen.said and "hidden:5432" not in screen.said
        screen.interrupt()
        assert screen.end() == 130
    assert nothing_is_left(state, home)


def test_after_the_last_wrong_password_no_option_is_named_that_setup_lacks(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path
) -> None:
    with terminal(("setup",), state, folder, {"HOME": str(home)}) as screen:
        answer(screen, "Database", url(server, name))
        for _ in range(3):
            answer(screen, "Password of", "wrong")
        screen.until("Which database")
        assert "--ask-password" not in screen.said
        screen.interrupt()
        assert screen.end() == 130
    plain = ("setup", "--url", url(server, name), "--client", "none")
    ended = tidegate(*plain, state=state)
    assert ended.status != 0 and "Give the password with --password-stdin." in ended.err
    assert nothing_is_left(state, home)


@pytest.mark.parametrize("after", ["Database", "Password of", "Name of the source", "Client"])
def test_who_stops_on_the_way_has_changed_nothing(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path, after: str
) -> None:
    answers = {"Database": url(server, name), "Password of": SECRET, "Name of the source": "shop"}
    with terminal(("setup",), state, folder, {"HOME": str(home)}) as screen:
        for question, text in answers.items():
            if question == after:
                break
            answer(screen, question, text)
        screen.until(after)
        screen.interrupt()
        assert screen.end() == 130
    assert nothing_is_left(state, home)


def test_a_password_in_the_url_is_taken_out_of_it_and_kept(
    server: postgres_server.Server, name: str, state: Path, home: Path, folder: Path
) -> None:
    variables = {"HOME": str(home), "DATABASE_URL": url(server, name, f":{SECRET}")}
    with terminal(("setup",), state, folder, variables) as screen:
        screen.until("(from DATABASE_URL)")
        answer(screen, "Database", "")
        answer(screen, "Name of the source", "shop")
        answer(screen, "Client", "none")
        answer(screen, "Make it now?", "y")
        answer(screen, "Administrator's account", "postgres")
        answer(screen, "Password of postgres", "wrong")
        answer(screen, "Type harden to agree: ", "harden")
        screen.until("the source")
        assert screen.end() == 0, screen.said
        assert "is saved with the account that it has" in screen.said
        assert SECRET not in screen.said
    (source,) = tidegate("source", "list", "--json", state=state).json["sources"]
    assert "${FILE:" in source["url"] and SECRET not in source["url"]
    assert tidegate("query", "shop", "SELECT 1", state=state).status == 0


def test_a_file_that_is_near_is_offered(database: Path, state: Path, home: Path) -> None:
    with terminal(("setup",), state, database.parent, {"HOME": str(home)}) as screen:
        screen.until("small.db")
        answer(screen, "Database", "")
        answer(screen, "Name of the source", "")
        answer(screen, "Client", "none")
        assert screen.end() == 0, screen.said
    assert tidegate("query", "small", "SELECT count(*) FROM towns", state=state).status == 0


def without_a_terminal(state: Path, home: Path, *words: str, stdin: str = "") -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "setup", *words], input=stdin, text=True, check=False,
        capture_output=True, timeout=HANG_S, env={**environment(state), "HOME": str(home)},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def test_it_works_without_a_terminal(
    server: postgres_server.Server, name: str, state: Path, home: Path
) -> None:
    assert without_a_terminal(state, home).status == 2
    words = ("--url", url(server, name), "--client", "cursor", "--name", "shop")
    refused = without_a_terminal(state, home, *words)
    assert refused.status == 69 and "--password-stdin" in refused.err
    literal = url(server, name, ":hunter2")
    refused = without_a_terminal(state, home, "--url", literal, "--client", "none")
    assert refused.status == 66 and "--password-stdin" in refused.err
    assert "hunter2" not in refused.err
    refused = without_a_terminal(state, home, *words, "--password-stdin", stdin="wrong\n")
    assert refused.status == 69 and "Nothing was saved" in refused.err
    assert nothing_is_left(state, home)
    done = without_a_terminal(state, home, *words, "--password-stdin", stdin=f"{SECRET}\n")
    assert done.status == 0, done.err
    assert entry_of(home)["args"][-2:] == ["--state", str(state)]
    assert tidegate("query", "shop", "SELECT 1", state=state).status == 0
    other = ("--url", url(server, "postgres"), *words[2:], "--password-stdin")
    again = without_a_terminal(state, home, *other, stdin=f"{SECRET}\n")
    assert again.status == 2 and "already a source" in again.err


def test_a_second_client_gets_an_entry_and_the_database_no_second_name(
    server: postgres_server.Server, name: str, state: Path, home: Path
) -> None:
    words = ("--url", url(server, name), "--password-stdin")
    first = without_a_terminal(state, home, *words, "--client", "cursor", stdin=f"{SECRET}\n")
    assert first.status == 0, first.err
    sources = tidegate("source", "list", "--json", state=state).json
    (only,) = sources["sources"]
    for more in ((), ("--name", only["name"])):
        # The kept password serves, so none is needed.
        second = without_a_terminal(
            state, home, "--url", url(server, name), "--client", "vscode", *more
        )
        assert second.status == 0, second.err
        assert only["name"] in second.err and only["name"] in second.out
    assert tidegate("source", "list", "--json", state=state).json == sources
    written = [path for path in home.rglob("mcp.json") if "tidegate" in path.read_text()]
    assert len(written) == 2


def test_an_entry_that_cannot_be_written_leaves_no_source(
    server: postgres_server.Server, name: str, state: Path, home: Path
) -> None:
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": [1]}')
    words = ("--url", url(server, name), "--client", "cursor", "--password-stdin")
    refused = without_a_terminal(state, home, *words, stdin=f"{SECRET}\n")
    assert refused.status == 65
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"tidegate": {"command": "x"}}}')
    refused = without_a_terminal(state, home, *words, stdin=f"{SECRET}\n")
    assert refused.status == 2 and "--force" in refused.err
    assert tidegate("source", "list", "--json", state=state).json["sources"] == []
    assert not any((state / "passwords").glob("*"))
    assert without_a_terminal(state, home, *words, "--force", stdin=f"{SECRET}\n").status == 0
