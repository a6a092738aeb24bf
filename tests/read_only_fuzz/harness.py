"""What the hunt asks of a database under test, and what the databases have in common."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

Digest = dict[str, str]
"""What could change, by part; each part as a short hash, so that a difference has a name."""

TIMEOUT_S = float(os.environ.get("TIDEGATE_HUNT_LIMIT_S", "0.2"))
"""After which a statement is ended: what a read does, it does at once. Where every statement must
come to its end, also on a slow machine, the limit is set to more."""

HOSTILE = ("'DELETE FROM u'", "'SELECT spy()'", "'../escape'")
"""Strings that a function might run, or take for a file."""


class Harness(Protocol):
    """A database of one engine with something of everything in it, open to a user who may do
    everything. A new one is built for each hunt, and after each find."""

    dialect: str
    folder: Path
    """Where statements that write files find room; its files are in the digest."""
    hiding: tuple[str, ...]
    """Names, in lower case, of what the catalog alone can tell the harm of: there the engine's
    opinion counts as well as the judge's."""

    def calls(self) -> list[str]:
        """A call, with arguments, of every function and operator that the database lists."""
        ...

    def objects(self, text: str) -> bool:
        """Whether the engine's `inspect` raises the judge's opinion of a text."""
        ...

    def run(self, text: str) -> bool:
        """Run a text with the bare driver, whatever it does; whether the database took it."""
        ...

    def digest(self) -> Digest:
        """Of data, schema, settings, session and files."""
        ...

    def close(self) -> None:
        """End it and remove its files."""
        ...


def short(value: object) -> str:
    """A hash of a value, by how it is written."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def files(folder: Path, without: Iterable[str] = (), *, contents: bool = True) -> list[str]:
    """The files below a folder, with hashes of their contents or their sizes alone. Left out are
    those whose path below it begins with one of `without`."""
    skipped = tuple(without)
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if skipped and name.startswith(skipped):
            continue
        try:
            if not path.is_file():
                found.append(f"{name} -")
            elif contents:
                found.append(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}")
            else:
                found.append(f"{name} {path.stat().st_size}")
        except FileNotFoundError:
            continue  # a temporary file of a statement that was just ended
    return found
