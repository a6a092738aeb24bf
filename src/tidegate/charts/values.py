"""Cells of a result as what a chart places: numbers, times, and categories. Pure.

A cell is the value of an engine, or the text of one, as results are held. What cannot be placed is
None in the answer and counted: it is said beside the chart.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, cast

from tidegate.charts.bins import Number
from tidegate.model.results import ColumnKind
from tidegate.results.json_values import text

MOST_LABEL = 200
"""Characters of a category that are shown."""
_MOST_POWER = 2_000
_MOST_PLACES = 3_500
"""Of a decimal: the power of ten at its first digit, either way, and the digits after its point.
Any two of them have room beside each other (`bins.EXACT`); no axis has a place beyond."""
_TIME = re.compile(
    r"(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?)?"
    r"(Z|[+-]\d\d(?::?\d\d)?)?"
)
_UTC = datetime.UTC

Category = str | int | float | Decimal | bool | None
"""What a discrete channel shows: equal ones are one place."""


class Misfits:
    """Why cells of one column cannot be placed, and how many."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._counts: Counter[str] = Counter()

    def add(self, why: str) -> None:
        self._counts[why] += 1

    @property
    def nulls(self) -> int:
        return self._counts["NULL"]

    @property
    def others(self) -> list[tuple[str, int]]:
        """What is not NULL, by why."""
        return [(why, count) for why, count in self._counts.items() if why != "NULL"]


def read_numbers(cells: Sequence[Any], kind: ColumnKind, misfits: Misfits) -> list[Number | None]:
    """Each cell as an exact number."""
    if kind == "integer":
        try:
            return list(map(int, cells))
        except (TypeError, ValueError):
            pass
    elif kind == "decimal":
        try:
            found = [each if type(each) is Decimal else Decimal(each) for each in cells]
            if all(map(_has_room, found)):
                return list(found)
        except (TypeError, ValueError, InvalidOperation):
            pass
    elif kind == "float":
        try:
            floats = list(map(float, cells))
            if all(map(isfinite, floats)):
                return list(floats)
        except (TypeError, ValueError):
            pass
    is_number = kind in ("integer", "decimal", "float")
    return [_number(each, kind, misfits, is_number=is_number) for each in cells]


def _number(cell: Any, kind: ColumnKind, misfits: Misfits, *, is_number: bool) -> Number | None:
    if cell is None:
        misfits.add("NULL")
        return None
    value = cell
    if isinstance(cell, str) and is_number:
        try:
            value = float(cell) if kind == "float" else Decimal(cell)
        except (ValueError, InvalidOperation):
            value = cell
        if isinstance(value, Decimal) and kind == "integer" and _has_room(value):
            value = int(value) if value == value.to_integral_value() else value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        misfits.add("not a number")
        return None
    if isinstance(value, int):
        return int(value)
    if not value.is_finite() if isinstance(value, Decimal) else not isfinite(value):
        misfits.add("not a finite number")
        return None
    if isinstance(value, Decimal) and not _has_room(value):
        misfits.add("a number of too many digits")
        return None
    return value


def _has_room(value: Decimal) -> bool:
    """Whether a decimal is finite, and short when all its digits are written: one such as
    `1e999999999` takes a few bytes, and a gigabyte as an integer or a fraction."""
    power = value.as_tuple().exponent
    return (
        isinstance(power, int) and power >= -_MOST_PLACES and abs(value.adjusted()) <= _MOST_POWER
    )


def read_times(
    cells: Sequence[Any], kind: ColumnKind, misfits: Misfits
) -> list[datetime.datetime | None]:
    """Each cell as a moment of UTC, without a zone."""
    if kind in ("date", "timestamp", "timestamp_tz"):
        try:  # all of one form, which the interpreter reads fastest
            found = list(map(datetime.datetime.fromisoformat, cells))
            if all(each.tzinfo is None for each in found):
                return list(found)
            return [each.astimezone(_UTC).replace(tzinfo=None) for each in found]
        except (TypeError, ValueError, OverflowError):
            pass
    return [_moment(each, misfits) for each in cells]


def _moment(cell: Any, misfits: Misfits) -> datetime.datetime | None:
    if cell is None:
        misfits.add("NULL")
        return None
    value = read_moment(cell) if isinstance(cell, str) else cell
    if isinstance(value, datetime.datetime):
        try:
            return value if value.tzinfo is None else value.astimezone(_UTC).replace(tzinfo=None)
        except OverflowError:
            value = None
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    misfits.add("not a time")
    return None


def read_moment(value: str) -> datetime.datetime | None:
    """A moment written as ISO 8601 says, at least with its month; None for any other text."""
    found = _TIME.fullmatch(value)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if zone is not None and hour is None:
        return None
    try:
        moment = datetime.datetime(
            int(year), int(month), int(day or 1), int(hour or 0), int(minute or 0),
            int(second or 0), int((fraction or "0").ljust(6, "0")[:6]),
        )  # fmt: skip
        if zone is None:
            return moment
        minutes = 0 if zone == "Z" else int(zone[1:3]) * 60 + int(zone[-2:] if len(zone) > 3 else 0)
        return moment - datetime.timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    except (ValueError, OverflowError):
        return None


def are_moments(values: Sequence[Any]) -> bool:
    """Whether texts are all moments, of which at least the day is there."""
    return all(
        isinstance(each, str) and len(each) >= 10 and read_moment(each) is not None
        for each in values
    )


def read_categories(cells: Sequence[Any], kind: ColumnKind) -> list[Category]:
    """Each cell as a category. Numbers are one category if they are equal."""
    if kind not in ("integer", "decimal", "float", "other"):
        kinds = set(map(type, cells))
        if kinds <= {str, type(None), bool}:
            return list(cells)
        return [_category(each) for each in cells]
    if kind == "other":
        return [_category(each) for each in cells]
    numbers = read_numbers(cells, kind, Misfits(""))
    return [
        _category(cell) if number is None else number
        for cell, number in zip(cells, numbers, strict=True)
    ]


def _category(cell: Any) -> Category:
    if cell is None or isinstance(cell, (str, bool)):
        return cell
    if isinstance(cell, int):
        return int(cell)
    if isinstance(cell, float):
        return cell if isfinite(cell) else text(cell)
    if isinstance(cell, Decimal):
        return cell if cell.is_finite() else str(cell)
    if isinstance(cell, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", cell)).hex()
    return text(cell)


def in_order(categories: Sequence[Any]) -> list[Any]:
    """NULL, then false and true, numbers, texts."""
    return sorted(categories, key=_rank)


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    return (3, value) if isinstance(value, str) else (2, value)


def label_of(value: Any) -> str:
    """A value as a person reads it."""
    if isinstance(value, str):
        return value if len(value) <= MOST_LABEL else f"{value[:MOST_LABEL]}…"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f") if -1_000 < value.adjusted() < 1_000 else str(value)
    if isinstance(value, datetime.datetime):
        whole = value.isoformat(" ")
        return whole[:10] if whole.endswith(" 00:00:00") else whole
    return str(value)


def place_of(value: Any) -> float | None:
    """Where a number or a time lies: times in milliseconds since 1970. None if it is too large."""
    if value is None:
        return None
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(milliseconds=1)
    try:
        place = float(value)
    except OverflowError:
        return None
    return place if isfinite(place) else None
