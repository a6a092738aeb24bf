"""Lists of the command line, which stay readable however long they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from tidegate.cli.terminal import print_status

SHOWN = 200
"""Entries of a list that are shown unless `--limit` says otherwise. JSON has all of them."""

T = TypeVar("T")


def chosen(
    entries: Sequence[T], arguments: argparse.Namespace, nouns: str, name: Callable[[T], str]
) -> list[T]:
    """The entries whose name holds `--like`, up to `--limit`. A note says how many are left out."""
    wanted: str = (arguments.like or "").casefold()
    found = [entry for entry in entries if wanted in name(entry).casefold()]
    limit: int | None = arguments.limit or (None if arguments.json else SHOWN)
    if limit is None or len(found) <= limit:
        return found
    print_status(
        f"note: {limit} of {len(found)} {nouns} are shown; --limit {len(found)} shows all, --like"
        " TEXT those whose name holds TEXT"
    )
    return found[:limit]
