"""Versions of provider documents, `v1.2.3` or `v1.2.3-rc1`, in the order of Semantic Versioning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_VERSION: Final = re.compile(
    r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]{1,60})?"
)


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def order_of(version: str) -> tuple[tuple[int, int, int], bool, tuple[tuple[int, int, str], ...]]:
    """What versions sort by (semver.org 2.0.0, section 11); what is no version comes first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, -1, -1), False, ((1, 0, version),)
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    if match[4] is None:
        return numbers, True, ()
    parts = match[4].split(".")
    return (
        numbers,
        False,
        tuple((0, int(each), "") if each.isdecimal() else (1, 0, each) for each in parts),
    )


def latest_stable(versions: Iterable[str]) -> str | None:
    """The highest version that is no preview; None if there is none."""
    stable = [each for each in versions if is_version(each) and order_of(each)[1]]
    return max(stable, key=order_of, default=None)
