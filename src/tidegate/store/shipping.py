"""State of what ships the record: how far each destination has it.

`api.py` says what holds of every area.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec


class Position(msgspec.Struct, frozen=True):
    """How far a destination has a segment: its first `offset` bytes, whose last line has the number
    `number`. `complete`: that was the last line of all, and the chain goes on in another segment.
    """

    offset: int
    number: int
    complete: bool = False


class ShippingStore(Protocol):
    """Positions by gate, destination and segment. A gate is one directory of segments, so several
    machines on one state do not meet here. One process at a time ships for a gate."""

    def set_destinations(self, gate: str, names: Collection[str]) -> None:
        """Have these destinations and no others. A new one has nothing yet; what is known of one
        that is not named any more is forgotten."""
        ...

    def destinations(self, gate: str) -> tuple[str, ...]:
        """The names of the destinations."""
        ...

    def set_followed(self, gate: str, name: str) -> None:
        """Keep of a destination that it has once had as much of the record as it must: from then on
        its lag counts."""
        ...

    def followed(self, gate: str) -> frozenset[str]:
        """The destinations of which that is kept."""
        ...

    def positions(self, gate: str, destination: str) -> dict[str, Position]:
        """The positions of a destination by the name of the segment."""
        ...

    def save(self, gate: str, destination: str, positions: Mapping[str, Position]) -> None:
        """Keep these positions, in place of those of the same segments; nothing happens for a
        destination that there is not."""
        ...

    def forget(self, gate: str, segments: Collection[str]) -> None:
        """Drop the positions of segments that were removed."""
        ...
