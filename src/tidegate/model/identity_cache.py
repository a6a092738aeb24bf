"""A small cache of what was made of frozen objects, by their identity. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
MadeT = TypeVar("MadeT")

_MOST = 64


class IdentityCache(Generic[KeyT, MadeT]):
    """What `make` gives for a key, made once while the key is in use.

    For keys that are costly to compare, such as the 10,000 sources that an actor may see. An entry
    keeps its key, so that no other object can take its place in memory.
    """

    __slots__ = ("_entries", "_make")

    def __init__(self, make: Callable[[KeyT], MadeT]) -> None:
        self._make = make
        self._entries: dict[int, tuple[KeyT, MadeT]] = {}

    def get(self, key: KeyT) -> MadeT:
        """What was made of the key, now or before."""
        kept = self._entries.get(id(key))
        if kept is None:
            if len(self._entries) >= _MOST:
                self._entries.clear()
            kept = self._entries[id(key)] = key, self._make(key)
        return kept[1]

    def clear(self) -> None:
        self._entries.clear()
