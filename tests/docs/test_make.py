"""`make demo` as a newcomer types it, in this very checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.command_line import environment
from support.documents import ROOT


def test_make_demo_once_ends_well_and_leaves_only_its_state(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    ended = subprocess.run(
        ["make", "--no-print-directory", "demo", "ARGS=--once --port 0", f"STATE={state}"],
        cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "refused" in ended.stdout
    assert (state / "shop.db").exists()


def test_the_two_commands_and_the_checks_are_there() -> None:
    for file in ("Makefile", "dev", ".ci/run"):
        assert (ROOT / file).exists()
    listed = subprocess.run(
        ["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in ("check", "test", "docs", "bench"):
        assert f"./dev {command}" in listed
