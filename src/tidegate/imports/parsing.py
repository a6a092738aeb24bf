"""Reads texts as values of kinds: numbers with a decimal comma, dates in an order. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

from tidegate.imports.model import DateOrder, Reading
from tidegate.model.editing import EditColumn

Parser = Callable[[str], Any]
"""The value of a text. Raises: ValueError, which says what is wanted."""
_WHOLE = re.compile(r"[-+]?[0-9]+")
_POINT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_PLAIN = {
    "integer": re.compile(r"-?[0-9]{1,18}(?:\n-?[0-9]{1,18})*"),
    "decimal": re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:\n-?[0-9]+(?:\.[0-9]+)?)*"),
}
_PLAIN["float"] = _PLAIN["decimal"]
"""Several numbers, one in each line."""
_GROUPED = {
    ".": re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?"),
    ",": re.compile(r"[-+]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?"),
}
_COMMA = re.compile(r"[-+]?(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_ISO = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_DATE = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?")
_MOMENT = re.compile(
    r"([0-9./-]{8,10})(?:[T ]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)"
    r" ?(Z|UTC|[-+][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_NO_NUMBER = re.compile(r"nan|[-+]?inf(?:inity)?", re.IGNORECASE)
_FAR = re.compile(
    r"[-+]?infinity"
    r"|(?:[0-9]{5,7}-[0-9]{2}-[0-9]{2}|[0-9]{4}-(?:00-[0-9]{2}|[0-9]{2}-00)"
    r"|(?=.*BC)[0-9]{4,7}-[0-9]{2}-[0-9]{2}(?: \(BC\))?)"
    r"(?: [0-9]{2}:[0-9]{2}:[0-9.]+(?:[-+][0-9:]+)?)?(?: BC)?",
    re.IGNORECASE,
)
_OWN_WORDS = {
    "decimal": _NO_NUMBER,
    "float": _NO_NUMBER,
    "date": _FAR,
    "timestamp": _FAR,
    "timestamp_tz": _FAR,
    "time": re.compile(
        r"-?[0-9]{2,3}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
        r"(?:[-+][0-9]{2}(?::[0-9]{2}){0,2})?"
    ),
}
"""What databases write of their own values: NaN, infinity, dates far away, BC or with zeros, times
with a zone or over a day. Whether it is a value of a column is theirs to say."""
_HEX = re.compile(r"(?:\\x|0x)?((?:[0-9A-Fa-f]{2})*)")
_TRUE = frozenset({"true", "t", "yes", "y", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "0"})
_DAYS = 4_096
"""Days and times of day that are remembered: in most files they are the same again and again."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_ORDERS: dict[DateOrder, tuple[int, int]] = {"dmy": (1, 0), "mdy": (0, 1), "ymd": (1, 0)}
"""Where month and day are, of two that come before a year."""


def parse_number(text: str, decimal: str) -> str:
    """A number with a decimal point, without groups. Raises: ValueError."""
    plain = _POINT if decimal == "." else _COMMA
    if plain.fullmatch(text):
        return text.replace(",", ".")
    text = text.strip()
    if _GROUPED[decimal].fullmatch(text):
        text = text.replace("," if decimal == "." else ".", "")
        return text.replace(",", ".")
    if plain.fullmatch(text):
        return text.replace(",", ".")
    raise ValueError("a number")


def parse_whole(text: str, decimal: str) -> str:
    """A whole number. Raises: ValueError."""
    if text.isascii() and text.isdigit():  # by far the most of them
        return text
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return text
    with_groups = _GROUPED[decimal].fullmatch(text)
    digits = re.sub("[.,]", "", text)
    if with_groups and decimal not in text and _WHOLE.fullmatch(digits):
        return digits
    raise ValueError("a whole number")


def parse_boolean(text: str) -> bool:
    """Raises: ValueError."""
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("true or false")


@lru_cache(maxsize=_DAYS)
def parse_date(text: str, order: DateOrder) -> str:
    """A date as ISO 8601 has it; with the year first it is read in no other order. Raises:
    ValueError."""
    text = text.strip()
    found = _ISO.fullmatch(text)
    if found is not None:
        year, month, day = found[1], found[3], found[4]
    else:
        found = _DATE.fullmatch(text)
        if found is None:
            raise ValueError("a date")
        year, two = found[4], (found[1], found[3])
        month, day = two[_ORDERS[order][0]], two[_ORDERS[order][1]]
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        raise ValueError("a date that there is, in the order of day and month") from None


