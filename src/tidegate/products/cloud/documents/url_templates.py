"""Names in the templates of addresses: `{name}`, or `{name:pattern}` where a pattern bounds the
value, as routers write it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate.sql.patterns import PatternFault, compile_pattern

_USUAL_LENGTH: Final = 64
"""Characters that a value may have if its pattern shall be of use."""
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", re.DOTALL)
_POSIX_CLASS: Final = re.compile(r"\[:\w+:\]")


class UrlTemplate(NamedTuple):
    """`text` names variables as `{name}` alone; `patterns` are by their names."""

    text: str
    patterns: Mapping[str, str]


def read_template(text: str) -> UrlTemplate:
    """A template without its patterns. Raises: ValueError for a brace that does not end."""
    parts: list[str] = []
    patterns: dict[str, str] = {}
    at = 0
    while (start := text.find("{", at)) >= 0:
        stop = _end(text, start)
        name, colon, pattern = text[start + 1 : stop].partition(":")
        if colon:
            patterns[name.strip()] = pattern
            name = name.strip()
        parts += [text[at:start], f"{{{name}}}"]
        at = stop + 1
    return UrlTemplate("".join([*parts, text[at:]]), patterns)


def plain_name(name: str) -> str:
    """The name of a variable that is written with its pattern."""
    return name.partition(":")[0].strip()


def pattern_problem(pattern: str, length: int = _USUAL_LENGTH) -> str | None:
    """Why a pattern cannot bound a value of so many characters; None if it can."""
    if _POSIX_CLASS.search(pattern):
        return "it has a class of POSIX, which is not known"
    try:
        compile_pattern(pattern, length)
    except PatternFault as fault:
        return str(fault)
    return None


def fits(pattern: str, value: str) -> bool:
    """Whether the whole of a value is what a pattern says.

    Raises: ValueError: the pattern cannot be used.
    """
    length = max(len(value), _USUAL_LENGTH)
    problem = pattern_problem(pattern, length)
    if problem is not None:
        raise ValueError(problem)
    return compile_pattern(pattern, length).fullmatch(value) is not None


def _end(text: str, start: int) -> int:
    """Where the brace at `start` ends: a pattern may have braces of its own."""
    depth, at = 0, start
    is_pattern = False
    while at < len(text):
        letter = text[at]
        if is_pattern and letter == "\\":
            at += 1
        elif is_pattern and letter == "[" and (members := _CLASS.match(text, at)):
            at = members.end() - 1
        elif letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            if not depth:
                return at
        elif letter == ":":
            is_pattern = True
        at += 1
    raise ValueError(f"`{text[start : start + 60]}` does not end")
