"""Writes a value as EDN. What it writes, `reader.read` reads back as an equal value. Pure."""

from __future__ import annotations

import math
from decimal import Decimal
from uuid import UUID

from tidegate.products.datalog.language.instants import format_instant
from tidegate.products.datalog.language.values import (
    BigInteger,
    Character,
    Instant,
    Keyword,
    List,
    Map,
    Set,
    Symbol,
    Value,
    Vector,
)

_ESCAPES = {
    "\t": "\\t",
    "\r": "\\r",
    "\n": "\\n",
    "\b": "\\b",
    "\f": "\\f",
    "\\": "\\\\",
    '"': '\\"',
}
_CHARACTERS = {
    "\n": "\\newline", " ": "\\space", "\t": "\\tab", "\b": "\\backspace", "\f": "\\formfeed",
    "\r": "\\return",
}  # fmt: skip


def write(value: Value) -> str:
    """The value as EDN. Raises: ValueError for bytes and for a time outside the years 1 to 9999,
    which EDN has no form for."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double(value)
        case str():
            return _string(value)
        case Decimal():
            return f"{value}M"
        case BigInteger(number):
            return f"{number}N"
        case Keyword(name):
            return f":{name}"
        case Symbol(name):
            return name
        case Character(text):
            return _character(text)
        case Instant(milliseconds):
            at = format_instant(milliseconds)
            if at is None:
                raise ValueError("The time is outside the years 1 to 9999")
            return f'#inst "{at}"'
        case UUID():
            return f'#uuid "{value}"'
        case Vector(items):
            return f"[{' '.join(map(write, items))}]"
        case List(items):
            return f"({' '.join(map(write, items))})"
        case Set(items):
            return f"#{{{' '.join(map(write, items))}}}"
        case Map(pairs):
            inner = " ".join(f"{write(key)} {write(each)}" for key, each in pairs)
            return f"{{{inner}}}"
        case bytes():
            raise ValueError("EDN has no form for bytes")


def _double(value: float) -> str:
    if math.isnan(value):
        return "##NaN"
    if math.isinf(value):
        return "##Inf" if value > 0 else "##-Inf"
    return repr(value)


def _string(value: str) -> str:
    return '"' + "".join(_ESCAPES.get(each, each) for each in value) + '"'


def _character(text: str) -> str:
    if text in _CHARACTERS:
        return _CHARACTERS[text]
    code = ord(text)
    if code < 0x21 or 0x7F <= code < 0xA1:
        return f"\\u{code:04x}"
    return f"\\{text}"
