"""Rows in a file, some at a time: parts of msgpack, each after its length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, cast

import msgspec

from tidegate.imports.model import Record, Unreadable, Value
from tidegate.imports.open_file import Readable, read_part
from tidegate.typed_values import convert_value, decode_msgpack

_LENGTH = 4
MOST_PART = 67_108_864


class Writable(Protocol):
    """What takes bytes at its end."""

    def write(self, data: bytes, /) -> Any: ...


class Head(msgspec.Struct, omit_defaults=True):
    """What is known of a file before its rows."""

    names: list[str] = []
    types: list[str] = []
    sheets: list[str] = []
    sheet: str = ""
    error: str = ""


def write_part(out: Writable, part: Any) -> int:
    """Write one part; how many bytes it takes."""
    return write_encoded(out, msgspec.msgpack.encode(part))


def write_encoded(out: Writable, data: bytes) -> int:
    """The same for what is encoded."""
    out.write(len(data).to_bytes(_LENGTH, "big") + data)
    return len(data) + _LENGTH


def read_parts(file: Readable, at: int = 0) -> Iterator[bytes]:
    """The parts of an open file, encoded. Raises: Unreadable for what was cut off."""
    while True:
        head = read_part(file, _LENGTH, at)
        if not head:
            return
        size = int.from_bytes(head, "big")
        data = read_part(file, size, at + _LENGTH) if size <= MOST_PART else b""
        if len(head) < _LENGTH or len(data) < size or size > MOST_PART:
            raise Unreadable("it was not read to its end")
        at += _LENGTH + size
        yield data


class ExtractedRecords:
    """The rows that `extraction` has read (`model.Records`)."""

    def __init__(self, file: Readable) -> None:
        """Raises: Unreadable."""
        self._file = file
        first = next(read_parts(file), None)
        if first is None:
            raise Unreadable("it could not be read")
        self.head = decode_msgpack(first, Head)
        if self.head.error:
            raise Unreadable(self.head.error)

    @property
    def names(self) -> tuple[str, ...] | None:
        return tuple(self.head.names) if self.head.types else None

    def __iter__(self) -> Iterator[Record]:
        parts = read_parts(self._file)
        next(parts)
        line = 0
        for part in parts:
            rows = msgspec.msgpack.decode(part)
            if not isinstance(rows, list):
                raise Unreadable(convert_value(rows, Head).error)
            for row in cast("list[list[Value]]", rows):
                line += 1
                yield Record(line, row)
