"""The mutants that a person reviewed: `survivors.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import Mutant

FILE = Path(__file__).parent / "survivors.toml"


@dataclass(frozen=True)
class Review:
    verdict: str
    """`equivalent`: no test can see it. `survivor`: a test could see it, and none does."""
    reason: str


def reviews() -> dict[tuple[str, str, str, str, int], Review]:
    """What was said of each, by `Mutant.key`."""
    found: dict[tuple[str, str, str, str, int], Review] = {}
    for verdict, entries in tomllib.loads(FILE.read_text()).items():
        for entry in entries:
            key = (entry["module"], entry["function"], entry["before"], entry["after"])
            found[*key, entry.get("number", 0)] = Review(verdict, entry["reason"])
    return found


def entry_of(mutant: Mutant) -> str:
    """How a mutant is written into the file, with its reason still to be given."""
    module, function, before, after, number = mutant.key
    lines = [f"module = {_quoted(module)}", f"function = {_quoted(function)}"]
    lines += [f"before = {_quoted(before)}", f"after = {_quoted(after)}"]
    lines += [f"number = {number}"] if number else []
    return "\n".join(["[[equivalent]]", *lines, 'reason = ""'])


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    return f"'''{text}'''" if "'''" not in text and not text.endswith("'") else _escaped(text)


def _escaped(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
