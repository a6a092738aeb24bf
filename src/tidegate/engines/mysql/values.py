"""Decides which Python value a value of MySQL becomes. Asks nobody.

DECIMAL                     text, exact: "12.50"
DATE, DATETIME              text: "2026-01-02", "2026-01-02T03:04:05.600000"
TIMESTAMP                   text in UTC: "2026-01-02T03:04:05Z"
what is no date             as the server writes it: "0000-00-00", "2026-02-00 00:00:00"
TIME                        within a day "03:04:05"; else a duration: "-P1DT3600S"
BIT                         an integer
JSON                        JSON; MariaDB has no such type, there it is text
GEOMETRY                    well-known text: "POINT(1 2)"
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from typing import Any, cast

from asyncmy import converters
from msgspec import Raw

from tidegate.engines.mysql.geometry import well_known_text

DAY_S = 86_400

datetime_value: Callable[[bytes], datetime.datetime | str] = cast(
    "Any", converters
).convert_datetime
"""In C; what is no date stays text."""


def datetime_text(text: str) -> str:
    """`2026-01-02 03:04:05.6` as ISO 8601, with six digits or none behind the second."""
    if len(text) < 19 or text[5:7] == "00" or text[8:10] == "00":
        return text
    fraction = text[20:]
    moment = f"{text[:10]}T{text[11:19]}"
    return f"{moment}.{fraction:0<6}" if fraction.strip("0") else moment


def timestamp_text(text: str) -> str:
    """The same of a moment: the session's time zone is UTC."""
    moment = datetime_text(text)
    return moment if moment is text else f"{moment}Z"


def time_text(text: str) -> str:
    """`26:00:00.5` as a duration, `02:00:00` as a time of day."""
    negative = text.startswith("-")
    clock, _, fraction = text.removeprefix("-").partition(".")
    fraction = f"{fraction:0<6}" if fraction.strip("0") else ""
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    if hours < 24 and not negative:
        return f"{hours:02}:{minutes:02}:{seconds:02}{'.' + fraction if fraction else ''}"
    days, rest = divmod(hours * 3600 + minutes * 60 + seconds, DAY_S)
    fraction = fraction.rstrip("0")
    duration = f"{days}D" if days else ""
    if rest or fraction or not days:
        duration += f"T{rest}{'.' + fraction if fraction else ''}S"
    return f"{'-' if negative else ''}P{duration}"


def date_bytes(data: bytes) -> str:
    """A date of the binary protocol, which leaves out what is zero."""
    year, month, day = struct.unpack("<HBB", data[:4].ljust(4, b"\0"))
    return f"{year:04}-{month:02}-{day:02}"


def datetime_bytes(data: bytes) -> datetime.datetime | str:
    """The same of a date with a time of day."""
    try:
        return datetime.datetime.fromisoformat(_moment(data))
    except ValueError:
        return _moment(data)


def timestamp_bytes(data: bytes) -> str:
    """The same of a moment."""
    return timestamp_text(_moment(data))


def _moment(data: bytes) -> str:
    hour, minute, second, micro = struct.unpack("<BBBI", data[4:11].ljust(7, b"\0"))
    return f"{date_bytes(data)} {hour:02}:{minute:02}:{second:02}.{micro:06}"


def time_bytes(data: bytes) -> str:
    """A TIME of the binary protocol."""
    negative, days, hours, minutes, seconds, micro = struct.unpack("<BIBBBI", data.ljust(12, b"\0"))
    sign = "-" if negative else ""
    return time_text(f"{sign}{days * 24 + hours}:{minutes}:{seconds}.{micro:06}")


def single(value: float | None) -> float | None:
    """A FLOAT of the binary protocol as the text protocol writes it: with the fewest digits."""
    if value is None:
        return None
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return float(f"{value:.9g}")


def bits(data: bytes) -> int:
    """A BIT value as an integer."""
    return int.from_bytes(data, "big")


def json_raw(text: str) -> Raw:
    """JSON as the server holds it, on one line; line breaks stand only between its tokens."""
    return Raw(text.replace("\n", " ").replace("\r", " ").encode())


def geometry(data: bytes) -> str | bytes:
    """A shape as well-known text; what cannot be read stays bytes."""
    try:
        return well_known_text(data[4:])
    except (ValueError, struct.error, IndexError):
        return data


Reading = Callable[[Any], Any]

TIMES: dict[int, tuple[Reading | None, Reading]] = {
    7: (timestamp_text, timestamp_bytes),
    10: (None, date_bytes),
    11: (time_text, time_bytes),
    12: (datetime_value, datetime_bytes),
    14: (None, date_bytes),
}
"""By the type's code: how it is read from text, and from the binary protocol."""
