"""The lists of seals as a gate has seen them last, and what a server lacks that was promoted.

A standby that was promoted may lack the last changes, and with them rights that were taken away. A
gate has seen these changes in the lists. What differs there from the list that the server has is in
doubt: a row that was changed or removed counts as absent until a person has looked, and so does the
loss of a row that narrows rights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tidegate.store.sealed_lists import SealedArea, SealedList

DOUBT: Final = b"doubt"
"""In place of the MAC of a row in doubt: no row has it."""
IN_DOUBT: frozenset[SealedArea] = frozenset(
    {"budgets", "operator_sessions", "operators", "sources", "tokens"}
)
"""Grants, codes and links need no doubt: a new server ends all that wait (`postgres/epochs.py`)."""

Place = tuple[SealedArea, int]
"""An area and a part of it."""


class SeenLists:
    """The newest lists that this process has read or written, by their places. Safe to use from
    any thread."""

    def __init__(self) -> None:
        self._read: dict[Place, SealedList] = {}
        self._written: dict[Place, SealedList] = {}
        self._left: dict[Place, SealedList] = {}
        self._remembered: Mapping[Place, SealedList] = {}

    def remember(self, lists: Mapping[Place, SealedList]) -> None:
        """Take what the gate had seen before this process began. It counts for `left` alone."""
        self._remembered = lists

    def get(self, place: Place) -> SealedList | None:
        """The list as it was read last."""
        return self._read.get(place)

    def last(self, area: SealedArea) -> dict[int, SealedList]:
        """The lists of an area as they were read last, by their parts."""
        return {part: seen for (of, part), seen in list(self._read.items()) if of == area}

    def read(self, place: Place, found: SealedList) -> None:
        """Keep a list that was read."""
        self._read[place] = found
        written = self._written.get(place)
        if written is not None and written.number <= found.number:
            self._written.pop(place, None)

    def write(self, place: Place, made: SealedList) -> None:
        """Keep a list that a transaction leaves, if its COMMIT comes to be."""
        self._written[place] = made

    def leave(self) -> None:
        """The state is on another server: keep what was seen on the former one for `left`."""
        for lists in (self._remembered, self._read, self._written):
            for place, seen in list(lists.items()):  # others may read lists meanwhile
                had = self._left.get(place)
                if had is None or had.number < seen.number:
                    self._left[place] = seen
        self._read.clear()
        self._written.clear()
        self._remembered = {}

    def left(self) -> Iterator[tuple[Place, SealedList]]:
        """What was seen on the former server and counts in doubt, in the order of places."""
        yield from sorted(each for each in self._left.items() if each[0][0] in IN_DOUBT)

    def forget_left(self) -> None:
        """What was left is compared."""
        self._left.clear()

    def clear(self) -> None:
        """Another life of the state has begun."""
        for lists in (self._read, self._written, self._left):
            lists.clear()


def doubt(area: SealedArea, seen: SealedList, found: SealedList) -> SealedList | None:
    """The list of a new server with what is in doubt by a list that was `seen` on the former one;
    None if nothing is. A list that is newer comes after it."""
    if found.number > seen.number:
        return None
    narrows = area == "budgets"
    doubts = {
        name: DOUBT
        for name in seen.macs.keys() | found.macs.keys()
        if _is_in_doubt(seen.macs, found.macs, name, narrows=narrows)
    }
    return SealedList(seen.number + 1, {**found.macs, **doubts}) if doubts else None


def _is_in_doubt(
    seen: Mapping[str, bytes], found: Mapping[str, bytes], name: str, *, narrows: bool
) -> bool:
    was, now = seen.get(name), found.get(name)
    if was == now or now == DOUBT:
        return False
    if narrows:
        return was is not None  # one that was removed is back, which is as safe
    return now is not None  # one that was added is lost, which is as safe
