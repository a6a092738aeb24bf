"""Which schemas a query on the catalogs names, by its constants and parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_ONLY_WILD = re.compile(r"[%_]*")
_ANCHORED = re.compile(r"\^\((.*)\)\$", re.DOTALL)


def named_schemas(
    schemas: Mapping[int, str], constants: Iterable[str], parameters: Iterable[Any]
) -> list[str]:
    """Those that are named in full, by their oid, by a LIKE pattern, or by psql's pattern
    `^(name)$`. A pattern of wildcards alone names none."""
    given = [str(each) for each in (*constants, *parameters) if isinstance(each, (str, int))]
    names = set(schemas.values())
    found: set[str] = set()
    for each in given:
        if each in names:
            found.add(each)
        elif each.isdecimal():
            found |= {schemas[int(each)]} if int(each) in schemas else set()
        elif not _ONLY_WILD.fullmatch(each):
            found |= _by_pattern(each, names)
    return sorted(found)


def _by_pattern(text: str, names: Iterable[str]) -> set[str]:
    anchored = _ANCHORED.fullmatch(text)
    if anchored is not None:
        exact = anchored[1].replace("\\", "")
        return {name for name in names if name == exact}
    if not any(each in text for each in "%_\\"):
        return set()
    pattern = "".join(_like_part(each) for each in re.findall(r"\\.|.", text, re.DOTALL))
    compiled = re.compile(pattern, re.DOTALL)
    return {name for name in names if compiled.fullmatch(name)}


def _like_part(part: str) -> str:
    if part == "%":
        return ".*"
    return "." if part == "_" else re.escape(part[-1])
