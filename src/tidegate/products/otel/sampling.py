"""Which requests are traced: a share of them, and at most so many a second.

The decision is made before any span is, so that a request that is not traced costs next to nothing.
The SDK's samplers that follow a parent are not used: a caller who sets the flag `sampled` would
decide what this server does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import random

from opentelemetry.trace import SpanContext

_LOW_64_BITS = 0xFFFF_FFFF_FFFF_FFFF


class Limit:
    """Admits requests. Used on the event loop."""

    def __init__(
        self, ratio: float, per_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bound = round(ratio * (_LOW_64_BITS + 1))
        self._ratio = ratio
        self._per_s = per_s
        self._most = max(1.0, per_s) if per_s else 0.0
        self._clock = clock
        self._left = self._most
        self._at = clock()
        self.refused = 0
        """Requests that were to be traced, and were too many."""

    def admits(self, parent: SpanContext | None) -> bool:
        """Whether a request is traced. One trace is sampled as the SDK's `TraceIdRatioBased` does,
        so that all its requests are, here and elsewhere; a caller can only ask for less."""
        if parent is None:
            wanted = self._ratio >= 1.0 or random() < self._ratio
        else:
            wanted = parent.trace_flags.sampled and parent.trace_id & _LOW_64_BITS < self._bound
        return wanted and self._take()

    def _take(self) -> bool:
        if self._left < 1.0:
            now = self._clock()
            self._left = min(self._most, self._left + (now - self._at) * self._per_s)
            self._at = now
            if self._left < 1.0:
                self.refused += 1
                return False
        self._left -= 1.0
        return True
