"""Every tutorial, typed from top to bottom, prints what it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.command_line import environment
from support.documents import ROOT, is_as_shown, play, report

TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(tutorial: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outcomes = play(tutorial, tmp_path, {**environment(), "PATH": path})
    assert outcomes
    for outcome in outcomes:
        assert is_as_shown(outcome), report(outcome)


def test_there_is_a_tutorial() -> None:
    assert TUTORIALS
