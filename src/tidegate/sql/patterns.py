"""How long a regular expression of a caller may take. Pure.

Python's `re` tries one way after the other, holds the interpreter's lock meanwhile and cannot be
stopped: one pattern such as `(a|a)*b` would stop the whole server. So the ways are counted before
a pattern is used. The count is an upper bound, found by reading the pattern once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

MOST_PATTERN: Final = 1_024
"""Characters of a pattern."""
MOST_STEPS: Final = 30_000_000
"""About a second, at worst."""
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>.)"
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<open>\((?:\?(?:P?<\w+>|<?[=!]|[:>]|P=\w+|\(\w+\)|[aiLmsu-]+[:)]))?)"
    r"|(?P<close>\))"
    r"|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\}|\{,\d*\})[?+]?"
    r"|(?P<branch>\|)"
    r"|.",
    re.DOTALL,
)


class PatternFault(ValueError):
    """A pattern that is not used; the message says why, as the end of a sentence."""


class _Cost(NamedTuple):
    """`choices` ways besides those of `repeats` parts, each of which may take any length."""

    repeats: int
    choices: int


def compile_pattern(text: str, length: int, flags: int = 0) -> re.Pattern[str]:
    """The pattern, to be searched for in a text of `length` characters. Raises: PatternFault."""
    cost = _cost(text)
    steps = cost.choices
    is_anchored = text[:1] == "^" and "|" not in text
    for _ in range(cost.repeats + (not is_anchored)):
        steps *= max(length, 1)
        if steps > MOST_STEPS:
            raise PatternFault(
                f"it may take too long in a text of {length:,} characters: it repeats"
                f" {cost.repeats} parts"
            )
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternFault(f"it cannot be read: {error}") from None


@lru_cache(256)
def _cost(text: str) -> _Cost:
    """Raises: PatternFault for a pattern whose cost has no bound that is worth its name."""
    if len(text) > MOST_PATTERN:
        raise PatternFault(f"it has more than {MOST_PATTERN} characters")
    repeats, choices = 0, 1
    varies = [False]
    """For each bracket that is open: whether what is in it can match in more than one way."""
    behind: bool | None = None
    """Whether the part before, if it is a bracket, can match in more than one way."""
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "escaped" and token[0][1].isdigit() and token[0][1] != "0":
            raise PatternFault("it refers back to a group")
        if kind == "open":
            if token[0] == "(" and text[token.end() : token.end() + 1] == "?":
                raise PatternFault("it has an extension in brackets that is not used here")
            if token[0].startswith(("(?P=", "(?(")):
                raise PatternFault("it refers back to a group")
            if not token[0].endswith(")"):
                varies.append(False)
            behind = None
        elif kind == "close":
            behind = varies.pop() if len(varies) > 1 else None
            varies[-1] = varies[-1] or bool(behind)
        elif kind == "branch":
            choices = min(choices * 2, MOST_STEPS + 1)
            varies[-1], behind = True, None
        elif kind == "repeat":
            count = token["repeat"]
            if behind and count != "?":
                raise PatternFault("it repeats a part that can match in several ways")
            if count == "?":
                choices = min(choices * 2, MOST_STEPS + 1)
                varies[-1] = True
            elif count[0] in "*+" or "," in count:
                repeats += 1
                varies[-1] = True
            behind = None
        else:
            behind = None
    return _Cost(repeats, choices)
