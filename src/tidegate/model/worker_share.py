"""The part of this process, where several serve one gate: which of them it is, and how much of a
limit falls to it. A limit in the settings is that of all together.
"""

from __future__ import annotations

import msgspec


class WorkerShare(msgspec.Struct, frozen=True):
    """Worker `number` of `count`; 0 of 1 for a process that serves alone."""

    number: int = 0
    count: int = 1

    def of(self, total: int) -> int:
        """What falls to this worker; those of all workers make up the total. One at least: a total
        that is less than the number of workers cannot be divided (`divides`)."""
        whole, rest = divmod(total, self.count)
        return max(1, whole + (self.number <= rest and self.number > 0))

    def divides(self, total: int) -> bool:
        """Whether each worker gets a part, and no more are taken than there are."""
        return total >= self.count

    @property
    def where(self) -> str:
        """What a refusal says after a limit that is this worker's part."""
        return f" at one of {self.count} workers" if self.count > 1 else ""


ALONE = WorkerShare()
"""Of a process that serves alone."""
_own = ALONE


def own_share() -> WorkerShare:
    """That of this process."""
    return _own


def use_share(share: WorkerShare) -> None:
    """Say which worker this process is, before it opens a source."""
    global _own
    _own = share
