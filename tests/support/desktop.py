"""A client that was started from a desktop: it runs a written entry with almost no environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.eventually import HANG_S


def as_a_desktop_starts_it(entry: dict[str, Any], home: Path) -> Any:
    """The answer of a query by the written entry, with nothing in the environment but what such a
    client gives, in the root directory."""
    kept = {"HOME": str(home), "PATH": "/usr/bin:/bin", **entry.get("env", {})}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "query", "_meta": meta,
            "arguments": {"sql": "SELECT count(*) AS n FROM towns"},
        },
    }  # fmt: skip
    done = subprocess.run(
        [entry["command"], *entry["args"]], input=json.dumps(call) + "\n", env=kept, cwd="/",
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["result"]
