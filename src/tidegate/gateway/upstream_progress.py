"""Reports what a statement has sent to providers so far as the progress of its call."""

from __future__ import annotations

import time
from typing import Final

from tidegate.model.requests import Progress
from tidegate.model.results import UpstreamUse

BEGINS: Final = 0.2
ENDS: Final = 0.8
"""The shares of a call's progress between which its statement is executed."""
_EVERY_S: Final = 0.2
_HALF: Final = 20
"""Requests and pages after which half of that is reported as done: how many there will be is not
known."""


class UpstreamProgress:
    """Reports the first request, and then at most five times in a second."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._reported_at = float("-inf")

    def __call__(self, use: UpstreamUse) -> None:
        now = time.monotonic()
        if now < self._reported_at + _EVERY_S:
            return
        self._reported_at = now
        done = use.calls + use.pages
        share = BEGINS + (ENDS - BEGINS) * done / (done + _HALF)
        self._progress(
            share, f"Executing: {_count(use.calls, 'call')}, {_count(use.pages, 'page')}"
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
