"""Values of a type, read from JSON, from MessagePack, or from plain objects.

msgspec (0.22) keeps what it knows of a class at the class, and puts it there before all of it is
filled in. A thread that reads the class for the first time in that moment follows an empty pointer,
and the process ends (SIGSEGV). So a class is made known here, by one thread at a time, before
anything is read as it. Of types of the language alone (`list[str]`) nothing is kept: msgspec itself
may read them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

Value = TypeVar("Value")

_one_at_a_time = threading.RLock()
"""Can be taken again: to know a class may run code of ours."""

_known: set[Any] = set()
_of_json: dict[Any, Callable[[bytes | str], Any]] = {}
_of_msgpack: dict[Any, Callable[[bytes], Any]] = {}


def make_known(kind: type[Value]) -> type[Value]:
    """Let all threads read values as `kind` with msgspec itself from now on.

    Raises: TypeError if msgspec cannot read the type.
    """
    with _one_at_a_time:
        msgspec.msgpack.Decoder(kind)
    return kind


def json_decoder(kind: type[Value]) -> msgspec.json.Decoder[Value]:
    """A decoder of JSON into `kind`.

    Raises: TypeError if msgspec cannot read the type.
    """
    with _one_at_a_time:
        return msgspec.json.Decoder(kind)


def msgpack_decoder(
    kind: type[Value], ext_hook: Callable[[int, memoryview], Any] | None = None
) -> msgspec.msgpack.Decoder[Value]:
    """A decoder of MessagePack into `kind`; `ext_hook` reads the extension types in it.

    Raises: TypeError if msgspec cannot read the type.
    """
    with _one_at_a_time:
        return msgspec.msgpack.Decoder(kind, ext_hook=ext_hook)


def decode_json(text: bytes | str, kind: type[Value]) -> Value:
    """Read JSON as `kind`, a type that stays for as long as the process.

    Raises: msgspec.ValidationError, msgspec.DecodeError.
    """
    decode = _of_json.get(kind)
    if decode is None:
        decode = _of_json[kind] = json_decoder(kind).decode
    return decode(text)


def decode_msgpack(packed: bytes, kind: type[Value]) -> Value:
    """Read MessagePack as `kind`, a type that stays for as long as the process.

    Raises: msgspec.ValidationError, msgspec.DecodeError.
    """
    decode = _of_msgpack.get(kind)
    if decode is None:
        decode = _of_msgpack[kind] = msgpack_decoder(kind).decode
    return decode(packed)


def convert_value(value: Any, kind: type[Value], *, strict: bool = True) -> Value:
    """Make a `kind`, a type that stays for as long as the process, of plain objects; if not
    `strict`, also of the texts of numbers.

    Raises: msgspec.ValidationError.
    """
    if kind not in _known:
        _known.add(make_known(kind))
    return msgspec.convert(value, kind, strict=strict)
