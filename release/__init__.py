"""Builds everything of a release from the commit that is checked out. `./dev release` runs it."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(Exception):
    """Why there is no release. Its text is one sentence for the person who asked for it."""


class Commit(NamedTuple):
    """`epoch` is the time of the commit in seconds, which every file of the release gets."""

    name: str
    epoch: int
