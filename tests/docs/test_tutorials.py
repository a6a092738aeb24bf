"""Every tutorial, typed from top to bottom, prints what it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import support.postgres_server as postgres_server
from support.command_line import environment
from support.datalog import CACHE_HOME, prepare
from support.documents import ROOT, is_as_shown, play, report
from support.free_ports import claim_port

FOLDER = ROOT / "docs" / "tutorial"
ON_POSTGRES = FOLDER / "questions-and-search.md"
ON_DATALOG = FOLDER / "datalog.md"
ON_APIS = FOLDER / "cloud-apis.md"
TUTORIALS = sorted(set(FOLDER.glob("*.md")) - {ON_POSTGRES, ON_DATALOG, ON_APIS})


def check(tutorial: Path, folder: Path, **variables: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outcomes = play(tutorial, folder, {**environment(), "PATH": path, **variables})
    assert outcomes
    for outcome in outcomes:
        assert is_as_shown(outcome), report(outcome)


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(tutorial: Path, tmp_path: Path) -> None:
    check(tutorial, tmp_path)


def test_the_tutorial_on_an_empty_postgresql_prints_what_it_shows(tmp_path: Path) -> None:
    text = ON_POSTGRES.read_text("utf-8")
    server = postgres_server.Server(postgres_server.available()["wheel"])
    try:
        for named, here in (
            ("host=/var/run/postgresql&port=5432", f"host={server.directory}&port={server.port}"),
            ("127.0.0.1:8080", f"127.0.0.1:{claim_port()}"),
        ):
            assert named in text
            text = text.replace(named, here)
        copy = tmp_path / "tutorial.md"
        copy.write_text(text, "utf-8")
        check(copy, tmp_path)
    finally:
        server.close()


def test_the_tutorial_on_datalog_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()
    check(ON_DATALOG, tmp_path, XDG_CACHE_HOME=str(CACHE_HOME))


def test_the_tutorial_on_two_apis_prints_what_it_shows(tmp_path: Path) -> None:
    copy = tmp_path / "tutorial.md"
    text = ON_APIS.read_text("utf-8")
    assert "8901" in text
    copy.write_text(text.replace("8901", str(claim_port())), "utf-8")
    check(copy, tmp_path)


def test_there_is_a_tutorial() -> None:
    assert TUTORIALS
