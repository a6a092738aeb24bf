"""Text as a line of the record holds it: cut to size, fit for UTF-8, and plain to the eye."""

from __future__ import annotations

import re

MAX_WORD_CHARS = 256

_UNSEEN = "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"


def one_line(line: bytes) -> bytes:
    """The JSON with what could move a reader's cursor, or turn a line around, escaped."""
    if line.isascii():
        return line
    return re.sub(_UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", line.decode()).encode()


def word(text: str) -> str:
    """A name that came from outside, cut to size and fit for UTF-8."""
    if len(text) > MAX_WORD_CHARS:
        text = text[:MAX_WORD_CHARS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
