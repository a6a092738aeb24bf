"""Decimals as texts."""

from __future__ import annotations

from decimal import Decimal

MOST_POWER = 1_000
"""The most digits before the point, or zeros after it, that are written out: those of
`1E+999999999` would be a gigabyte."""


def is_long(value: Decimal) -> bool:
    """Whether a finite number has so many digits, written out, that it is not."""
    return abs(value.adjusted()) > MOST_POWER


def plain(value: Decimal) -> str:
    """A finite number without an exponent, unless that is long."""
    return str(value) if is_long(value) else format(value, "f")
