"""Which extractions a caller has seen: exactly what was extracted may be executed."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from tidegate.products.jdbc.extraction.model import Extraction

MOST_OF_OWNER = 256


class _Key(NamedTuple):
    """`connection` is None for an extraction without one."""

    owner: str
    query: str
    connection: str | None


class Seen(NamedTuple):
    """What an owner was shown. `digest` is that of the description, None if none was shown."""

    extraction: Extraction
    digest: str | None = None


class Confirmations:
    """Extractions by owner (a session, or without one an actor), exact text and connection."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._seen: OrderedDict[_Key, tuple[float, Seen]] = OrderedDict()

    def add(self, owner: str, query: str, connection: str | None, seen: Seen) -> None:
        """Keep what an owner was shown."""
        self._forget_old()
        own = [key for key in self._seen if key.owner == owner]
        if len(own) >= MOST_OF_OWNER:
            del self._seen[own[0]]
        key = _Key(owner, query, connection)
        self._seen.pop(key, None)
        self._seen[key] = self._clock() + self._seconds, seen

    def find(self, owner: str, query: str, connection: str) -> Seen | None:
        """What the owner was shown of this text, for this connection or without one."""
        self._forget_old()
        for place in (connection, None):
            seen = self._seen.get(_Key(owner, query, place))
            if seen is not None:
                return seen[1]
        return None

    def forget(self, owner: str, query: str, connection: str) -> None:
        """Let nothing of this text be confirmed any more for the connection."""
        for place in (connection, None):
            self._seen.pop(_Key(owner, query, place), None)

    def _forget_old(self) -> None:
        now = self._clock()
        while self._seen:
            key = next(iter(self._seen))
            if self._seen[key][0] > now:
                return
            del self._seen[key]
