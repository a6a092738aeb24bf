"""The gates of one state: who holds the id of each, and where its record ends.

A gate is one directory with a record of its own. Its id is leased to one volume on one machine, so
a copy of the volume is refused as long as the other one is used.

`api.py` says what holds of every area.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class GateEntry(NamedTuple):
    """One gate. `holder` names the volume, on a machine since its start, that has the lease until
    `expires_at`; `place` says to people where that is. `processes` is how many serve there, 0
    where only commands have run. `head` is the newest signed checkpoint of its record as it is
    stored there, empty if there is none yet. `public_key` verifies it. Times are those of the state
    (`State.now`)."""

    id: str
    holder: str
    place: str
    public_key: str
    processes: int
    head: bytes
    renewed_at: float
    expires_at: float


class GateStore(Protocol):
    """The gates that have ever been on this state."""

    def claim(self, claim: GateEntry) -> GateEntry:
        """Take or renew the lease of a gate's id; the gate as it is then. It is another one's
        `holder` that is returned where the lease is that one's, and has not ended by the claim's
        `renewed_at`; then nothing is changed. A claim of 0 processes leaves that number as it is,
        and one without a head leaves the head."""
        ...

    def list(self) -> tuple[GateEntry, ...]:
        """All gates by id."""
        ...

    def forget(self, id: str) -> bool:
        """Remove a gate; False if there is none of that id."""
        ...
