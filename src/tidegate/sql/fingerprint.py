"""A statement with its plain values made alike, so that what differs in values only is judged once.

Nothing in judging reads the value of a number or of a string that is compared with: the
property test `tests/properties/sql/test_fingerprint.py` holds that. Texts with anything that could
make it uncertain where a literal ends (comments, brackets, dollar quotes, backslashes) stay as
they are. What is in double quotes or backticks is left alone: a database that knows no such
quote refuses the sign. An `@` counts outside quotes only, where it may name a variable. The number
of a placeholder (`?1`, `:1`, `$1`) is no value.
"""

from __future__ import annotations

import re
from functools import lru_cache

_UNCERTAIN = re.compile(r"[^\t\n\r\x20-\x22\x24-\x5a\x5d-\x7e]")
"""Brackets, backslashes, hashes, and what is not plain ASCII."""

_DOLLAR_QUOTE = re.compile(r"\$(?!\d)")
_STRING_END = r"[^']*(?:''[^']*)*'"
# Each match begins with one of a set of characters, which the regular expression engine finds
# much faster than for alternatives: a masked statement has thousands of characters.
_LITERAL = re.compile(
    r"[=<>lL'\"`$0-9](?:"
    rf"(?:(?<=[=<>])|(?<!\w[lL])(?<=[lL])[iI][kK][eE]\b)(?P<compared>\s*'){_STRING_END}"
    rf"|(?<='){_STRING_END}"
    r"|(?<![\w?:]\d)(?<=\d)\d*(?P<fraction>\.\d+)?\b"
    r"|(?<=\")[^\"]*\"|(?<=`)[^`]*`|(?<=\$)\d+)"
)
_QUOTED = re.compile(rf"['\"`](?:(?<='){_STRING_END}|(?<=\")[^\"]*\"|(?<=`)[^`]*`)")
_MAX_KEPT = 4_096
"""Characters of the longest text whose fingerprint is kept for the next step of its call."""


def fingerprint(text: str) -> str:
    """The text with numbers and compared strings replaced by fixed ones; or the text itself."""
    return _kept(text) if len(text) <= _MAX_KEPT else _compute(text)


def _compute(text: str) -> str:
    return _LITERAL.sub(_alike, text) if _is_certain(text) else text


def split_at_literals(text: str) -> tuple[str, ...] | None:
    """The text in pieces: what is around whole numbers and compared strings at the even places,
    the digits and the insides of the strings at the odd ones. None if that is uncertain."""
    if not _is_certain(text):
        return None
    pieces: list[str] = []
    done = 0
    for literal in _LITERAL.finditer(text):
        start, end = literal.span()
        if text[start].isdigit():
            if literal["fraction"] is not None:
                continue
        elif literal["compared"] is None:
            continue
        else:
            start, end = literal.end("compared"), end - 1
        pieces += text[done:start], text[start:end]
        done = end
    pieces.append(text[done:])
    return tuple(pieces)


def _is_certain(text: str) -> bool:
    """Whether it is certain where each literal ends."""
    return not (
        _UNCERTAIN.search(text)
        or "--" in text
        or "/*" in text
        or ("$" in text and _DOLLAR_QUOTE.search(text))
        or ("@" in text and "@" in _QUOTED.sub("", text))
    )


# The judge and the engine ask for the same text within one call.
_kept = lru_cache(maxsize=64)(_compute)


def _alike(literal: re.Match[str]) -> str:
    whole = literal[0]
    if whole[0] in '"`$':
        return whole
    if whole[-1] != "'":
        return "7.5" if literal["fraction"] else "7"
    if literal["compared"] is None:
        return whole
    return whole[: literal.end("compared") - literal.start()] + "x'"
