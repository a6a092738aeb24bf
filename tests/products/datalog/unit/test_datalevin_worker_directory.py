"""What a killed process left of a worker's files is removed by the next that starts one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tidegate.products.datalog.engine.worker_directory import (
    PREFIX,
    make_directory,
    remove_directory,
)

LEAVES = """
import os, signal
from tidegate.products.datalog.engine.worker_directory import make_directory
print(make_directory(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_directories_of_killed_processes_are_removed_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True)
    left = Path(killed.stdout.strip())
    (left / "file").write_text("x")
    (tmp_path / f"{PREFIX}other").mkdir()  # not ours to judge: it has no lock
    first = make_directory()
    assert not left.exists()
    second = make_directory()
    assert first.is_dir()
    remove_directory(first)
    remove_directory(second)
    assert [each.name for each in tmp_path.iterdir()] == [f"{PREFIX}other"]
