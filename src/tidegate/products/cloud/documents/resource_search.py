"""Finds resources of all providers by words, without reading their documents as YAML: the names of
resources are at the beginnings of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_SECTION: Final = re.compile(rb"^( *)x-stackQL-resources: *\r?$", re.MULTILINE)
_KEY: Final = re.compile(rb"""( *)(['"]?)([A-Za-z0-9_.-]+)\2:(?:\s|$)""")
_IGNORED: Final = re.compile(rb"\s*(?:#.*)?$")


class ResourceName(NamedTuple):
    """A resource by its path."""

    provider: str
    service: str
    resource: str

    @property
    def path(self) -> str:
        """`provider.service.resource`."""
        return ".".join(self)


def names_in(content: bytes) -> list[str] | None:
    """The names of the resources in a service document; None if its lines do not show
    them."""
    section = _SECTION.search(content)
    if section is None:
        return None if b"x-stackQL-resources" in content else []
    names: list[str] = []
    depth: int | None = None
    for line in content[section.end() :].splitlines()[1:]:
        if _IGNORED.match(line):
            continue
        indent = len(line) - len(line.lstrip(b" "))
        if depth is None:
            depth = indent
        if depth <= len(section[1]) or indent < depth:
            break
        if indent > depth:
            continue
        key = _KEY.match(line)
        if key is None:
            return None
        names.append(key[3].decode())
    return names


def matching(found: Iterable[ResourceName], words: str) -> list[ResourceName]:
    """Those whose path holds every one of the words, nearest first: words that are a whole name
    count most, then short paths."""
    wanted = words.casefold().split()
    if not wanted:
        return []

    def distance(each: ResourceName) -> tuple[int, int, str]:
        names = {name.casefold() for name in each}
        return -sum(word in names for word in wanted), len(each.path), each.path

    hits = [each for each in found if all(word in each.path.casefold() for word in wanted)]
    return sorted(hits, key=distance)
