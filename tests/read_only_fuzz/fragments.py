"""The words that statements are made of, by dialect: one a line in `words/`, under the headings of
`Pieces`. Those of `words/common.txt` belong to every dialect; `\\n` stands for the end of a line.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

WORDS = Path(__file__).parent / "words"


class Pieces(NamedTuple):
    """`{}` stands for a statement in `wraps` and `explains`, for an expression in `frames`;
    `{folder}` for a folder where files can be written."""

    literals: list[str]
    columns: list[str]
    tables: list[str]
    operators: list[str]
    frames: list[str]
    wraps: list[str]
    explains: list[str]
    tails: list[str]
    writes: list[str]
    reads: list[str]


def pieces(dialect: str) -> Pieces:
    """The pieces of one dialect."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in ("common", dialect):
        heading = ""
        for line in (WORDS / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
            if line.startswith("[") and line.endswith("]") and line[1:-1] in Pieces._fields:
                heading = line[1:-1]
            elif line:
                found[heading].append(line.replace("\\n", "\n"))
    return Pieces(**found)
