"""The statements with the verdict that a caller with read scope must get, one JSON object a line:
`deny` and `allow` are what they say, `limit` is a read that the database has to stop by time or
size, so it may be either."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "security" / "judge" / "cases"


class Case(NamedTuple):
    id: str
    dialect: str
    expected: str
    sql: str


def load(*names: str) -> list[Case]:
    """The cases of the named files, of all of them if none is named."""
    paths = [FOLDER / f"{name}.jsonl" for name in names] or sorted(FOLDER.glob("*.jsonl"))
    return [
        Case(**json.loads(line))
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def kinds(*names: str) -> dict[str, list[Case]]:
    """The cases of the named files, of all of them if none is named, by what their names say before
    the number: where they come from and their dialect."""
    found: defaultdict[str, list[Case]] = defaultdict(list)
    for case in load(*names):
        found[case.id.rstrip("0123456789").rstrip("-")].append(case)
    return dict(found)
