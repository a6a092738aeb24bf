"""The extras in the requirement of an entry that runs Tidegate from a cache, such as the words
`uvx --from tidegate[postgres] tidegate bridge`: read, and kept when the entry is written again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

_REQUIREMENT = re.compile(r"tidegate(?:\[([\w,\- ]*)\])?(\s*@\s.*|\s*[=<>~!].*)?")
_RUNNERS = ("uv", "uvx", "pipx")
_NAMES_PACKAGE = ("--from", "--spec", "--with")


def named_extras(words: Sequence[str]) -> set[str] | None:
    """The extras that a command of a runner names; None if it runs a program that is installed."""
    if not words or Path(words[0]).name not in _RUNNERS:
        return None
    named: set[str] = set()
    for option, word in pairwise(words):
        if option in _NAMES_PACKAGE:
            named |= _extras_of(word)
    return named


def keep_extras(there: Any, entry: dict[str, Any]) -> dict[str, Any] | None:
    """The entry with the extras of the one that is there, too, if the two differ in nothing else;
    otherwise None."""
    if _map_texts(there, _bare) != _map_texts(entry, _bare):
        return None
    extras = {extra for text in _texts(there) for extra in _extras_of(text)}
    return cast("dict[str, Any]", _map_texts(entry, lambda text: _with_extras(text, extras)))


def _extras_of(text: str) -> set[str]:
    found = _REQUIREMENT.fullmatch(text)
    return {name.strip() for name in found[1].split(",")} if found and found[1] else set()


def _with_extras(text: str, extras: Collection[str]) -> str:
    """A requirement with these extras as well. The name alone is the program, and stays."""
    found = _REQUIREMENT.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return text
    names = ",".join(sorted({*_extras_of(text), *extras}))
    return f"tidegate[{names}]{found[2] or ''}" if names else text


def _bare(text: str) -> str:
    found = _REQUIREMENT.fullmatch(text)
    return f"tidegate{found[2] or ''}" if found else text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
    elif isinstance(value, dict):
        for each in cast("dict[Any, Any]", value).values():
            yield from _texts(each)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The same structure with every text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(each, change) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {name: _map_texts(each, change) for name, each in fields.items()}
    return value
