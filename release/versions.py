"""One version in every file that names it, and one name of the server."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from release import Refusal

CHANNELS = Path("release", "channels")
_PINNED = re.compile(r"tidegate(?:\[[\w,-]*\])?==([\w.]+)")
_DRIVERS = re.compile(r"tidegate\[([\w,-]*)\]==")
_PINNING = ("server.json", "bundle/pyproject.toml", "plugin/.mcp.json")
"""The files that pin the package, by what a client starts."""
_PROGRAM = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_NEWEST = re.compile(r"^## (\S+)", re.MULTILINE)
_NAME = re.compile(r"mcp-name: (\S+)")


def read_version(tree: Path) -> str:
    """The version that the package declares."""
    declared: str = _toml(tree / "pyproject.toml")["project"]["version"]
    return declared


def check_versions(tree: Path) -> None:
    """Raises: Refusal if a file of the tree names another version than pyproject.toml, a channel
    other drivers than the others, or the README another server than server.json."""
    wanted = read_version(tree)
    for file, version in versions(tree):
        if version != wanted:
            raise Refusal(f"{file} has the version {version}, and pyproject.toml {wanted}.")
    drivers = {file: _first(_DRIVERS, tree / CHANNELS / file) for file in _PINNING}
    if len(set(drivers.values())) != 1:
        shown = ", ".join(f"{file} has {extras}" for file, extras in drivers.items())
        raise Refusal(f"The channels bring different drivers: {shown}.")
    described = json.loads(_text(tree / CHANNELS / "server.json"))["name"]
    named = _first(_NAME, tree / "README.md")
    if named != described:
        raise Refusal(f"README.md has `mcp-name: {named}`, and server.json {described}.")


def versions(tree: Path) -> Iterator[tuple[str, str]]:
    """Each file that names the version, with what it names."""
    yield "src/tidegate/__init__.py", _first(_PROGRAM, tree / "src" / "tidegate" / "__init__.py")
    yield "CHANGELOG.md", _first(_NEWEST, tree / "CHANGELOG.md")
    server = json.loads(_text(tree / CHANNELS / "server.json"))
    yield "server.json", server["version"]
    for package in server["packages"]:
        yield "server.json", package["version"]
    for file in ("bundle/manifest.json", "plugin/.claude-plugin/plugin.json"):
        yield file, json.loads(_text(tree / CHANNELS / file))["version"]
    yield (
        "bundle/pyproject.toml",
        _toml(tree / CHANNELS / "bundle/pyproject.toml")["project"]["version"],
    )
    for file in _PINNING:
        yield file, _first(_PINNED, tree / CHANNELS / file)


def _first(pattern: re.Pattern[str], path: Path) -> str:
    found = pattern.search(_text(path))
    return found[1] if found else "nothing"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise Refusal(f"{path.name} cannot be read: {error.strerror}.") from None


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(_text(path))
