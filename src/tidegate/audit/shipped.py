"""Which parts of the record other systems have, and the id under which they know this record.

A segment may be removed once every destination has all of it. That holds in every process on the
state, also in one that ships nothing itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.store.shipping import ShippingStore
from tidegate.system.private_files import create_once

_FILE = "gate-id"
_BYTES = 8


def gate_id(directory: Path) -> str:
    """The id of the record in this directory, made when it is first asked for. It is kept beside
    the segments: a record that begins again, as after a restored backup, has another one, so that
    its numbers are not taken for those of the former. Raises: OSError."""
    found = find_gate_id(directory)
    if not found:
        create_once(directory / _FILE, os.urandom(_BYTES).hex().encode())
        found = find_gate_id(directory)
    return found


def find_gate_id(directory: Path) -> str:
    """The id if one was made, else empty. Raises: OSError."""
    with suppress(FileNotFoundError):
        return (directory / _FILE).read_text(encoding="ascii").strip()
    return ""


class ShippedSegments:
    """What the destinations have of the segments in a directory."""

    def __init__(self, store: ShippingStore, directory: Path) -> None:
        self._store = store
        self._directory = directory

    def have(self, segment: str, size: int) -> bool:
        """Whether all destinations have a segment of that size; False also where it cannot be
        found out."""
        try:
            gate = find_gate_id(self._directory)
            if not gate:
                return True
            for name in self._store.destinations(gate):
                position = self._store.positions(gate, name).get(segment)
                if position is None or position.offset < size:
                    return False
        except (OSError, UnicodeDecodeError, TidegateError):
            return False
        return True
