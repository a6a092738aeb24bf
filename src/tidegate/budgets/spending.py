"""What one call holds of the budgets that it costs, and what it has used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from tidegate.budgets.meter import Meter
from tidegate.errors import TidegateError
from tidegate.model.budgets import UNITS, Measure
from tidegate.model.results import Limits

STREAM_ROWS, STREAM_BYTES = 512, 262_144
"""What a result that is streamed holds at a time: its limits may be as large as a table."""
Wanted = list[tuple[Meter, int]]

_SECOND = UNITS["seconds"]


class Usage(NamedTuple):
    """What a call has used."""

    calls: int
    rows: int
    size: int
    seconds: float


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


class Spending:
    """What a call holds. `began` is set when it runs, by `time.perf_counter`. `tight` are the
    budgets that have less left than the call might use, by measure."""

    __slots__ = ("_holds", "began", "bytes_room", "bytes_used", "rows_room", "rows_used", "tight")

    def __init__(self, wanted: Wanted, tight: dict[Measure, Meter] | None = None) -> None:
        self._holds = [(meter, meter.began, units) for meter, units in wanted]
        self.tight: dict[Measure, Meter] | None = tight
        self.began = 0.0
        self.rows_room: int | None = None
        self.bytes_room: int | None = None
        self.rows_used = self.bytes_used = 0

    @property
    def meters(self) -> list[Meter]:
        """The budgets that the call costs."""
        return [hold[0] for hold in self._holds]

    def limits(self, limits: Limits, *, streams: bool = False) -> Limits:
        """The limits, none of them larger than what is held; a stream holds more as it goes on."""
        if not self.tight:
            return limits
        rows, size, timeout_s = limits.max_rows, limits.max_bytes, limits.timeout_s
        for meter, _, units in self._holds:
            if meter.kind == "rows" and not streams:
                rows = min(rows, units)
            elif meter.kind == "bytes" and not streams:
                size = min(size, units)
            elif meter.kind == "seconds":
                timeout_s = min(timeout_s, units / _SECOND)
        return structs.replace(limits, max_rows=rows, max_bytes=size, timeout_s=timeout_s)

    def settle(self, usage: Usage) -> None:
        """Pay what was used, and let go of the rest."""
        for meter, began, units in self._holds:
            kind = meter.kind
            if kind == "calls":
                paid = usage.calls
            elif kind == "rows":
                paid = usage.rows
            elif kind == "bytes":
                paid = usage.size
            else:
                paid = int(usage.seconds * _SECOND)
            meter.settle(began, units, paid)
        self._holds = []

    # A result that is streamed

    def begin_stream(self) -> bool:
        """Whether the rows of a stream have to be counted. From here on `rows_used` and
        `bytes_used` count what is sent of `rows_room` and `bytes_room`, None: any number."""
        for meter, _, units in self._holds:
            if meter.kind == "rows":
                self.rows_room = units if self.rows_room is None else min(self.rows_room, units)
            elif meter.kind == "bytes":
                self.bytes_room = units if self.bytes_room is None else min(self.bytes_room, units)
        return self.rows_room is not None or self.bytes_room is not None

    def pay_stream(self) -> list[Meter]:
        """Pay what was sent; the budgets of which more is to be held."""
        streamed: list[Meter] = []
        kept: list[tuple[Meter, int, int]] = []
        for hold in self._holds:
            meter, began, units = hold
            if meter.kind in ("rows", "bytes"):
                used = self.rows_used if meter.kind == "rows" else self.bytes_used
                meter.settle(began, units, used)
                streamed.append(meter)
            else:
                kept.append(hold)
        self._holds = kept
        self.rows_used = self.bytes_used = 0
        self.rows_room = self.bytes_room = None
        return streamed

    def hold_more(self, wanted: Wanted, tight: dict[Measure, Meter]) -> None:
        """Go on with what is held now."""
        self.tight = (self.tight or {}) | tight
        self._holds += [(meter, meter.began, units) for meter, units in wanted]
        self.begin_stream()


class SpendingEnded(Exception):
    """A budget has no more for a stream; `error` says which."""

    def __init__(self, error: TidegateError) -> None:
        super().__init__(error.message)
        self.error = error
