"""Decides what a type of MySQL is called and how its values are read, from a column's definition.

Every type has two readings: of the text protocol, by which statements without parameters run, and
of the binary protocol, by which prepared ones do. Both give the same Python value.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tidegate.engines.faults import lost
from tidegate.engines.mysql import values
from tidegate.engines.mysql.line import Specs
from tidegate.pages import Column

BINARY = 63
"""The character set of what is not text."""

_MOST_BYTES_PER_CHARACTER = 4
_UNSIGNED, _ENUM, _SET = 32, 256, 2048

_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_NAMED = {4: "float", 5: "double", 6: "null", 13: "year", 245: "json", 255: "geometry"}
_TIMES = {7: "timestamp", 10: "date", 11: "time", 12: "datetime", 14: "date"}
_STRINGS = {15: "varchar", 253: "varchar", 254: "char"}
_BLOBS = (249, 250, 251, 252)
_SIZES = ((255, "tiny"), (65_535, ""), (16_777_215, "medium"))

_AS_BYTES = (0, None, None)
_AS_TEXT = (1, "utf8", None)
_AS_ASCII = (2, "ascii", None)
_STRING = 253
"""The code under which the driver takes a value with a length before it, and hands over its bytes:
so temporal values of the binary protocol come to `values.py` as they are, also those that are no
dates."""


class Field(msgspec.Struct, frozen=True):
    """A column of a result, and how its values are read in either protocol."""

    column: Column
    text: tuple[object, ...]
    binary: tuple[object, ...]


@lru_cache(maxsize=4096)
def read_field(definition: bytes) -> Field:
    """What a column definition says. Raises: IndexError, ValueError if it says nothing."""
    parts: list[bytes] = []
    at = 0
    for _ in range(6):
        size = definition[at]
        width = {0xFC: 2, 0xFD: 3}.get(size, 0)
        if width:
            size = int.from_bytes(definition[at + 1 : at + 1 + width], "little")
        at += 1 + width
        parts.append(definition[at : at + size])
        at += size
    at += 1
    charset = int.from_bytes(definition[at : at + 2], "little")
    length = int.from_bytes(definition[at + 2 : at + 6], "little")
    code = definition[at + 6]
    flags = int.from_bytes(definition[at + 7 : at + 9], "little")
    scale = definition[at + 9]
    name = _name(code, flags, length, scale, charset == BINARY)
    text, binary = _readings(code, flags, charset == BINARY)
    return Field(Column(parts[4].decode("utf-8", "replace"), name), text, binary)


def read_fields(definitions: tuple[bytes, ...]) -> tuple[tuple[Column, ...], Specs, Specs]:
    """The columns of a result, and how to read its rows by text and by the binary protocol.

    Raises: GateError SOURCE_UNREACHABLE if the definitions make no sense.
    """
    try:
        fields = [read_field(definition) for definition in definitions]
    except (IndexError, ValueError) as error:
        raise lost() from error
    return (
        tuple([field.column for field in fields]),
        tuple([field.text for field in fields]),
        tuple([field.binary for field in fields]),
    )


def _name(code: int, flags: int, length: int, scale: int, is_binary: bool) -> str:
    unsigned = " unsigned" if flags & _UNSIGNED else ""
    if code in _INTEGERS:
        width = "(1)" if code == 1 and length == 1 else ""
        return _INTEGERS[code] + width + unsigned
    if code in _NAMED:
        return _NAMED[code] + (unsigned if code in (4, 5) else "")
    if code in _TIMES:
        return _TIMES[code] + (f"({scale})" if code != 10 and 1 <= scale <= 6 else "")
    if code in (0, 246):
        digits = length - (0 if unsigned else 1) - (1 if scale else 0)
        return f"decimal({digits},{scale}){unsigned}"
    if code == 16:
        return f"bit({length})"
    if flags & _ENUM or code == 247:
        return "enum"
    if flags & _SET or code == 248:
        return "set"
    if code in _BLOBS:
        size = length if is_binary else length // _MOST_BYTES_PER_CHARACTER
        prefix = next((prefix for most, prefix in _SIZES if size <= most), "long")
        return prefix + ("blob" if is_binary else "text")
    if code in _STRINGS:
        name = _STRINGS[code]
        if is_binary:
            return f"{'binary' if name == 'char' else 'varbinary'}({length})"
        return f"{name}({length // _MOST_BYTES_PER_CHARACTER})"
    return ""


def _readings(
    code: int, flags: int, is_binary: bool
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    unsigned = bool(flags & _UNSIGNED)
    if code in _INTEGERS or code == 13:
        as_integer = (0, None, int)
        return as_integer, (code, unsigned, *as_integer)
    if code == 5:
        return (0, None, float), (code, False, 0, None, float)
    if code == 4:
        return (0, None, float), (code, False, 0, None, None)
    if code in (0, 246):
        return _AS_ASCII, (_STRING, False, *_AS_ASCII)
    if code in _TIMES:
        by_text, by_bytes = values.TIMES[code]
        reading = (0, None, by_text) if code == 12 else (2, "ascii", by_text)
        return reading, (_STRING, False, 0, None, by_bytes)
    if code == 16:
        reading = (0, None, values.bits)
    elif code == 245:
        reading = (1, "utf8", values.json_raw)
    elif code == 255:
        reading = (0, None, values.geometry)
    else:
        reading = _AS_BYTES if is_binary else _AS_TEXT
    return reading, (_STRING, False, *reading)


def single_places(definitions: tuple[bytes, ...]) -> tuple[int, ...]:
    """Where the FLOAT columns are: by the binary protocol they come as longer doubles."""
    return tuple(
        place
        for place, definition in enumerate(definitions)
        if read_field(definition).binary[0] == 4
    )