@lru_cache(maxsize=_DAYS)
def parse_time(text: str) -> str:
    """Raises: ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        raise ValueError("a time of day")
    fraction = f".{found[4]}" if found[4] else ""
    return f"{int(found[1]):02}:{found[2]}:{found[3] or '00'}{fraction}"


def parse_moment(text: str, order: DateOrder, *, zoned: bool = False) -> str:
    """A date with a time of day, with a zone where there is one. Raises: ValueError."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError("a date and a time")
    day, time, zone = found.groups()
    moment = f"{parse_date(day, order)} {parse_time(time or '00:00')}"
    if zone and not zoned:
        raise ValueError("a date and a time without a zone")
    if not zone:
        return moment
    return moment + ("+00:00" if zone in ("Z", "UTC") else zone)


def parse_bytes(text: str) -> bytes:
    """Raises: ValueError."""
    found = _HEX.fullmatch(text.strip())
    if found is None:
        raise ValueError("bytes in hexadecimal, such as 00ff")
    return bytes.fromhex(found[1])


def read_plain(values: list[str], column: EditColumn, reading: Reading) -> list[Any] | None:
    """The values of some texts of one column, where all of them are numbers written plainly or
    short texts; None where each has to be read by itself."""
    if column.editor == "text" and not column.labels:
        fits = column.classes or column.length is None or max(map(len, values)) <= column.length
        return values if fits else None
    number = _PLAIN.get(column.editor)
    if number is None or reading.decimal != ".":
        return None
    lines = "\n".join(values)
    # A text with a line end of its own would be taken for two.
    if lines.count("\n") != len(values) - 1 or not number.fullmatch(lines):
        return None
    if not column.classes or column.editor == "decimal":
        return values
    return list(map(int if column.editor == "integer" else float, values))


def parser_of(column: EditColumn, reading: Reading) -> Parser | None:
    """What reads the texts of a file for a column of a table; None where each text is a value."""
    parse, own = _parser_of(column, reading), _OWN_WORDS.get(column.editor)
    if parse is None or own is None or (column.classes and column.editor != "float"):
        return parse

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            word = text.strip()
            if not own.fullmatch(word) or (column.classes and word.lower() == "nan"):
                raise
            return float(word) if column.classes else word

    return read


def _parser_of(column: EditColumn, reading: Reading) -> Parser | None:
    classes, decimal, order = column.classes, reading.decimal, reading.dates
    match column.editor:
        case "integer" if column.type.lower() == "tinyint(1)":
            return lambda text: _parse_bit(text, decimal)
        case "integer":
            return (
                (lambda text: _of_64_bits(parse_whole(text, decimal)))
                if classes
                else lambda text: parse_whole(text, decimal)
            )
        case "decimal":
            return lambda text: parse_number(text, decimal)
        case "float":
            return (
                (lambda text: float(parse_number(text, decimal)))
                if classes
                else lambda text: parse_number(text, decimal)
            )
        case "boolean":
            return (
                (lambda text: int(parse_boolean(text)))
                if classes
                else lambda text: "true" if parse_boolean(text) else "false"
            )
        case "date":
            return lambda text: parse_date(text, order)
        case "time":
            return parse_time
        case "timestamp":
            return lambda text: parse_moment(text, order)
        case "timestamp_tz":
            return lambda text: parse_moment(text, order, zoned=True)
        case "bytes":
            return parse_bytes
        case _:
            return _checked(column)


def _parse_bit(text: str, decimal: str) -> str:
    """A value of MySQL's BOOLEAN, a number of which true is 1. Raises: ValueError."""
    bit = {"true": "1", "false": "0"}.get(text.strip().lower())
    return parse_whole(text, decimal) if bit is None else bit


def _of_64_bits(text: str) -> int:
    whole = int(text) if len(text) <= 20 else _LARGEST + 1
    if not _SMALLEST <= whole <= _LARGEST:
        raise ValueError("a whole number of 64 bits")
    return whole


def _checked(column: EditColumn) -> Parser | None:
    """A text as it is, if it is one of the labels and not too long."""
    labels, length = frozenset(column.labels), column.length
    if column.editor == "enum":

        def find(text: str) -> str:
            if text not in labels:
                raise ValueError("one of its values")
            return text

        return find
    if length is None or column.classes:  # SQLite takes a text of any length
        return None

    def check(text: str) -> str:
        if len(text) > length:
            raise ValueError(f"a text of at most {length:,} characters")
        return text

    return check
