"""The audit record of a server that may be writing it at this moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def records(state: Path) -> list[dict[str, Any]]:
    """The records under a state directory, oldest first; a line without its end is none yet."""
    files = sorted((state / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().split(b"\n")[:-1]]
