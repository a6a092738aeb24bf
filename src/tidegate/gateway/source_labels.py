"""The names of sources as values of labels in figures: a closed set, and a bounded one."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.tracing import OTHER

MOST_SOURCES = 64


class SourceLabels:
    """Gives labels. `knows` says whether a name is one of the gate's, which a caller did not give.
    Other names, and every source beyond `MOST_SOURCES`, are `OTHER`."""

    def __init__(self, knows: Callable[[str], bool]) -> None:
        self._knows = knows
        self._kept: set[str] = set()

    def label(self, name: str) -> str:
        """The label of a source; empty for calls about none."""
        if not name or name in self._kept:
            return name
        if len(self._kept) >= MOST_SOURCES or not self._knows(name):
            return OTHER
        self._kept.add(name)
        return name
