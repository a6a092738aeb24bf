"""Every command of README.md, and of the guide to calls by hand, works as it stands there.

The demo is running while the others are typed, as it would be in another window: its address and
token are in TIDEGATE_URL and TIDEGATE_TOKEN, its state lies in the directory as `.demo`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import environment, serving
from support.documents import ROOT, Command, commands, is_as_shown, play, report

README = ROOT / "README.md"
BY_HAND = ROOT / "docs" / "howto" / "call-by-hand.md"
ELSEWHERE = {
    "make demo": "it is running beside the commands; tests/docs/test_make.py compares it",
    ". .venv/bin/activate": "the environment of the tests is active already",
    "pip install .": "tests/docs/test_package.py does that",
    "tidegate setup": "it asks on a terminal; tests/cli/test_setup.py answers it there",
}


def is_elsewhere(command: Command) -> bool:
    """Whether something else stands for the command here."""
    needs_curl = command.text.startswith(("curl", "call "))
    if needs_curl and shutil.which("curl") is None:
        return True
    return command.text.partition("#")[0].strip() in ELSEWHERE


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a reader who has read what a running demo shows."""
    state = tmp_path / "demo"
    with serving(["demo", "--port", "0", "--state", str(state)], state) as server:
        shown = ""
        while "Press Ctrl-C" not in shown:
            line = server.line()
            assert line, server.ended().err
            shown += line
        (tmp_path / ".demo").symlink_to(state)
        exported = re.search(r"^export TIDEGATE_URL=(\S+) TIDEGATE_TOKEN=(\S+)$", shown, re.M)
        assert exported is not None
        yield {
            **environment(tmp_path / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TIDEGATE_URL": exported[1],
            "TIDEGATE_TOKEN": exported[2],
        }


def test_every_command_of_the_readme_works(reader: dict[str, str], tmp_path: Path) -> None:
    for outcome in play(README, tmp_path, reader, is_elsewhere):
        assert outcome.status == 0, report(outcome)
        assert is_as_shown(outcome), report(outcome)


def test_every_call_by_hand_is_answered_and_the_delete_refused(
    reader: dict[str, str], tmp_path: Path
) -> None:
    for outcome in play(BY_HAND, tmp_path, reader, is_elsewhere):
        assert outcome.status == 0, report(outcome)
        if outcome.command.text.startswith("call "):
            refused = "DELETE" in outcome.command.text
            assert ('"isError":true' in outcome.printed) is refused, report(outcome)


def test_what_is_left_out_is_in_the_readme() -> None:
    typed = {command.text.partition("#")[0].strip() for command in commands(README)}
    assert set(ELSEWHERE) <= typed
