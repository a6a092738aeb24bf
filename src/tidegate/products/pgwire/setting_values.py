"""The values that PostgreSQL's settings take, and how it shows them. Pure.

Source: PostgreSQL documentation, "Setting Parameters", "Parameter Names and Values".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite

from tidegate.errors import TidegateError
from tidegate.products.pgwire.errors import refused

_MOST_INTEGER = 2**31 - 1
_LONGEST_NAME = 63
"""Bytes that PostgreSQL keeps of a name."""

_BOOLEANS = {"true": "on", "false": "off", "yes": "on", "no": "off", "1": "on", "0": "off"}
_NUMBER = re.compile(
    r"\s*([+-]?)(0x[0-9a-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)\s*([A-Za-z]*)\s*",
    re.ASCII | re.IGNORECASE,
)
_UNITS_US = (
    ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000),
    ("ms", 1_000), ("us", 1),
)  # fmt: skip
"""Units of a time, each with its microseconds; the largest first."""

MESSAGE_LEVELS = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
)  # fmt: skip
_LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")
_STYLES = ("postgres", "postgres_verbose", "sql_standard", "iso_8601")


def boolean(text: str) -> str | None:
    """`on` or `off`; None for what is neither. The words may be shortened."""
    key = text.lower()
    if key in ("on", "off", "of"):
        return "on" if key == "on" else "off"
    words = [shown for word, shown in _BOOLEANS.items() if key and word.startswith(key)]
    return words[0] if len(words) == 1 else None


def is_on(text: str) -> bool:
    """Whether a text means that a setting is on."""
    return boolean(text) == "on"


def whole_number(text: str, *, is_time: bool = False) -> int | None:
    """A number as settings read it, rounded; of a time in milliseconds. None for other text, or
    one that PostgreSQL cannot hold."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, digits, unit = found.groups()
    try:
        value = float(int(digits, 0 if digits[1:2] in "xX" else 8) if _is_octal(digits) else digits)
    except ValueError:
        return None
    if unit:
        sizes = dict(_UNITS_US)
        if not is_time or unit not in sizes:
            return None
        smaller = [size for _, size in _UNITS_US if size < sizes[unit] and size >= sizes["ms"]]
        value *= sizes[unit] / 1_000
        if smaller:  # a part of a unit counts in whole units of the next smaller one
            step = smaller[0] / 1_000
            value = round(value / step) * step if isfinite(value) else value
    value = -value if sign == "-" else value
    if not isfinite(value) or not -_MOST_INTEGER - 1 <= round(value) <= _MOST_INTEGER:
        return None
    return round(value)


def _is_octal(digits: str) -> bool:
    """Whether digits are read as C reads them: in base 16 or 8."""
    return digits[1:2].lower() == "x" or (digits.isdecimal() and digits.startswith("0"))


def milliseconds(text: str) -> int:
    """A time limit: `1500`, `30s`, `2min`. Raises: TidegateError 22023."""
    found = whole_number(text, is_time=True)
    if found is None or found < 0:
        hint = 'Write it as in 30s; the units are "us", "ms", "s", "min", "h" and "d".'
        raise refused("22023", f"{text[:40]!r} is no time limit.", hint)
    return found


def time_shown(time_ms: int) -> str:
    """A time as PostgreSQL shows it: in the largest unit of which it is a whole number."""
    for unit, size in _UNITS_US[:-1]:
        if time_ms and time_ms * 1_000 % size == 0:
            return f"{time_ms * 1_000 // size}{unit}"
    return "0"


def kept_name(text: str) -> str:
    """As much of a name as PostgreSQL keeps."""
    return text.encode()[:_LONGEST_NAME].decode(errors="ignore")


def clean_name(text: str, version: int) -> str:
    """A name in ASCII, as a server of that version writes application_name."""
    encoded = kept_name(text).encode()
    other = "?" if version < 160_000 else ""
    return "".join(
        [chr(byte) if 32 <= byte < 127 else other or f"\\x{byte:02x}" for byte in encoded]
    )


def encoding(text: str) -> str | None:
    """The name of an encoding of clients that this server writes; None for another one. psql asks
    for SQL_ASCII where no language is set: PostgreSQL converts nothing then."""
    key = re.sub("[^a-z0-9]", "", text.lower())
    return "UTF8" if key in ("utf8", "unicode", "sqlascii") else None


def _word_of(*words: str, **others: str) -> Callable[[str], str | None]:
    known = {word: word for word in words} | others
    return lambda text: known.get(text.lower())


def _integer(least: int, most: int) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        found = whole_number(text)
        return None if found is None or not least <= found <= most else str(found)

    return read


_TIME: Callable[[str], str | None] = lambda text: time_shown(milliseconds(text))  # noqa: E731

_READERS: dict[str, Callable[[str], str | None]] = {
    "bytea_output": _word_of("hex", "escape"),
    "client_encoding": encoding,
    "client_min_messages": _word_of(*MESSAGE_LEVELS, debug="debug2", info="info"),
    "default_transaction_isolation": _word_of(*_LEVELS),
    "default_transaction_read_only": boolean,
    "extra_float_digits": _integer(-15, 3),
    "idle_in_transaction_session_timeout": _TIME,
    "intervalstyle": _word_of(*_STYLES),
    "jit": boolean,
    "lock_timeout": _TIME,
    "row_security": boolean,
    "standard_conforming_strings": boolean,
    "statement_timeout": _TIME,
    "synchronize_seqscans": boolean,
    "transaction_isolation": _word_of(*_LEVELS),
    "transaction_read_only": boolean,
}


def shown_as(name: str, value: str) -> str:
    """The value of a setting as PostgreSQL shows it; itself where the setting is not listed here.
    Raises: TidegateError 22023 for one that the setting cannot have."""
    read = _READERS.get(name)
    if read is None:
        return value
    try:
        found = read(value)
    except TidegateError as error:
        error.message = f'Invalid value for parameter "{name}": {error.message}'
        raise
    if found is None:
        raise refused(
            "22023", f'Invalid value for parameter "{name}": {value[:80]!r}.', _HINTS.get(name)
        )
    return found


_HINTS = {
    "client_min_messages": f"It is one of {', '.join(MESSAGE_LEVELS)}.",
    "client_encoding": "Everything is written in UTF8 here.",
    "default_transaction_isolation": f"It is one of {', '.join(_LEVELS)}.",
    "transaction_isolation": f"It is one of {', '.join(_LEVELS)}.",
    "extra_float_digits": "It is a number from 1 to 3 here.",
    **dict.fromkeys(
        [name for name, read in _READERS.items() if read is boolean], "It is on or off."
    ),
}
