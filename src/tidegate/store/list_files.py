"""The lists of seals that a gate has seen last, in files of its directory.

Where the state is on another server, and no process runs that was there before, they say what that
server lacks. A file for each list, so that a change writes one; what is lost with the power of this
machine is the last moments.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from tidegate.store.sealed_lists import SealedList
from tidegate.store.seen_lists import IN_DOUBT, Place
from tidegate.system.private_files import make_private_directory, replace_file
from tidegate.typed_values import decode_msgpack


class _Kept(msgspec.Struct, array_like=True):
    life: str
    number: int
    macs: dict[str, bytes]


class ListFiles:
    """The files in a folder; without one nothing is kept. Never raises: what cannot be written is
    not known after a restart."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._is_made = False

    def keep(self, life: str, place: Place, seen: SealedList) -> None:
        """Keep a list that was read or written in that life of the state."""
        area, part = place
        if self._folder is None or area not in IN_DOUBT:
            return
        with suppress(OSError):
            if not self._is_made:
                make_private_directory(self._folder)
                self._is_made = True
            content = msgspec.msgpack.encode(_Kept(life, seen.number, dict(seen.macs)))
            replace_file(self._folder / f"{area}-{part}", content)

    def read(self, life: str) -> dict[Place, SealedList]:
        """All lists of that life."""
        found: dict[Place, SealedList] = {}
        if self._folder is None:
            return found
        for area in sorted(IN_DOUBT):
            for path in self._folder.glob(f"{area}-*"):
                with suppress(OSError, ValueError, msgspec.MsgspecError):
                    kept = decode_msgpack(path.read_bytes(), _Kept)
                    if kept.life == life:
                        part = int(path.name.rpartition("-")[2])
                        found[area, part] = SealedList(kept.number, kept.macs)
        return found
