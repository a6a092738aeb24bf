"""Names of clients, tables and sources, as a message has them.

An agent chooses the name of its client, and may choose a sentence, or characters that hide the rest
of ours: "claude-code wants to read towns on shop", and then so much that the true end is cut off.
"""

from __future__ import annotations

import re
import unicodedata

from tidegate.approvals.render import visible
from tidegate.secrets.redaction import mask_shapes

MOST = 40
"""Characters of a name that are shown."""
_MOST_READ = 1_000
_MOST_MARKS = 3
"""Marks that may be above or below one character: more of them cover the lines beside it."""
_PLAIN = re.compile(r"[\w$@#.:+/-]+…?")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters of which nothing is seen, beside those that `visible` marks."""


def show_name(text: str) -> str:
    """A name for the middle of a sentence: on one line, without what hides or reorders, short, and
    in quotes if it is more than one word."""
    text = visible(text[:_MOST_READ])
    text = mask_shapes(re.sub(r"\s+", " ", "".join(_mark(text))))
    if len(text) > MOST:
        text = f"{text[: MOST - 1]}…"
    if _PLAIN.fullmatch(text):
        return text
    return f"“{text.replace('“', '‘').replace('”', '’')}”"


def _mark(text: str) -> list[str]:
    shown: list[str] = []
    marks = 0
    for char in text:
        kind = unicodedata.category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind == "Cn" or marks > _MOST_MARKS or _BLANK.match(char):
            char = f"\\u{{{ord(char):x}}}"
        shown.append(char)
    return shown
