"""OTLP's request for logs (opentelemetry/proto/collector/logs/v1) as protobuf, and its answer.

Few messages of few fields, so no library is needed for them; the tests read what is written here by
OpenTelemetry's own definitions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

_fixed64 = struct.Struct("<Q").pack


def varint(value: int) -> bytes:
    """A number in base 128, the least significant group first."""
    if value < 0x80:
        return bytes((value,))
    groups = bytearray()
    while value > 0x7F:
        groups.append(0x80 | value & 0x7F)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def field(number: int, content: bytes) -> bytes:
    """A field that has a length: a message or a text."""
    return b"%b%b%b" % (varint(number << 3 | 2), varint(len(content)), content)


def attribute(name: str, value: bytes) -> bytes:
    """`KeyValue` with a text."""
    return field(1, name.encode()) + field(2, field(1, value))


def log_record(
    time_ns: int,
    severity: int,
    name: str,
    body: bytes,
    attributes: Iterable[bytes],
    trace_id: bytes = b"",
) -> bytes:
    """`LogRecord`, as a field of `ScopeLogs`."""
    parts = [
        b"\x09", _fixed64(time_ns), b"\x10", varint(severity), field(5, field(1, body)),
        *(field(6, each) for each in attributes), field(9, trace_id) if trace_id else b"",
        b"\x59", _fixed64(time_ns), field(12, name.encode()),
    ]  # fmt: skip
    return field(2, b"".join(parts))


def export_request(
    resource: Mapping[str, str], scope: str, version: str, records: Iterable[bytes]
) -> bytes:
    """`ExportLogsServiceRequest` with records of one resource and scope."""
    named = field(1, scope.encode()) + field(2, version.encode())
    about = b"".join(field(1, attribute(name, text.encode())) for name, text in resource.items())
    logs = b"".join((field(1, named), *records))
    return field(1, field(1, about) + field(2, logs))


def rejected_in(answer: bytes) -> tuple[int, str]:
    """What `ExportLogsServiceResponse` says was thrown away: how many, and why. Raises:
    ValueError, IndexError for what is no such message."""
    for number, value in _fields(answer):
        if number == 1 and isinstance(value, bytes):
            found = dict(_fields(value))
            count, why = found.get(1, 0), found.get(2, b"")
            if isinstance(count, int) and isinstance(why, bytes):
                return count, why.decode("utf-8", "replace")
    return 0, ""


def _fields(message: bytes) -> Iterable[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _read_varint(message, at)
            yield tag >> 3, value
        elif kind == 2:
            size, at = _read_varint(message, at)
            if at + size > len(message):
                raise ValueError("a field ends after its message")
            yield tag >> 3, message[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number of more than 64 bits")
