"""What a gate records of the others on its state: where the record of each ended.

Who can write the state's tables can remove a gate there, and who has its volume its record. What
others have recorded of it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from tidegate.audit.control_records import parse_checkpoint
from tidegate.errors import TidegateError
from tidegate.store.gates import GateEntry, GateStore

EVERY_S = 300.0
"""Between two records of the same gates. Another gate is recorded when it is first seen."""


class SeenGates:
    """The other gates, as this one, `own`, sees them. `record` takes the details of an event."""

    def __init__(
        self, own: str, gates: GateStore, record: Callable[[Mapping[str, str]], None]
    ) -> None:
        self._own = own
        self._gates = gates
        self._record = record
        self._noted: dict[str, str] = {}
        self._noted_at = float("-inf")

    def look(self, now: float) -> None:
        """See the others, and record what is new of them if it is time. `now` is in seconds of any
        clock that does not go back. Raises: TidegateError STATE_FAILED."""
        found = seen_heads(self._gates.list(), self._own)
        is_time = now >= self._noted_at + EVERY_S and found != self._noted
        if found.keys() - self._noted.keys() or is_time:
            self._record(found)
            self._noted, self._noted_at = found, now


def seen_heads(gates: Iterable[GateEntry], own: str) -> dict[str, str]:
    """Where the records of gates other than our `own` end, as details of the event."""
    found: dict[str, str] = {}
    for entry in gates:
        if entry.id != own and entry.head:
            with suppress(TidegateError):
                head = parse_checkpoint(entry.head)
                at = head.time.isoformat(timespec="seconds")
                text = f"{head.segment} {head.seq} {head.signature} {at} {entry.place}"
                found[entry.id] = text
    return found
