"""What a gate remembers of the lists of seals: how far each was, so that an older one is refused.

Kept in memory, in a file that the processes of the gate share (`shared_numbers.py`), and in another
one for the time after a restart. A state that was put back as a whole, with its lists, is found by
this alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

import msgspec

from tidegate.store.shared_numbers import SharedNumbers
from tidegate.system.private_files import replace_file
from tidegate.typed_values import decode_json

FILE = "state-seals.json"
_WRITE_S = 5.0


class _Kept(msgspec.Struct):
    cluster: int = 0
    life: str = ""
    numbers: dict[str, int] = {}


class SealMemory:
    """The highest numbers that this gate has seen. Safe to use from any thread."""

    def __init__(self, path: Path | None) -> None:
        """`path` is a file of this gate; None keeps nothing over a restart."""
        self._path = path
        self._lock = Lock()
        self._kept = self._remembered()
        self._shared = SharedNumbers(None if path is None else path.with_suffix(".numbers"))
        self._written_at = float("-inf")
        self._is_ahead = False
        self._written: dict[int, dict[tuple[str, int], int]] = {}

    @classmethod
    def as_kept(cls, path: Path) -> SealMemory:
        """What a file keeps of a gate, to read it: nothing is written there."""
        found = cls(None)
        found._kept = _read(path)
        return found

    @property
    def cluster(self) -> int:
        """How often the state was sealed as a whole."""
        return self._kept.cluster

    @property
    def highest(self) -> int:
        """The highest number of any list that was seen."""
        return max(self._kept.numbers.values(), default=0)

    def sums(self) -> dict[str, int]:
        """The sums of the highest numbers that were seen, by area: the state has no less."""
        found: dict[str, int] = {}
        with self._lock:
            for place, number in self._kept.numbers.items():
                area = place.partition("/")[0]
                found[area] = found.get(area, 0) + number
        return found

    def new_life(self) -> str:
        """A name for the time from a sealing of all rows to the next."""
        return os.urandom(16).hex()

    def begin(self, cluster: int, life: str) -> bool:
        """Take note of the life of the state; False if it is one that has ended."""
        with self._lock:
            kept = self._kept
            if cluster < kept.cluster or (cluster == kept.cluster and life != kept.life):
                return False
            if cluster > kept.cluster:
                if not kept.cluster:
                    self._shared.forget()  # what is there is of a state that this gate knew before
                self._kept = _Kept(cluster, life, kept.numbers if kept.life == life else {})
                self._write()
            return True

    def see(self, area: str, part: int, number: int) -> bool:
        """Take note of the number of a list; False if it is lower than was seen."""
        place = f"{area}/{part}"
        with self._lock:
            life = self._kept.cluster
            had = max(self._kept.numbers.get(place, 0), self._shared.get(life, area, part))
            if number > had:
                self._shared.raise_to(life, area, part, number)
                self._kept.numbers[place] = number
                self._is_ahead = True
                if monotonic() - self._written_at > _WRITE_S:
                    self._write()
            return number >= had

    def write(self, connection: Any, area: str, part: int, number: int) -> None:
        """The transaction on that connection leaves a list with this number, if it is kept."""
        self._written.setdefault(id(connection), {})[area, part] = number

    def settle(self, connection: Any, *, is_kept: bool) -> None:
        """The transaction on that connection has ended. What it has written counts as seen, so that
        no one puts it back before this gate reads it."""
        for place, number in self._written.pop(id(connection), {}).items():
            if is_kept:
                self.see(*place, number)

    def forget_numbers(self) -> None:
        """Lower numbers count from now on."""
        with self._lock:
            self._kept.numbers.clear()
            self._shared.forget()
            self._write(merges=False)

    def close(self) -> None:
        """Write what is not in the file yet."""
        with self._lock:
            if self._is_ahead:
                self._write()

    def _remembered(self) -> _Kept:
        return _Kept() if self._path is None else _read(self._path)

    def _write(self, *, merges: bool = True) -> None:
        self._written_at, self._is_ahead = monotonic(), False
        theirs = self._remembered()
        if merges and theirs.life == self._kept.life:  # other workers write it, too
            for place, number in theirs.numbers.items():
                self._kept.numbers[place] = max(number, self._kept.numbers.get(place, 0))
        if self._path is not None:
            with suppress(OSError):  # it is in memory all the same
                replace_file(self._path, msgspec.json.encode(self._kept))


def _read(path: Path) -> _Kept:
    try:
        return decode_json(path.read_bytes(), _Kept)
    except (OSError, msgspec.MsgspecError):
        return _Kept()
