"""Lists of names as PostgreSQL reads them in settings such as search_path. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]*))\s*(,|$)')
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_FOLDED = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


class ListedName(NamedTuple):
    """A name of a list: what it means, and how it is written there."""

    name: str
    written: str


def split_names(text: str) -> list[ListedName]:
    """The names of a list; those without quotes are folded, and empty ones left out. What follows
    text that is no list is not read: the database refuses it."""
    found: list[ListedName] = []
    at = 0
    while at < len(text) and (item := _ITEM.match(text, at)) is not None:
        quoted, plain = item[1], item[2]
        name = plain.translate(_FOLDED) if quoted is None else quoted.replace('""', '"')
        if name:
            found.append(ListedName(name, plain if quoted is None else f'"{quoted}"'))
        at = item.end()
    return found


def listed(name: str, *, is_keyword: bool = False) -> str:
    """The name as PostgreSQL writes it in a list, in quotes where it needs them."""
    if _PLAIN.fullmatch(name) and not is_keyword:
        return name
    return '"' + name.replace('"', '""') + '"'
