"""Bins of numbers: as wide as Vega makes them, with exact ends. Pure.

Their width is 1, 2 or 5 times a power of ten, so that there are no more bins than wanted. A float
counts as the shortest decimal that is written for it: 0.3 begins a bin of 0.1, as people read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from math import ceil, floor, log10
from typing import NamedTuple

Number = int | float | Decimal

EXACT = Context(prec=6_000, Emax=999_999, Emin=-999_999)
"""Enough digits for any two numbers of a database, side by side."""


class Bins(NamedTuple):
    """Bins of one width, from `start` to `stop`."""

    start: Decimal
    stop: Decimal
    step: Decimal

    def begin_of_each(self, values: Sequence[Number | None]) -> list[Decimal | None]:
        """Where the bin begins in which each value lies: the greatest value is in the last bin."""
        last = self.stop - self.step
        known: dict[Number | None, Decimal | None] = {None: None}
        with localcontext(EXACT):
            for value in values:
                if value not in known and value is not None:
                    place = min(_decimal(value), last)
                    known[value] = self.start + self.step * ((place - self.start) // self.step)
        return [known[value] for value in values]

    def end_of(self, begin: Decimal) -> Decimal:
        with localcontext(EXACT):
            return begin + self.step


def bins_of(low: Number, high: Number, maxbins: int) -> Bins:
    """The bins of values between two. They are finite."""
    with localcontext(EXACT):
        least, most = _decimal(low), _decimal(high)
        span = (most - least) or abs(least) or Decimal(1)
        level = ceil(round(log10(maxbins), 12))
        step = Decimal(1).scaleb(floor(_log10(span) + 0.5) - level)
        while span > step * maxbins:
            step *= 10
        for divisor in (5, 2):
            if span <= step / divisor * maxbins:
                step = step / divisor
        step = step.normalize()
        start = _down(least / step) * step
        stop = -_down(-most / step) * step
        return Bins(start, stop if stop > start else start + step, step)


def _down(value: Decimal) -> Decimal:
    return value.to_integral_value("ROUND_FLOOR")


def _decimal(value: Number) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _log10(value: Decimal) -> float:
    """The logarithm, also of what no float can hold."""
    return value.adjusted() + log10(float(value.scaleb(-value.adjusted())))
