"""Numbers of lists of seals that all processes of a gate share, by a mapped file of its directory.

One process sees at once what another one has written, so that no one can put rows and their list
back before the others have read them. A number only rises, until `forget`.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidegate.store.sealed_lists import PARTS
from tidegate.system.private_files import open_file

_AREAS: Final = (
    "approvals", "budgets", "operator_links", "operator_sessions", "operators", "pairings",
    "sources", "tokens", "unrecorded_events", "used_values",
)  # fmt: skip
"""In the order of the file: a new one comes last."""
_MOST_AREAS = 64
_NUMBER_BYTES = 8
_BYTES = _MOST_AREAS * PARTS * _NUMBER_BYTES
_NUMBER_BITS = 40
"""What is above them is the life of the state, which has numbers of its own."""


class SharedNumbers:
    """The numbers in the file at a path. Without one, or where it cannot be mapped, there are none.
    Safe to use from any thread. Two that raise one number at once may leave the lower of both,
    which the next reader raises."""

    def __init__(self, path: Path | None) -> None:
        self._numbers = None if path is None else _map(path)

    def get(self, life: int, area: str, part: int) -> int:
        """The highest number that a process has seen in that life of the state; 0 if none has."""
        slot = _slot(area, part)
        found = 0 if self._numbers is None or slot is None else self._numbers[slot]
        return found & ((1 << _NUMBER_BITS) - 1) if found >> _NUMBER_BITS == life else 0

    def raise_to(self, life: int, area: str, part: int, number: int) -> None:
        """Have all processes know a number."""
        slot, value = _slot(area, part), (life << _NUMBER_BITS) + number
        if self._numbers is not None and slot is not None and value > self._numbers[slot]:
            self._numbers[slot] = value

    def forget(self) -> None:
        """Lower numbers count from now on."""
        if self._numbers is not None:
            self._numbers[:] = memoryview(bytes(_BYTES)).cast("Q")


def _map(path: Path) -> memoryview | None:
    with suppress(OSError, ValueError):
        descriptor = open_file(path, "read and write", follow=False)
        try:
            if os.fstat(descriptor).st_size < _BYTES:
                os.truncate(descriptor, _BYTES)
            # It is closed with the last view of it.
            return memoryview(mmap.mmap(descriptor, _BYTES)).cast("Q")
        finally:
            os.close(descriptor)
    return None


def _slot(area: str, part: int) -> int | None:
    return _AREAS.index(area) * PARTS + part if area in _AREAS else None
