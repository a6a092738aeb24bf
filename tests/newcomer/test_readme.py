"""Every command of README.md works, typed as it stands there.

`make demo` is running while the others are typed, as it would be in another window; its address
and token are in TIDEGATE_URL and TIDEGATE_TOKEN, which the README's own commands use.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Serving, environment, serving
from documents import ROOT, Command, commands, is_as_shown, play, report

README = ROOT / "README.md"
ELSEWHERE = {
    "git clone": "the repository is here already",
    "cd tidegate": "and this is its directory",
    "make demo\n": "it is running beside the commands",
    "make test": "it runs this test",
    "pip install": "tests/newcomer/test_package.py does that",
    "claude ": "a client that is not ours to install",
}


def is_elsewhere(command: Command) -> bool:
    """Whether something else stands for the command here."""
    if command.text.startswith("curl") and shutil.which("curl") is None:
        return True
    return any(f"{command.text}\n".startswith(known) for known in ELSEWHERE)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[Serving, dict[str, str]]]:
    """The demo as `make demo` runs it, and the environment of somebody who has read its lines."""
    with serving(["demo", "--port", "0", "--state", str(tmp_path / "demo")], tmp_path) as server:
        shown = ""
        while "Still serving" not in shown:
            line = server.line()
            assert line, server.ended().err
            shown += line
        address = re.search(r"^Address +(\S+)$", shown, re.MULTILINE)
        token = re.search(r"^Token +(\S+)$", shown, re.MULTILINE)
        assert address and token
        binaries = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        yield (
            server,
            {
                **environment(),
                "PATH": binaries,
                "STATE": str(tmp_path / "made"),
                "TIDEGATE_STATE": str(tmp_path / "demo"),
                "TIDEGATE_URL": address[1],
                "TIDEGATE_TOKEN": token[1],
            },
        )


def test_every_command_of_the_readme_works(demo: tuple[Serving, dict[str, str]]) -> None:
    _, env = demo
    for outcome in play(README, ROOT, env, is_elsewhere):
        assert outcome.status == 0, report(outcome)
        assert is_as_shown(outcome), report(outcome)


def test_what_is_left_out_is_in_the_readme() -> None:
    typed = [f"{command.text}\n" for command in commands(README)]
    unused = [known for known in ELSEWHERE if typed and not any(t.startswith(known) for t in typed)]
    assert unused == []
