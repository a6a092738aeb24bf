"""Where texts of callers are judged: short ones on the event loop, long ones on a thread.

To lex, parse or rewrite a long text takes up to half a second of CPU, and the first text of a
dialect imports its parser. On the event loop that would delay every caller. One thread for the
whole process is enough: judging is interpreted code or calls it often, so a second thread would
only take more of the interpreter from the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

from tidegate.model.long_work import TakesLong, may_take_long

SHORT = 1_000
"""Characters of a text that may be judged on the event loop: below 10 ms at worst."""
STACK_BYTES = 16 * 2**20
"""The parser is recursive, and some systems give threads a small stack."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


async def compute(
    text: str, function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """What `function` returns for a text: computed here if the text is short, else on the thread.

    `function` touches nothing that the event loop changes meanwhile. Raises: what it raises.
    """
    if len(text) <= SHORT:
        token = may_take_long.set(False)
        try:
            return function(*args, **kwargs)
        except TakesLong:
            pass
        finally:
            may_take_long.reset(token)
    return await compute_on_thread(function, *args, **kwargs)


async def compute_on_thread(
    function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """What `function` returns, computed on the thread. A cancelled caller waits for its end, so
    that who counts callers counts what runs."""
    future = _thread().submit(function, *args, **kwargs)
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            await asyncio.wait([waiting])
            waiting.exception()
        raise


SWITCH_S = 0.001
"""How soon the event loop gets the interpreter back from the thread; Python's default is 5 ms."""


@cache
def _thread() -> ThreadPoolExecutor:
    sys.setswitchinterval(SWITCH_S)
    executor = ThreadPoolExecutor(1, thread_name_prefix="tidegate-judge")
    size = threading.stack_size(STACK_BYTES)
    try:
        executor.submit(int)  # starts the thread
    finally:
        threading.stack_size(size)
    return executor
