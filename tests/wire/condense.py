"""Condenses the protocol's published JSON Schemas to facts of shape: no prose is kept.

Run it again with `python tests/wire/condense.py FOLDER-OF-PUBLISHED-SCHEMAS` when a revision is
published; it writes `schemas/REVISION.json`, one definition a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parent / "schemas"
PROSE = frozenset({"description", "title", "$comment", "examples", "example", "deprecated"})
NAMED = frozenset({"properties", "patternProperties", "definitions", "$defs"})


def condense(schema: Any) -> Any:
    """The schema without prose. Members of `properties` and `$defs` are names, not keywords."""
    if isinstance(schema, list):
        return [condense(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: {name: condense(part) for name, part in value.items()}
        if keyword in NAMED
        else condense(value)
        for keyword, value in schema.items()
        if keyword not in PROSE
    }


def render(schema: dict[str, Any]) -> str:
    """JSON text with one definition a line, so that differences can be read."""
    lines = []
    for keyword, value in schema.items():
        if keyword in NAMED:
            parts = ",\n".join(f"{json.dumps(n)}:{_compact(part)}" for n, part in value.items())
            lines.append(f"{json.dumps(keyword)}:{{\n{parts}\n}}")
        else:
            lines.append(f"{json.dumps(keyword)}:{_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def published(folder: Path) -> dict[str, str]:
    """Revision -> condensed text, for every `REVISION/schema.json` in the folder."""
    return {
        file.parent.name: render(condense(json.loads(file.read_text())))
        for file in sorted(folder.glob("*/schema.json"))
    }


def main() -> None:
    for revision, text in published(Path(sys.argv[1])).items():
        (SCHEMAS / f"{revision}.json").write_text(text)
        print(f"{revision}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
