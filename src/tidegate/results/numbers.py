"""Writes numbers the short way, alike for every engine: exact, and without idle zeros.

    42.0000000000000000       42
    12.50                     12.5
    55.99                     55.99
    0.1234567890123456789     "0.1234567890123456789": a double cannot hold it
    42.0 (floating point)     42

A decimal becomes a JSON number if the double nearest to it, written with the fewest digits that
tell it from other doubles, is that decimal again; otherwise it stays text. Where one answer is
read as a whole, `unify_numbers` makes all of a column text then: a reader compares and adds what is
of one kind. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from operator import is_, itemgetter
from typing import Any, cast

import msgspec

from tidegate.model.decimals import plain
from tidegate.model.results import Column, Page
from tidegate.results.json_values import (
    COLUMNWISE_ROWS,
    MAX_SAFE_INTEGER,
    Rows,
    append_ordinary_rows,
    append_rows,
    have_floats_only_at,
)

_SURE_DIGITS = 15
"""A decimal of so many digits survives being a double."""


_LONG_FIRST = re.compile(rb'\["[-\d.]{16}')
_LONG_LATER = re.compile(rb',"[-\d.]{16}')
"""How a number that is text may begin, in the first column and in later ones."""
_LONG = re.compile(rb'"[-\d.]{16}')
_SHORT = 1_024
"""Bytes of rows that are searched for both at once before their columns are checked."""
_rows = msgspec.json.Decoder(list[list[msgspec.Raw]])


def unify_numbers(page: Page) -> bytes:
    """The rows of a page that was written the short way, in which each column of exact numbers is
    numbers, or is texts if one of them is too long for a number."""
    columns, rows = page.columns, page.rows
    if page.has_plain_numbers:
        return rows
    if len(rows) <= _SHORT and _LONG.search(rows) is None:
        return rows
    places = [place for place, each in enumerate(columns) if each.kind in ("decimal", "integer")]
    if not places:
        return rows
    is_first = places[0] == 0 and _LONG_FIRST.search(rows) is not None
    if not is_first and (places[-1] == 0 or _LONG_LATER.search(rows) is None):
        return rows
    decoded = _rows.decode(rows)
    changed = False
    for place in places:
        first = {bytes(row[place])[:1] for row in decoded}
        if b'"' in first and first - {b'"', b"n"}:
            changed = True
            for row in decoded:
                value = bytes(row[place])
                if value[:1] not in (b'"', b"n"):
                    row[place] = msgspec.Raw(b'"' + value + b'"')
    return msgspec.json.encode(decoded) if changed else rows


def decimal_places(columns: Sequence[Column]) -> list[int]:
    """The places of the columns whose texts are decimals."""
    return [place for place, column in enumerate(columns) if column.kind == "decimal"]


def integer_places(columns: Sequence[Column]) -> frozenset[int]:
    """The places of the columns of integers. Some databases keep texts among them."""
    return frozenset([place for place, column in enumerate(columns) if column.kind == "integer"])


def append_short_rows(
    buffer: bytearray, rows: Rows, decimals: Sequence[int], integers: frozenset[int]
) -> bool:
    """Write rows as a JSON array of arrays after what the buffer holds, their numbers the short
    way; the texts at `decimals` are numbers. Returns whether every number, and every value of the
    columns of `integers`, is sure to be written as a number."""
    if not decimals:
        floats = _float_places(rows)
        if have_floats_only_at(rows, floats, integers):
            shortened = _shorten_floats(rows, floats)
            if shortened is not None:
                append_ordinary_rows(buffer, shortened)
                return True
    append_rows(buffer, shorten_rows(rows, decimals))
    return False


def _float_places(rows: Rows) -> frozenset[int]:
    """Where the first and the last row have floats, and so the others as a rule."""
    ends = (rows[0],) if len(rows) == 1 else (rows[0], rows[-1])
    return frozenset(
        [place for row in ends for place, value in enumerate(row) if type(value) is float]
    )


def _shorten_floats(rows: Rows, floats: frozenset[int]) -> Rows | None:
    """The rows with whole numbers in the place of floats that are whole. None for a Decimal."""
    shortened: list[Sequence[Any]] | None = None
    for place in floats:
        for number, value in enumerate(map(itemgetter(place), rows)):
            if type(value) is not float:
                if type(value) is Decimal:
                    return None
            elif value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
                if shortened is None:
                    shortened = list(rows)
                row = list(shortened[number])
                row[place] = int(value)
                shortened[number] = row
    return rows if shortened is None else shortened


def shorten_rows(rows: Rows, decimals: Sequence[int]) -> Rows:
    """The rows with their numbers written the short way; the texts at `decimals` are numbers."""
    if len(rows) < COLUMNWISE_ROWS:
        # Most results are a row or two: to turn them into columns would cost more than to look.
        shown = [_shorten_row(row, decimals) for row in rows]
        return rows if all(map(is_, shown, rows)) else shown
    changed = False
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place, column in enumerate(columns):
        if place in decimals:
            columns[place] = [_shorten(value) for value in column]
            changed = True
            continue
        kinds = set(map(type, column))
        if float in kinds or Decimal in kinds:
            columns[place] = [value if type(value) is str else _shorten(value) for value in column]
            changed = True
    return list(zip(*columns, strict=True)) if changed else rows


def _shorten_row(row: Sequence[Any], decimals: Sequence[int]) -> Sequence[Any]:
    """The row itself, if nothing in it has a shorter form."""
    shortened: list[Any] | None = None
    for place, value in enumerate(row):
        kind = cast("type[object]", type(value))
        if kind is float:
            if not value.is_integer():
                continue
        elif kind is not Decimal and place not in decimals:
            continue
        if shortened is None:
            shortened = list(row)
        shortened[place] = _shorten(value)
    return row if shortened is None else shortened


def _shorten(value: Any) -> Any:
    kind = cast("type[object]", type(value))
    if kind is float:
        return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value
    if kind is str:
        return shorten(value)
    if kind is Decimal:
        return shorten(plain(value)) if value.is_finite() else str(value)
    return value


def shorten(text: str) -> int | float | str:
    """A decimal's text, in plain notation, as the shortest thing that is exactly it.

    What is no such text (`NaN`, `Infinity`, `1e5`) stays as it is.
    """
    digits = text.removeprefix("-")
    whole, _, fraction = digits.partition(".")
    if not (whole + fraction).isdecimal() or not digits.isascii():
        return text
    fraction = fraction.rstrip("0")
    if not fraction:
        number = int(text.partition(".")[0] or "0")
        return number if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else str(number)
    whole = whole.lstrip("0")
    sign = "-" if text.startswith("-") else ""
    plain = f"{sign}{whole or '0'}.{fraction}"
    near = float(plain)
    if len(whole) + len(fraction) <= _SURE_DIGITS or (isfinite(near) and repr(near) == plain):
        return near
    return plain
