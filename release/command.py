"""The commands that build from the last commit into a folder: `./dev release`, `image`, `unit`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from release import Refusal
from release.building import run

ROOT = Path(__file__).parents[1]


def run_command(
    name: str, about: str | None, default: str, make: Callable[[Path], Iterable[str]]
) -> int:
    """Let `make` write into the folder that is named, `default` of this tree if none is, and show
    the lines that it gives; returns an exit status."""
    parser = argparse.ArgumentParser(prog=f"./dev {name}", description=about)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / default)
    folder = parser.parse_args().folder
    if run(["git", "status", "--porcelain"], ROOT, 0o022):
        print(f"{name}: what is not committed is left out", file=sys.stderr)
    try:
        lines = make(folder)
    except Refusal as refusal:
        print(f"{name}: {refusal}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0
