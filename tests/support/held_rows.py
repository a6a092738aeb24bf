"""Rows of a file for a table, as the console holds them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.imports.checking import HeldRows, Pair
from tidegate.model.editing import EditColumn

_held: list[HeldRows] = []


def close_held_rows() -> None:
    """Let go of the rows of a test."""
    while _held:
        _held.pop().close()


def held_rows(rows: Sequence[Sequence[Any]], places: Sequence[int], name: str = "f") -> HeldRows:
    """Rows that are ready to be added, with values for the columns at these places."""
    pairs = [
        Pair(at, str(at), EditColumn(str(at), "", "text"), place) for at, place in enumerate(places)
    ]
    descriptor, path = tempfile.mkstemp()
    Path(path).unlink()
    held = HeldRows(os.fdopen(descriptor, "wb", buffering=0), name, "ab" * 32, pairs)
    _held.append(held)
    for begin in range(0, len(rows), 100):
        part = rows[begin : begin + 100]
        held.add(range(begin + 2, begin + 2 + len(part)), part)
    return held
