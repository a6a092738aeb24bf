"""Coroutines for callers that may be in an event loop of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


def run_in_thread(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end in a loop of its own, and wait for it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
