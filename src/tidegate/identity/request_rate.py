"""Request rate: an address may send so many requests over HTTP in a minute, whatever its token.

Each address has a bucket of `burst` requests, which fills up again over time. The limit keeps one
client from taking the server from the others; guessing of tokens is the lockout's business. Servers
on one state do not count together; of the workers of one server each counts for its part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import origin
from tidegate.model.worker_share import ALONE, WorkerShare

ADDRESSES = 10_000

Record = Callable[[str, Mapping[str, str]], None]
"""Puts on record what callers without a token can cause: (name, details). Never raises."""


class RequestRate:
    """Buckets by address, as `lockout.origin` counts addresses. Keeps `ADDRESSES` at most; the
    longest quiet is forgotten first, whose bucket was the fullest."""

    def __init__(
        self,
        per_minute: int,
        burst: int,
        record: Record,
        clock: Callable[[], float] = time.monotonic,
        share: WorkerShare = ALONE,
    ) -> None:
        self._named = per_minute
        self._per_minute = per_minute / share.count
        self._burst = max(1.0, burst / share.count)
        self._record = record
        self._clock = clock
        self._buckets: dict[str, tuple[float, float, bool]] = {}
        """What is left of a bucket, when that was, and whether the last request was refused."""

    def check(self, address: str) -> None:
        """Count a request. Raises: TidegateError LIMIT_RATE if there were too many, which is on
        record once until one is let in."""
        key, now = origin(address), self._clock()
        # Taken out and put back, so that the dict's order is that of the last request.
        left, at, refused = self._buckets.pop(key, (self._burst, now, False))
        left = min(self._burst, left + (now - at) * self._per_minute / 60)
        if len(self._buckets) >= ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        if left >= 1:
            self._buckets[key] = left - 1, now, False
            return
        self._buckets[key] = left, now, True
        if not refused:
            self._record("request.limited", {"address": address})
        raise TidegateError(
            Code.LIMIT_RATE,
            f"This address has sent more than {self._named} requests a minute",
            hint="Wait before the next one, or ask the operator to raise `request_rate`.",
            retry_after_s=(1 - left) * 60 / self._per_minute,
        )
