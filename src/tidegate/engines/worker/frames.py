"""The frames between the gate and a worker process: msgpack, each after its length.

The gate sends a `WorkerRequest`, the worker answers with the `WorkerReply` of the same number, one
at a time. Only the request `interrupt` may come while another is being answered; it has no reply
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, TypeVar, cast

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import msgpack_decoder

Body = TypeVar("Body")

HEADER = Struct("<I")
MOST_BYTES = 134_217_728
"""The largest frame; a worker that has more to send sends an error instead."""

INTERRUPT = "interrupt"

_BIG_INTEGER = 1
"""The extension type of integers beyond 64 bits: their digits."""

_JSON = 2
"""The extension type of JSON as it is in the database."""


class WorkerRequest(msgspec.Struct, frozen=True, array_like=True):
    """What the gate asks. `number` counts up, `body` is packed as `verb` wants it."""

    number: int
    verb: str
    body: msgspec.Raw = msgspec.Raw(b"\xc0")


class Fault(msgspec.Struct, frozen=True, array_like=True):
    """A TidegateError on its way."""

    code: str
    message: str
    hint: str
    details: dict[str, Any] = {}

    @classmethod
    def of(cls, error: TidegateError) -> Fault:
        return cls(error.code.value, error.message, error.hint, error.details)

    def error(self) -> TidegateError:
        return TidegateError(Code(self.code), self.message, hint=self.hint, details=self.details)


class WorkerReply(msgspec.Struct, frozen=True, array_like=True):
    """The answer to the request of the same number: a fault, or a body."""

    number: int
    fault: Fault | None
    body: msgspec.Raw = msgspec.Raw(b"\xc0")


_encode = msgspec.msgpack.Encoder(decimal_format="string").encode


def pack(value: Any) -> msgspec.Raw:
    """A value as msgpack. Integers may have any size. Raises: TypeError for a foreign type."""
    try:
        return msgspec.Raw(_encode(value))
    except OverflowError:
        plain = msgspec.to_builtins(value, builtin_types=_KEPT)
        return msgspec.Raw(_encode(portable(plain)))


_decoders: dict[Any, Callable[[msgspec.Raw], Any]] = {}


def unpack(raw: msgspec.Raw, kind: type[Body]) -> Body:
    """A value of the given type. Raises: msgspec.ValidationError, msgspec.DecodeError."""
    decode = _decoders.get(kind)
    if decode is None:
        decode = _decoders[kind] = msgpack_decoder(kind, ext_hook=_extension).decode
    return decode(raw)


def frame(message: WorkerRequest | WorkerReply) -> bytes:
    """The message after its length."""
    content = _encode(message)
    return HEADER.pack(len(content)) + content


_KEPT = (bytes, bytearray)


def portable(value: Any) -> Any:
    """The value with what msgpack has no form for as an extension: large integers, and JSON."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(_BIG_INTEGER, str(value).encode())
    if isinstance(value, msgspec.Raw):
        return msgspec.msgpack.Ext(_JSON, bytes(value))
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {portable(key): portable(inner) for key, inner in items}
    if isinstance(value, (list, tuple)):
        return [portable(inner) for inner in cast("list[Any]", value)]
    return value


def _extension(code: int, data: memoryview) -> Any:
    if code == _BIG_INTEGER:
        return int(bytes(data))
    if code == _JSON:
        return msgspec.Raw(bytes(data))
    raise ValueError(f"an unknown extension type, {code}")
