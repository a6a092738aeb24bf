"""A Python without POSIX modules, such as that of Windows: what is said before anything fails.

No such system can run here; the modules that it lacks are blocked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment

BLOCKED = """
import runpy, sys
for name in ("fcntl", "grp", "pwd", "pty", "resource", "termios", "tty"):
    sys.modules[name] = None
sys.argv = ["tidegate", *sys.argv[1:]]
runpy.run_module("tidegate", run_name="__main__")
"""


def tidegate(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True, check=False,
        env=environment(state),
    )  # fmt: skip


@pytest.mark.parametrize("words", [(), ("bridge",), ("tables", "version")], ids=str)
def test_a_command_says_where_tidegate_runs_and_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = tidegate(tmp_path / "state", *words)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == (
        "tidegate: Tidegate runs on Linux and macOS. Use WSL, or connect to a gate by its address "
        "and sign in.\n"
    )
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "words",
    [("--help",), ("--version",), ("version",), ("help", "serve")], ids=str,
)  # fmt: skip
def test_help_and_version_are_shown(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = tidegate(tmp_path / "state", *words)
    assert done.returncode == 0, done.stderr
    assert "tidegate" in done.stdout and done.stderr == ""
