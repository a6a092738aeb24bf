"""What one call holds of the budgets that it costs, and what it has used."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tidegate.budgets.meter import Meter
from tidegate.errors import TidegateError
from tidegate.model.budgets import MEASURES, UNITS, Measure
from tidegate.model.results import Limits

STREAM_ROWS, STREAM_BYTES = 512, 262_144
"""What a result that is streamed holds at a time: its limits may be as large as a table."""
Wanted = list[tuple[Meter, int]]
Hold = tuple[Meter, int, int, int]
"""A budget, when the window began in which units of it are held, how many, and which of `MEASURES`
it counts."""

_SECOND = UNITS["seconds"]
_PLACES = {measure: place for place, measure in enumerate(MEASURES)}


def needs(meters: Sequence[Meter], limits: Limits, *, streams: bool) -> Wanted:
    """What a call may use at most, by budget."""
    wanted: Wanted = []
    for meter in meters:
        kind = meter.kind
        if kind == "calls":
            units = 1
        elif kind == "seconds":
            units = int(limits.timeout_s * _SECOND)
        elif kind == "rows":
            units = min(limits.max_rows, STREAM_ROWS) if streams else limits.max_rows
        else:
            units = STREAM_BYTES if streams else limits.max_bytes
        wanted.append((meter, units or 1))
    return wanted


class StreamRoom:
    """What a result that is streamed may send, None any number, and has sent of it."""

    __slots__ = ("bytes_room", "bytes_used", "rows_room", "rows_used")

    def __init__(self) -> None:
        self.rows_room: int | None = None
        self.bytes_room: int | None = None
        self.rows_used = self.bytes_used = 0


class Spending:
    """What a call holds. `tight` are the budgets that have less left than the call might use, by
    measure. `stream` is there for a result that is streamed. Without both, calls that hold the same
    share it."""

    __slots__ = ("holds", "stream", "tight")

    def __init__(self, holds: list[Hold], tight: dict[Measure, Meter] | None = None) -> None:
        self.holds = holds
        self.tight = tight
        self.stream: StreamRoom | None = None

    @property
    def meters(self) -> list[Meter]:
        """The budgets that the call costs."""
        return [hold[0] for hold in self.holds]

    def limits(self, limits: Limits, *, streams: bool = False) -> Limits:
        """The limits, none of them larger than what is held; a stream holds more as it goes on."""
        if not self.tight:
            return limits
        rows, size, timeout_s = limits.max_rows, limits.max_bytes, limits.timeout_s
        for meter, _, units, _ in self.holds:
            if meter.kind == "rows" and not streams:
                rows = min(rows, units)
            elif meter.kind == "bytes" and not streams:
                size = min(size, units)
            elif meter.kind == "seconds":
                timeout_s = min(timeout_s, units / _SECOND)
        return structs.replace(limits, max_rows=rows, max_bytes=size, timeout_s=timeout_s)

    def settle(self, calls: int, rows: int, size: int, seconds: float) -> bool:
        """Pay what was used, and let go of the rest; whether a budget is nearly used up. A call may
        pay more than it held, as a database is not stopped at once: the next ones have less."""
        low, used = False, (calls, rows, size, int(seconds * _SECOND))
        for meter, began, units, place in self.holds:
            if began != meter.began:
                continue  # that window is over
            paid = used[place]
            meter.free += units - paid
            meter.unspent = left = meter.unspent - paid
            if meter.waiters:
                meter.wake()
            if left <= meter.low:
                low = True
        return low

    # A result that is streamed

    def begin_stream(self) -> StreamRoom | None:
        """What a stream may send; None if its rows need not be counted."""
        room = StreamRoom()
        for meter, _, units, _ in self.holds:
            if meter.kind == "rows":
                room.rows_room = units if room.rows_room is None else min(room.rows_room, units)
            elif meter.kind == "bytes":
                room.bytes_room = units if room.bytes_room is None else min(room.bytes_room, units)
        if room.rows_room is not None or room.bytes_room is not None:
            self.stream = room
        return self.stream

    def pay_stream(self) -> list[Meter]:
        """Pay what was sent; the budgets of which more is to be held."""
        streamed: list[Meter] = []
        kept: list[Hold] = []
        room = self.stream or StreamRoom()
        for hold in self.holds:
            meter, began, units, _ = hold
            if meter.kind in ("rows", "bytes"):
                used = room.rows_used if meter.kind == "rows" else room.bytes_used
                meter.settle(began, units, used)
                streamed.append(meter)
            else:
                kept.append(hold)
        self.holds, self.stream = kept, StreamRoom()
        return streamed

    def hold_more(self, wanted: Wanted, tight: dict[Measure, Meter]) -> None:
        """Go on with what is held now."""
        self.tight = (self.tight or {}) | tight
        self.holds += holds_of(wanted)
        self.begin_stream()


def holds_of(wanted: Wanted) -> list[Hold]:
    """What is held, once it is."""
    return [(meter, meter.began, units, _PLACES[meter.kind]) for meter, units in wanted]


class Lease(Spending):
    """What `ready` calls that have not come and all those that came since hold together, as long as
    `meter.spare` lasts: a call changes a few numbers here. What they used is paid when the lease
    ends, which each of its meters can ask for (`Meter.end_leases`)."""

    __slots__ = ("_calls", "_ended", "_is_open", "_rows", "_seconds", "_size", "ready")

    def __init__(self, holds: list[Hold], count: int) -> None:
        super().__init__(holds)
        self.ready = count
        self._is_open = True
        self._ended = self._calls = self._rows = self._size = 0
        self._seconds = 0.0
        for meter, _, units, _ in holds:
            meter.free -= count * units
            meter.leases.add(self.end)

    def settle(self, calls: int, rows: int, size: int, seconds: float) -> bool:
        """As `Spending.settle`. No budget is nearly used up while there is a lease of it."""
        if not self._is_open:
            return super().settle(calls, rows, size, seconds)
        self._ended += 1
        self._calls += calls
        self._rows += rows
        self._size += size
        self._seconds += seconds
        return False

    def end(self) -> None:
        """Pay for the calls that have ended; those under way pay for themselves from now on."""
        if not self._is_open:
            return
        self._is_open = False
        calls, self.ready = self.ready + self._ended, 0
        used = (self._calls, self._rows, self._size, int(self._seconds * _SECOND))
        for meter, began, units, place in self.holds:
            meter.leases.discard(self.end)
            meter.settle(began, calls * units, used[place])


class SpendingEnded(Exception):
    """A budget has no more for a stream; `error` says which."""

    def __init__(self, error: TidegateError) -> None:
        super().__init__(error.message)
        self.error = error
