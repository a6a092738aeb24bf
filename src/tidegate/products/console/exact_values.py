"""Keeps values of a row exactly, as msgpack, where a text does not say which value it was: arrays,
structures, and columns that take values of any type. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, cast

import msgspec

from tidegate.results.json_values import text

SHOWN = object()
"""A value that is the text or the bytes of its cell."""
_INTEGER, _JSON, _DECIMAL, _SHOWN = 1, 2, 3, 4
_AS_SHOWN = msgspec.msgpack.Ext(_SHOWN, b"")
_TEXTS = (str, bytes, bytearray, memoryview)
_encode = msgspec.msgpack.Encoder().encode


def pack(values: Sequence[Any]) -> bytes:
    """The values as bytes, which `unpack` makes the same of; `SHOWN` of texts and bytes."""
    return _encode([_AS_SHOWN if isinstance(each, _TEXTS) else _portable(each) for each in values])


def unpack(data: bytes) -> list[Any]:
    """The values that `pack` was given."""
    return _decoder.decode(data)


def _portable(value: Any) -> Any:
    """The value with what msgpack has no form for as an extension."""
    if value is None or isinstance(value, (bool, float, str, bytes)):
        return value
    if isinstance(value, int):
        small = -(2**63) <= value < 2**64
        return value if small else msgspec.msgpack.Ext(_INTEGER, str(int(value)).encode())
    if isinstance(value, msgspec.Raw):
        return msgspec.msgpack.Ext(_JSON, bytes(value))
    if isinstance(value, Decimal):
        return msgspec.msgpack.Ext(_DECIMAL, str(value).encode())
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_portable(key): _portable(inner) for key, inner in items}
    if isinstance(value, (list, tuple)):
        return [_portable(inner) for inner in cast("Sequence[Any]", value)]
    if isinstance(value, (bytearray, memoryview)):
        return bytes(cast("bytearray", value))
    return text(value)


def _extension(code: int, data: memoryview) -> Any:
    if code == _SHOWN:
        return SHOWN
    raw = bytes(data)
    if code == _INTEGER:
        return int(raw)
    return msgspec.Raw(raw) if code == _JSON else Decimal(raw.decode())


_decoder = msgspec.msgpack.Decoder(list[Any], ext_hook=_extension)
