"""Units of time: where one begins and where it ends, in UTC. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Literal

Part = Literal["year", "quarter", "month", "day", "date", "hours", "minutes", "seconds"]

TIME_UNITS: Mapping[str, tuple[Part, ...]] = {
    "year": ("year",),
    "yearquarter": ("year", "quarter"),
    "yearmonth": ("year", "month"),
    "yearmonthdate": ("year", "month", "date"),
    "yearmonthdatehours": ("year", "month", "date", "hours"),
    "yearmonthdatehoursminutes": ("year", "month", "date", "hours", "minutes"),
    "yearmonthdatehoursminutesseconds": (
        "year", "month", "date", "hours", "minutes", "seconds",
    ),
    "quarter": ("quarter",),
    "month": ("month",),
    "date": ("date",),
    "day": ("day",),
    "hours": ("hours",),
}  # fmt: skip
"""The units by their names in Vega-Lite. Without a year they repeat, and lie in the year 2012."""

_REPEATED_YEAR = 2012
_WORDS = {
    "quarter": "quarter", "month": "month", "date": "day of the month", "day": "day of the week",
    "hours": "hour of the day", "year": "by year", "yearquarter": "by quarter",
    "yearmonth": "by month", "yearmonthdate": "by day", "yearmonthdatehours": "by hour",
    "yearmonthdatehoursminutes": "by minute", "yearmonthdatehoursminutesseconds": "by second",
}  # fmt: skip
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


def begin_of(moment: datetime.datetime, unit: str) -> datetime.datetime:
    """Where the unit begins in which a moment lies."""
    parts = TIME_UNITS[unit]
    if parts[0] == "day":
        return datetime.datetime(_REPEATED_YEAR, 1, 1 + moment.isoweekday() % 7)
    month = 1
    if "quarter" in parts:
        month = (moment.month - 1) // 3 * 3 + 1
    elif "month" in parts:
        month = moment.month
    return datetime.datetime(
        moment.year if parts[0] == "year" else _REPEATED_YEAR,
        month,
        moment.day if "date" in parts else 1,
        moment.hour if "hours" in parts else 0,
        moment.minute if "minutes" in parts else 0,
        moment.second if "seconds" in parts else 0,
    )


def end_of(begin: datetime.datetime, unit: str) -> datetime.datetime:
    """Where the unit ends that begins there."""
    smallest = TIME_UNITS[unit][-1]
    try:
        if smallest == "year":
            return begin.replace(year=begin.year + 1)
        if smallest in ("quarter", "month"):
            months = begin.month - 1 + (3 if smallest == "quarter" else 1)
            return begin.replace(year=begin.year + months // 12, month=months % 12 + 1)
        if smallest in ("date", "day"):
            return begin + datetime.timedelta(days=1)
        return begin + datetime.timedelta(**{smallest: 1})
    except (ValueError, OverflowError):  # the end of the last year that there is
        return datetime.datetime.max


def unit_text(begin: datetime.datetime, unit: str) -> str:
    """A unit as a person writes it."""
    texts = {
        "quarter": f"Q{(begin.month + 2) // 3}",
        "month": _MONTHS[begin.month - 1],
        "date": str(begin.day),
        "day": _DAYS[begin.isoweekday() % 7],
        "hours": f"{begin.hour:02}:00",
        "yearquarter": f"{begin.year:04} Q{(begin.month + 2) // 3}",
    }
    if unit in texts:
        return texts[unit]
    lengths = {"year": 4, "month": 7, "date": 10, "hours": 16, "minutes": 16, "seconds": 19}
    return begin.isoformat(" ")[: lengths[TIME_UNITS[unit][-1]]]


def unit_words(unit: str) -> str:
    """What a unit is called."""
    return _WORDS[unit]
