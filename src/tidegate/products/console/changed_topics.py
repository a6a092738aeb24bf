"""Whether a topic of the state may have changed since it was read for the pages.

Where the server follows its state (`store/versions.py`) a look reads nothing.
"""

from __future__ import annotations

import time

from tidegate.approvals.approvals import Approvals
from tidegate.store.versions import Topic

SURE_S = 5.0
"""After so long the state is read although nothing is known to have changed: time passes, too."""


class ChangedTopic:
    """One topic, for one reader of it."""

    def __init__(self, approvals: Approvals, topic: Topic) -> None:
        """`approvals` knows the versions of the state."""
        self._approvals = approvals
        self._topic: Topic = topic
        self._read: int | None = None
        self._looked: int | None = None
        self._read_at = 0.0

    def may_differ(self) -> bool:
        """Whether it has to be read. Raises: TidegateError STATE_FAILED."""
        versions = self._approvals.versions
        if versions is None or not versions.followed:
            return True
        self._looked = versions.of(self._topic)  # before the read: what comes later is read again
        return self._looked != self._read or time.monotonic() - self._read_at >= SURE_S

    def note_read(self) -> None:
        """It was read, after the last look."""
        self._read, self._read_at = self._looked, time.monotonic()
