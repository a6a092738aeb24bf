"""`make demo` as a newcomer types it, in this very checkout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.command_line import environment
from support.documents import ROOT, Outcome, commands, is_as_shown, report


@pytest.mark.needs("workbench")
def test_make_demo_once_shows_what_the_readme_shows_and_ends_well(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    ended = subprocess.run(
        ["make", "--no-print-directory", "demo", "ARGS=--once --port 0", f"STATE={state}"],
        cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    typed = next(command for command in commands(ROOT / "README.md") if command.text == "make demo")
    outcome = Outcome(typed, ended.returncode, ended.stdout)
    assert typed.shown is not None and is_as_shown(outcome), report(outcome)
    assert (state / "shop.db").exists()


def test_the_two_commands_and_the_checks_are_there() -> None:
    for file in ("Makefile", "dev", ".ci/run"):
        assert (ROOT / file).exists()
    listed = subprocess.run(
        ["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in ("check", "test", "docs", "bench", "busy", "mutate"):
        assert f"./dev {command}" in listed


def test_every_list_of_packages_that_a_command_installs_is_there() -> None:
    named = set(re.findall(r"requirements/[\w-]+\.txt", (ROOT / "dev").read_text()))
    assert {"requirements/run.txt", "requirements/mutate.txt"} <= named
    assert [each for each in sorted(named) if not (ROOT / each).is_file()] == []
