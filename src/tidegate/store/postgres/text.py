"""Texts as PostgreSQL can hold them: a NUL and half of a surrogate pair, which it refuses, are
written as a mark and what was there.
"""

from __future__ import annotations

import re

from psycopg.abc import Buffer
from psycopg.types.string import StrDumper, TextLoader

_MARK = "\x01"
_FORBIDDEN = re.compile("[\x00\x01\ud800-\udfff]")
_MARKED = re.compile("\x01(0|1|[d][89a-f][0-9a-f]{2})")


def encode(text: str) -> str:
    """The text without what PostgreSQL refuses; almost always the text itself."""
    return text if _FORBIDDEN.search(text) is None else _FORBIDDEN.sub(_mark, text)


def decode(text: str) -> str:
    """The text that `encode` was given."""
    return text if _MARK not in text else _MARKED.sub(_unmark, text)


def _mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"{_MARK}{code}" if code < 2 else f"{_MARK}{code:04x}"


def _unmark(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


class EncodingDumper(StrDumper):
    """Sends a `str`."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(encode(obj))


class DecodingLoader(TextLoader):
    """Reads a text."""

    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return decode(text) if isinstance(text, str) else text
