"""How much of a provider of models one caller may use: calls at once, calls in a minute, and units
and seconds in a day (UTC).

What was used in a day is kept in the state, for all servers on it; calls in a minute are counted by
each process, of which a worker has its part. A call that is cancelled ends its request to the
provider.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Call
from tidegate.model.worker_share import own_share
from tidegate.store.api import QuestionStore
from tidegate.store.calls import change_state, read_state

AT_ONCE = 4
"""Calls of one caller that a provider works on at a time; further ones wait."""
MOST_CALLERS = 10_000
"""Callers whose last minute is remembered; the one that was quiet for longest is forgotten."""
_MINUTE_S = 60.0

Value = TypeVar("Value")


class CallerLimits(NamedTuple):
    """The limits of one caller. `section` is where the settings have them, `unit` what is counted:
    `section.unit_per_day` is a setting."""

    section: str
    unit: str
    units_per_day: int
    seconds_per_day: float
    calls_per_minute: int


class _Use:
    """What one caller does now: its calls of the last minute, its turns, and the units of calls
    that are under way."""

    __slots__ = ("calls", "turns", "units")

    def __init__(self) -> None:
        self.calls: deque[float] = deque()
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.units = 0


class ProviderLimits:
    """The limits of one kind of provider. Used on the event loop only."""

    def __init__(
        self,
        store: QuestionStore,
        limits: CallerLimits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    async def run(
        self,
        call: Call,
        units: int,
        work: Callable[[], Awaitable[tuple[Value, int]]],
        *,
        limited: bool = True,
    ) -> Value:
        """What `work` gives, with the units that it used; `units` is what it will use, as far as
        that is known before. Without `limited` the use is counted and not bounded.

        Raises: TidegateError LIMIT_RATE, MODEL_LIMIT with the time until the caller may go on;
        CALL_CANCELLED; what `work` raises.
        """
        use = self._use_of(call.actor.id)
        if limited:
            self._count_call(use)
        task = asyncio.ensure_future(self._run(call.actor.id, use, units, work, limited=limited))

        def stop() -> None:
            task.cancel()

        call.cancellation.listen(stop)
        try:
            return await task
        except asyncio.CancelledError:
            if call.cancellation.reason is None:
                raise
            raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled") from None
        finally:
            call.cancellation.forget(stop)

    async def _run(
        self,
        actor: str,
        use: _Use,
        units: int,
        work: Callable[[], Awaitable[tuple[Value, int]]],
        *,
        limited: bool,
    ) -> Value:
        async with use.turns:
            day = datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
            if limited:
                await self._check_day(actor, day, use.units)
            began = time.monotonic()
            use.units += units
            used = units
            try:
                value, used = await work()
            finally:
                use.units -= units
                seconds = time.monotonic() - began
                kind = self._limits.section
                await asyncio.shield(change_state(self._store.use, actor, kind, day, used, seconds))
            return value

    def _use_of(self, actor: str) -> _Use:
        # Taken out and put back, so that the first one has been quiet for longest.
        use = self._uses.pop(actor, None)
        if use is None:
            use = _Use()
            if len(self._uses) >= MOST_CALLERS:
                del self._uses[next(iter(self._uses))]
        self._uses[actor] = use
        return use

    def _count_call(self, use: _Use) -> None:
        """Raises: TidegateError LIMIT_RATE if the caller has made its calls of this minute."""
        now, share = self._clock(), own_share()
        most = share.of(self._limits.calls_per_minute)
        while use.calls and now - use.calls[0] >= _MINUTE_S:
            use.calls.popleft()
        if len(use.calls) >= most:
            wait_s = use.calls[0] + _MINUTE_S - now
            raise TidegateError(
                Code.LIMIT_RATE,
                f"This caller has sent {most:,} calls to the provider within a minute, which is"
                f" its limit{share.where}",
                hint=f"Wait {wait_s:.0f} s, or have the operator raise"
                f" `{self._limits.section}.calls_per_minute`.",
                retry_after_s=wait_s,
            )
        use.calls.append(now)

    async def _check_day(self, actor: str, day: str, under_way: int) -> None:
        """Raises: TidegateError MODEL_LIMIT if the caller has used what it may in a day."""
        limits = self._limits
        used = await read_state(self._store.used, actor, limits.section, day)
        units = used.units + under_way
        if units < limits.units_per_day and used.seconds < limits.seconds_per_day:
            return
        now = datetime.fromtimestamp(self._clock(), UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        raise TidegateError(
            Code.MODEL_LIMIT,
            f"This caller has used {units:,} {limits.unit} and {used.seconds:.0f} s of the model"
            f" today; the limits are {limits.units_per_day:,} and {limits.seconds_per_day:g} s",
            hint=f"Wait until tomorrow (UTC), or have the operator raise"
            f" `{limits.section}.{limits.unit}_per_day` or `{limits.section}.seconds_per_day`.",
            retry_after_s=(midnight - now).total_seconds(),
        )
