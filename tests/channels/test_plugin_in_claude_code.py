"""The plugin as Claude Code itself judges it. It is large, so that `./dev clients` runs this, and
`./dev test` lints the plugin.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from external import install

pytestmark = pytest.mark.skipif(
    "TIDEGATE_TEST_CLIENTS" not in os.environ, reason="`./dev clients` installs it"
)


def validate(plugin: Path, home: Path) -> subprocess.CompletedProcess[str]:
    found = install.clients_of_node().glob("@anthropic-ai/claude-code-*/claude")
    program = min(found, key=lambda path: len(str(path)))
    return subprocess.run(
        [str(program), "plugin", "validate", "--strict", str(plugin)],
        env=install.node_environment() | {"HOME": str(home)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_it_is_valid_without_a_warning(plugin: Path, tmp_path: Path) -> None:
    done = validate(plugin, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout


def test_a_field_that_is_not_known_is_seen(plugin: Path, tmp_path: Path) -> None:
    manifest = plugin / ".claude-plugin" / "plugin.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"nonsense": 1}))
    assert validate(plugin, tmp_path).returncode != 0
