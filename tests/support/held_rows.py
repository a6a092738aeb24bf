"""Rows of a file for a table, as the console holds them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

from tidegate.imports.checking import HeldRows, Pair
from tidegate.imports.open_file import OpenFile
from tidegate.model.editing import EditColumn


def held_rows(rows: Sequence[Sequence[Any]], places: Sequence[int], name: str = "f") -> HeldRows:
    """Rows that are ready to be added, with values for the columns at these places."""
    pairs = [
        Pair(at, str(at), EditColumn(str(at), "", "text"), place) for at, place in enumerate(places)
    ]
    file = OpenFile(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - it closes itself
    held = HeldRows(file, name, "ab" * 32, pairs)
    for begin in range(0, len(rows), 100):
        part = rows[begin : begin + 100]
        held.add(range(begin + 2, begin + 2 + len(part)), part)
    return held
