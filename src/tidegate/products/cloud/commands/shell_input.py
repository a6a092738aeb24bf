"""The parts of `tidegate cloud shell`: where a statement ends, what a name could be, what is kept
of what was typed.

Names come from SHOW and DESCRIBE through the gate, like everything else that is typed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tidegate.products.cloud.language.cloud_sql import LANGUAGE
from tidegate.system.private_files import open_file

Names = Callable[[str], list[str]]
"""The first column of a statement's rows; empty if it fails."""

MAX_HISTORY: Final = 1_000
_WORDS: Final = (
    "SELECT", "FROM", "WHERE", "AND", "ORDER BY", "GROUP BY", "LIMIT", "JOIN", "SHOW", "PROVIDERS",
    "SERVICES IN", "RESOURCES IN", "METHODS IN", "DESCRIBE", "EXPLAIN",
)  # fmt: skip
_RESOURCE: Final = re.compile(r"\b(?:FROM|JOIN|IN|DESCRIBE)\s+([\w-]+\.[\w-]+\.[\w-]+)", re.I)


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements in `text` that end in a semicolon, and what is left after the last one.
    Semicolons between quotes and in comments end nothing."""
    found: list[str] = []
    start = at = 0
    while at < len(text):
        char, two = text[at], text[at : at + 2]
        if char in "'\"`":
            end = text.find(char, at + 1)
        elif two == "--":
            end = text.find("\n", at)
        elif two == "/*":
            end = text.find("*/", at + 2)
            end += end >= 0
        else:
            end = at
            if char == ";":
                found.append(text[start:at].strip())
                start = at + 1
        if end < 0:
            break
        at = end + 1
    return [each for each in found if each], text[start:]


class Completer:
    """Completes words, the parts of `provider.service.resource`, and columns of the resources that
    the line names. What was looked up once is kept."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._kept: dict[str, list[str]] = {}

    def complete(self, line: str, word: str) -> list[str]:
        """What `word`, the last of `line`, could become, sorted."""
        parent, _, start = word.rpartition(".")
        if parent:
            kinds = {1: "SERVICES IN", 2: "RESOURCES IN"}
            kind = kinds.get(parent.count(".") + 1)
            found = self._look_up(f"SHOW {kind} {parent}") if kind else []
            return _starting(found, start, f"{parent}.")
        found = list(_WORDS) + self._look_up("SHOW PROVIDERS")
        for resource in dict.fromkeys(_RESOURCE.findall(line)):
            found += self._look_up(f"DESCRIBE {resource}")
        return _starting(found, start, "")

    def _look_up(self, statement: str) -> list[str]:
        if statement not in self._kept:
            self._kept[statement] = self._names(statement)
        return self._kept[statement]


def _starting(found: list[str], start: str, before: str) -> list[str]:
    folded = start.casefold()
    return sorted({before + each for each in found if each.casefold().startswith(folded)})


class History:
    """The statements that were typed, in a file that only its owner can read. One that may hold a
    secret is not kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[str]:
        """The statements, oldest first."""
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        return lines[-MAX_HISTORY:]

    def add(self, statement: str) -> str | None:
        """Keep a statement; the line by which it is recalled, or None if it is not kept."""
        line = " ".join(statement.split())
        if LANGUAGE.redact(line, "cloud") != line:
            return None
        with os.fdopen(open_file(self._path, "append"), "w", encoding="utf-8") as file:
            file.write(f"{line};\n")
        return f"{line};"
