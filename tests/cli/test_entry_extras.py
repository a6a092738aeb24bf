"""An entry that runs Tidegate from a cache names the extras of the sources, or a person is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended, environment, tidegate

pytestmark = pytest.mark.needs("duckdb")

Run = Callable[..., Ended]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".cursor").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def run(state: Path, home: Path) -> Run:
    kept = {name: text for name, text in environment(state).items() if not name.startswith("XDG_")}

    def run(*words: str) -> Ended:
        return tidegate(*words, variables=kept | {"HOME": str(home)}, cwd=home, stdin="")

    return run


@pytest.fixture
def files(tmp_path: Path) -> str:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "people.csv").write_text("name\nAda\n")
    return f"files://{tmp_path / 'files'}"


def write(home: Path, state: Path, requirement: str, *more: str, name: str = "tidegate") -> None:
    words = ["--from", requirement, "tidegate", "bridge", *more, "--state", str(state)]
    entry = {"type": "stdio", "command": "/nowhere/uvx", "args": words}
    settings = json.dumps({"mcpServers": {name: entry}})
    (home / ".cursor" / "mcp.json").write_text(settings)


def test_a_source_that_needs_more_than_an_entry_names_is_said_with_the_command(
    run: Run, home: Path, state: Path, files: str
) -> None:
    write(
        home, state, "tidegate[postgres]", "--surface", "core", "--scope", "readOnly", name="gate"
    )
    added = run("source", "add", "people", files)
    assert added.status == 0, added.err
    assert "the entry `gate` of" in added.err and "without the extra `duckdb`" in added.err
    assert (
        "tidegate install cursor --surface core --bridge-scope readOnly"
        f" --state {state} --name gate --force" in added.err
    )


def test_that_command_writes_an_entry_of_which_nothing_more_is_said(
    run: Run, home: Path, state: Path, files: str
) -> None:
    write(home, state, "tidegate")
    added = run("source", "add", "people", files)
    command = added.err.partition("To write it again: tidegate ")[2].split()
    assert run(*command).status == 0
    assert run("source", "update", "people", "--tag", "x").err.count("without the extra") == 0
    assert "without the extra" not in run("doctor", "--timeout", "20").out


def test_an_entry_that_names_it_or_uses_another_state_is_left_alone(
    run: Run, home: Path, state: Path, files: str, tmp_path: Path
) -> None:
    write(home, state, "tidegate[duckdb]")
    assert "without the extra" not in run("source", "add", "people", files).err
    write(home, tmp_path / "other", "tidegate")
    assert "without the extra" not in run("setup", "--url", files, "--client", "none").err


@pytest.mark.needs("metrics")
def test_what_settings_need_is_missed_in_entries_that_name_settings(
    run: Run, home: Path, state: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[metrics]\nlisten = "127.0.0.1:9464"\n')
    settings.chmod(0o600)
    write(home, state, "tidegate", "--config", str(settings))
    of_cursor = (home / ".cursor" / "mcp.json").read_text()
    write(home, state, "tidegate", name="bare")
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(of_cursor)
    found = run("doctor", "--timeout", "20", "--config", str(settings)).out
    assert found.count("without the extra") == 1 and "without the extra `metrics`" in found
    assert f"tidegate install gemini --config {settings} --state {state} --force" in found


def test_setup_says_it_of_the_entries_of_other_clients(
    run: Run, home: Path, state: Path, files: str
) -> None:
    write(home, state, "tidegate")
    done = run("setup", "--url", files, "--client", "claude-code")
    assert done.status == 0 and "without the extra `duckdb`" in done.err
    assert str(home / ".cursor" / "mcp.json") in done.err


def test_doctor_finds_it_and_names_the_command(
    run: Run, home: Path, state: Path, files: str
) -> None:
    assert run("source", "add", "people", files).status == 0
    write(home, state, "tidegate")
    found = run("doctor", "--timeout", "20")
    assert found.status == 1
    assert "without the extra `duckdb`" in found.out
    assert f"tidegate install cursor --state {state} --force" in found.out
