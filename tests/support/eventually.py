"""How long the tests wait for what others do in their own time, and the one way they do it.

A server clears its activity view after it has answered, a process ends after it was signalled, a
file is written when its writer gets the processor. Looking once is a race, and sleeping is a guess:
here one looks again until it is so, and fails, saying what was awaited, if it never becomes so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0
"""Far above what anything awaited takes on a slow and busy machine: it ends a test that hangs."""

HANG_S = 300.0
"""The whole of one test: it ends one that awaits what it has no deadline for."""

LOOK_S = 0.01
"""Between two looks."""

Found = TypeVar("Found")


async def until(condition: Callable[[], Found], what: str) -> Found:
    """Look until `condition()` holds, the loop running meanwhile; what it gave.

    Raises: AssertionError naming `what` if it does not within `PATIENCE_S`.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(LOOK_S)
    return found


def wait_until(condition: Callable[[], Found], what: str) -> Found:
    """The same, for a test without an event loop."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(LOOK_S)
    return found
