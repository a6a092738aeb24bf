"""Rows that were read but not yet shown, for a caller who asks for more of the same result.

A shelved result is a snapshot: nothing runs again. It belongs to the actor who got it, is bounded
in number and size, and is forgotten after ten minutes or when room is needed.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from tidegate.engines.api import Row
from tidegate.errors import Code, GateError
from tidegate.types import Column, Limits, Query

LIFETIME_S = 600.0
MOST_RESULTS = 64
SHELVED_ROWS = 5_000
SHELVED_BYTES = 8_388_608


class Shelved(msgspec.Struct):
    """What is left of one result. `complete` False: the database had more than was read."""

    actor_id: str
    source: str
    query: Query
    columns: tuple[Column, ...]
    rows: list[Row]
    complete: bool
    expires_at: float = 0.0

    def limits(self, max_rows: int) -> Limits:
        return Limits(max_rows, self.query.limits.max_bytes, self.query.limits.timeout_s)


class Shelf:
    """Shelved results by handle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._results: OrderedDict[str, Shelved] = OrderedDict()

    def put(self, shelved: Shelved) -> str:
        """Shelve what is left and return its handle."""
        now = self._clock()
        for handle, result in list(self._results.items()):
            if result.expires_at > now and len(self._results) < MOST_RESULTS:
                break
            del self._results[handle]
        shelved.expires_at = now + LIFETIME_S
        handle = secrets.token_urlsafe(6)
        self._results[handle] = shelved
        return handle

    def take(self, handle: str, actor_id: str, source: str) -> Shelved:
        """Take a result of this actor and source off the shelf. Raises: GateError RESULT_GONE."""
        shelved = self._results.get(handle)
        if shelved is None or (shelved.actor_id, shelved.source) != (actor_id, source):
            raise GateError(Code.RESULT_GONE, f"There is no result {handle!r}")
        del self._results[handle]
        if self._clock() >= shelved.expires_at:
            raise GateError(Code.RESULT_GONE, f"The result {handle!r} has expired")
        return shelved
