"""How many requests one statement, and one caller in a minute, may send to providers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.results import UpstreamUse
from tidegate.model.worker_share import own_share

_MINUTE_S: Final = 60.0
_MOST_CALLERS: Final = 10_000


class CallRate:
    """The requests of one caller in the last minute, of which it may make `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: deque[float] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it counts any more."""
        return not self._times or self._times[-1] < time.monotonic() - _MINUTE_S

    def check(self, count: int) -> None:
        """Raises: TidegateError LIMIT_RATE if the caller may not send `count` more requests now."""
        now = time.monotonic()
        while self._times and self._times[0] < now - _MINUTE_S:
            self._times.popleft()
        if len(self._times) + count > self._most:
            wait_s = self._times[0] + _MINUTE_S - now if self._times else None
            raise TidegateError(
                Code.LIMIT_RATE,
                f"The statement would make {count} calls to providers, and"
                f" `max_calls_per_minute` allows a caller {self._most} in a minute"
                f"{own_share().where}, of which"
                f" {len(self._times)} were made.",
                hint="Wait, or narrow the statement with WHERE.",
                retry_after_s=wait_s,
                details={"calls": count, "max_calls_per_minute": self._most},
            )

    def take(self, count: int) -> None:
        """Count requests that are sent next. Raises: as `check`."""
        self.check(count)
        self._times.extend([time.monotonic()] * count)


class CallRates:
    """The rates of the callers of one source: `most` in a minute at all workers together. With 0
    there is no bound."""

    def __init__(self, most: int) -> None:
        self._most = own_share().of(most) if most else 0
        self._rates: dict[str, CallRate] = {}

    def of(self, actor: str) -> CallRate | None:
        """The rate of a caller, by its id."""
        if not self._most:
            return None
        if len(self._rates) >= _MOST_CALLERS:
            self._rates = {id_: rate for id_, rate in self._rates.items() if not rate.is_idle}
        return self._rates.setdefault(actor, CallRate(self._most))


class CallCounts(msgspec.Struct):
    """What one statement has sent. `most` is how many requests it may send, `rate` that of its
    caller. `report` is called on the event loop with what was sent so far."""

    most: int
    rate: CallRate | None = None
    report: Callable[[UpstreamUse], None] | None = None
    calls: int = 0
    pages: int = 0
    retries: int = 0
    hits: int = 0
    """Lists that came from the cache; the oldest was `oldest_s` old."""
    oldest_s: float = 0.0

    def take(self, count: int = 1) -> None:
        """Count requests that are sent next. Raises: TidegateError LIMIT_RATE if the statement may
        not send them."""
        self.check(count)
        if self.rate is not None:
            self.rate.take(count)
        self.calls += count
        self._report()

    def add_page(self) -> None:
        """Count a page that came."""
        self.pages += 1
        self._report()

    def add_hit(self, age_s: float) -> None:
        """Count a list that came from the cache, and is so old."""
        self.hits += 1
        self.oldest_s = max(self.oldest_s, age_s)
        self._report()

    @property
    def use(self) -> UpstreamUse:
        """What was sent so far, and what came from the cache."""
        return UpstreamUse(self.calls, self.pages, self.retries, self.hits, self.oldest_s)

    def _report(self) -> None:
        if self.report is not None:
            self.report(self.use)

    def check(self, count: int) -> None:
        """Raises: TidegateError LIMIT_RATE if the statement may not send `count` more requests."""
        if self.rate is not None:
            self.rate.check(count)
        if self.calls + count > self.most:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"The statement would make {self.calls + count} calls to providers, and"
                f" `max_calls` allows {self.most}; it made {self.calls}.",
                hint="Narrow it with WHERE, or have the operator raise `max_calls` of the source.",
                details={"calls": self.calls, "max_calls": self.most},
            )
