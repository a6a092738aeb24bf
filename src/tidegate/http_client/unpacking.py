"""Unpacks bodies of HTTP that were packed for their way, within a bound."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import Final

_CHUNK: Final = 262_144
_FED: Final = 4_096
"""Packed bytes that are read at once. What a member leaves of them is copied for the next one."""
_MOST_MEMBERS: Final = 65_536
"""Of gzip, in one body. Each takes time, also one that holds nothing."""
_QUICKLY: Final = 16_384
"""A packed body of so many bytes holds at most a thousand times as much: the event loop may unpack
it. A larger one is unpacked in a thread."""
_KEPT_UNCOUNTED: Final = 33_554_432
"""Bytes that are kept before it is known how many there are."""


class TooLarge(Exception):
    """The body holds more than is allowed."""


async def unpack(body: bytes, max_bytes: int) -> bytes:
    """What a body holds that was packed with gzip or deflate. What is too large is refused before
    it is kept.

    Raises: TooLarge; zlib.error or EOFError for what is damaged.
    """
    if len(body) > _QUICKLY:
        return await asyncio.to_thread(_unpack, body, max_bytes)
    return _unpack(body, max_bytes)


def _unpack(body: bytes, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size, is_counted = 0, False
    for part in _steps(body):
        parts.append(part)
        size += len(part)
        if size > min(_KEPT_UNCOUNTED, max_bytes) and not is_counted:
            is_counted = True
            _count(body, max_bytes)
    return b"".join(parts)


def _count(body: bytes, max_bytes: int) -> None:
    """Raises: TooLarge, zlib.error, EOFError."""
    size = 0
    for part in _steps(body):
        size += len(part)
        if size > max_bytes:
            raise TooLarge


def _steps(body: bytes) -> Iterator[bytes]:
    """What a packed body holds, in pieces of `_CHUNK` at most. Several members of gzip may come one
    after another. Raises: zlib.error; EOFError if its end is missing."""
    pieces = (body[at : at + _FED] for at in range(0, len(body), _FED))
    packed = next(pieces, b"")
    for _ in range(_MOST_MEMBERS):
        if not packed:
            return
        decoder = zlib.decompressobj(47)  # 32 and 15: the header says whether it is gzip or zlib
        while not decoder.eof:
            part = decoder.decompress(packed, _CHUNK)
            packed = decoder.unconsumed_tail
            if part:
                yield part
            elif not decoder.eof and not packed and not (packed := next(pieces, b"")):
                raise EOFError
        packed = decoder.unused_data.lstrip(b"\0")  # some writers fill the last block with zeros
        while not packed and (piece := next(pieces, b"")):
            packed = piece.lstrip(b"\0")
    if packed:
        raise zlib.error("too many members")
