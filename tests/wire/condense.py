"""Condenses the protocol's published JSON Schemas to facts of shape: no prose is kept.

Run it again with `python tests/wire/condense.py FOLDER` when a revision is published, where FOLDER
holds `schema/REVISION/schema.json` and `examples/REVISION/DEFINITION/*.json` as the protocol's
repository does. It writes `schemas/REVISION.json`, one definition a line, the examples beside it,
and the digests by which a test sees that no file was edited by hand.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parent / "schemas"
PROSE = frozenset({"description", "title", "$comment", "examples", "example", "deprecated"})
WORDS = frozenset({"description", "title", "text", "message", "instructions", "value"})
"""Members of examples that hold texts for people."""
DIGESTS = SCHEMAS / "digests.json"
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


def examples(folder: Path) -> str:
    """The published examples of a revision by the definition that they are of, one a line, without
    prose: it is their shape that counts."""
    parts = [
        f"{json.dumps(kind.name)}:[\n"
        + ",\n".join(
            _compact(without_prose(json.loads(file.read_text())))
            for file in sorted(kind.glob("*.json"))
        )
        + "\n]"
        for kind in sorted(folder.iterdir())
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def without_prose(value: Any, name: str = "") -> Any:
    """The example with a short word in place of each text that is for people."""
    if isinstance(value, dict):
        return {key: without_prose(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [without_prose(each, name) for each in value]
    return "words" if name in WORDS and isinstance(value, str) else value


def main() -> None:
    root = Path(sys.argv[1])
    for revision, text in published(root / "schema").items():
        (SCHEMAS / f"{revision}.json").write_text(text)
        if (root / "examples" / revision).is_dir():
            (SCHEMAS / "examples" / f"{revision}.json").write_text(
                examples(root / "examples" / revision)
            )
    digests = {
        str(path.relative_to(SCHEMAS)): digest(path) for path in sorted(SCHEMAS.rglob("20*.json"))
    }
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
