"""Fails if the project's prose has a phrase of `phrases.txt`, and says what to write instead.

Reads the documents that people write, and the comments and strings of `src`.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from links import FENCE, ROOT, documents

LIST = Path(__file__).with_name("phrases.txt")
UNREAD = ("docs/reference/", "tests/")
"""Documents that are made from `src`, and those of tests."""
PROSE = {
    tokenize.COMMENT,
    tokenize.STRING,
    getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),
}


class Phrase(NamedTuple):
    pattern: re.Pattern[str]
    instead: str


def phrases() -> list[Phrase]:
    """Those of the list. Raises: re.error, ValueError for a line that is not `phrase -> advice`."""
    found: list[Phrase] = []
    for line in LIST.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            written, instead = line.split(" -> ")
            # A lookbehind has a fixed width, so what it looks back over keeps its space.
            parts = re.split(r"(\(\?<![^)]*\))", written)
            loose = [part if part[:3] == "(?<" else part.replace(" ", r"\s+") for part in parts]
            found.append(Phrase(re.compile("".join(loose), re.IGNORECASE), instead))
    return found


def prose_of(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The pieces of prose in a file, each with the number of its first line."""
    if path.suffix == ".md":
        # A fenced block keeps its line ends, so that the numbers after it stay right.
        yield 1, FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in PROSE:
            yield token.start[0], token.string


def faults_of(path: Path, known: list[Phrase]) -> Iterator[str]:
    text = path.read_text("utf-8")
    # Few files have any of them, and to read tokens takes most of the time.
    wanted = [phrase for phrase in known if phrase.pattern.search(text)]
    for first, prose in prose_of(path, text) if wanted else ():
        for phrase in wanted:
            for match in phrase.pattern.finditer(prose):
                line = first + prose.count("\n", 0, match.start())
                said = " ".join(match[0].split())
                yield f"{path.relative_to(ROOT)}:{line}: {said!r}: write {phrase.instead}"


def main() -> int:
    known = phrases()
    pages = [path for path in documents() if not str(path.relative_to(ROOT)).startswith(UNREAD)]
    files = [*pages, *sorted((ROOT / "src").rglob("*.py"))]
    faults = [fault for path in files for fault in faults_of(path, known)]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
