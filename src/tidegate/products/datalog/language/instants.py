"""Points in time as EDN writes them (`#inst`), to the millisecond. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_INSTANT = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?)?)?)?"
    r"(Z|[-+]\d\d:\d\d)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_instant(text: str) -> int | None:
    """Milliseconds since 1970 UTC; None if the text is no time of RFC 3339, of which Clojure lets
    the end be left out."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        at = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0),
            int(second or 0), tzinfo=UTC,
        )  # fmt: skip
    except ValueError:
        return None
    if zone not in (None, "Z"):
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 23 or minutes > 59:
            return None
        offset = timedelta(hours=hours, minutes=minutes)
    else:
        offset = timedelta()
    milliseconds = (at - _EPOCH) // _MILLISECOND
    shift = offset // _MILLISECOND * (-1 if zone is not None and zone[0] == "-" else 1)
    return milliseconds - shift + int((fraction or "0").ljust(3, "0")[:3])


def format_instant(milliseconds: int) -> str | None:
    """The time in UTC with milliseconds and `Z`; None outside the years 1 to 9999."""
    try:
        at = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return (
        at.strftime("%Y").zfill(4)
        + at.strftime("-%m-%dT%H:%M:%S.")
        + f"{at.microsecond // 1000:03}Z"
    )
