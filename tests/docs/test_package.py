"""Installed as a package, everything is the one command `tidegate`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from support.command_line import environment
from support.documents import ROOT
from tidegate import __version__

REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?[^;]*(?:;(.*))?")


def needed(name: str, extras: frozenset[str], seen: set[str]) -> set[str]:
    """The names of all packages that a package needs here, with those that they need."""
    seen.add(name)
    for requirement in requires(name) or ():
        found = REQUIREMENT.match(requirement)
        assert found is not None
        child, wanted, marker = found[1].lower().replace("_", "-"), found[2] or "", found[3] or ""
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if child in seen or (extra is not None and extra[1] not in extras):
            continue
        try:
            needed(child, frozenset(wanted.split(",")), seen)
        except PackageNotFoundError:
            seen.discard(child)  # its marker is for another platform
    return seen


def test_all_that_the_package_needs_is_pinned() -> None:
    text = (ROOT / "requirements" / "run.txt").read_text("utf-8")
    pinned = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", text, re.M)}
    wanted = needed("tidegate", frozenset(), set()) | needed("rich", frozenset(), set())
    assert wanted - {"tidegate"} == pinned


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    newest = re.search(
        r"^## (\S+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert newest is not None
    assert newest[1] == declared == __version__


def test_what_a_newcomer_reads_first_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size < 6_000
    assert (ROOT / "CHANGELOG.md").stat().st_size < 12_000


def test_no_list_of_requirements_holds_an_address() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in path.read_text("utf-8"), path.name


def test_an_installed_package_is_one_command(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
        )  # fmt: skip

    binaries = tmp_path / "venv" / "bin"
    made = run(sys.executable, "-m", "venv", "--without-pip", str(binaries.parent))
    assert made.returncode == 0, made.stderr
    pins = str(ROOT / "requirements" / "run.txt")
    pip = (sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "-qq")
    installed = run(*pip, "--no-compile", "-c", pins, str(ROOT))
    assert installed.returncode == 0, installed.stderr

    tidegate = str(binaries / "tidegate")
    assert run(tidegate, "version").stdout.startswith("tidegate ")
    demo = run(tidegate, "demo", "--once", "--port", "0", "--state", str(tmp_path / "demo"))
    assert demo.returncode == 0, demo.stderr
    assert "refused" in demo.stdout
    query = ("query", "shop", "SELECT count(*) FROM orders", "--json", "--state")
    asked = run(tidegate, *query, str(tmp_path / "demo"))
    assert "26000" in asked.stdout, asked.stderr
