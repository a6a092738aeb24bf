"""Amounts of budgets as people write them."""

from __future__ import annotations

import re

from tidegate.errors import Code, TidegateError
from tidegate.model.budgets import MEASURES, MOST, UNITS, WINDOWS, Measure, Window

_AMOUNT = re.compile(r"(\d[\d_,]{0,18})(?:\.(\d{1,6}))?\s*([kMG]?)")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def parse_size(text: str) -> tuple[int, Measure, Window]:
    """What `AMOUNT MEASURE/WINDOW` says, such as `500 calls/minute`. Raises: TidegateError
    ARGUMENT_INVALID."""
    amount, _, rest = text.strip().rpartition(" ")
    measure, window = parse_kind(rest)
    return parse_amount(measure, amount), measure, window


def parse_kind(text: str) -> tuple[Measure, Window]:
    """What `MEASURE/WINDOW` says. Raises: TidegateError ARGUMENT_INVALID."""
    first, _, second = text.partition("/")
    for measure in MEASURES:
        for window in WINDOWS:
            if (measure, window) == (first, second):
                return measure, window
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"`{text[:40]}` is not what a budget counts.",
        hint=f"Write one of {', '.join(MEASURES)}, a slash, and one of {', '.join(WINDOWS)}.",
    )


def parse_amount(measure: Measure, text: str) -> int:
    """The units that a person wrote, such as `500`, `2.5` seconds or `20M` bytes. Raises:
    TidegateError ARGUMENT_INVALID."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is not None:
        whole, part, letter = found[1].replace(",", "").replace("_", ""), found[2] or "", found[3]
        factor, scale = _FACTORS[letter] * UNITS[measure], 10 ** len(part)
        units, inexact = divmod(int(whole + part) * factor, scale)
        if not inexact:
            return check_amount(units)
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"`{text[:40]}` is no amount of {measure}.",
        hint="Write a number, such as 500, 20k or 100M; of seconds also 2.5.",
    )


def check_amount(units: int) -> int:
    """The units, if a budget may have so many. Raises: TidegateError ARGUMENT_INVALID."""
    if not 0 <= units <= MOST:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The budget is too large to count.",
            hint="Remove it: without a budget there is no limit.",
        )
    return units
