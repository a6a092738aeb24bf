"""Reads the long texts of one session on the judging thread, one of each caller at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.judging_thread import SHORT, compute
from tidegate.model.cancellation import Cancellation

Params = ParamSpec("Params")
Result = TypeVar("Result")

_WAIT_S = 30.0
"""How long a text waits for others of its caller."""


def reading_turns() -> ConcurrencyLimiter:
    """Lets each caller have one long text read at a time, whatever its number of sessions: the
    thread has a queue, in which the texts of others would wait for all of them."""
    return ConcurrencyLimiter(1, "being read, which takes long for a long text")


class StatementReader:
    """What one session has read. `turns` are those of all sessions, by the id of the caller."""

    def __init__(self, turns: ConcurrencyLimiter, caller: str) -> None:
        self._turns = turns
        self._caller = caller
        self._waiting: Cancellation | None = None

    def cancel(self, reason: str) -> None:
        """Let a text that waits for its turn wait no longer."""
        if self._waiting is not None:
            self._waiting.cancel(reason)

    async def compute(
        self,
        text: str,
        function: Callable[Params, Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """What `function` returns for a text. Raises: TidegateError SOURCE_BUSY, CALL_CANCELLED if
        the text is long; what the function raises."""
        if len(text) <= SHORT:
            return await compute(text, function, *args, **kwargs)
        self._waiting = Cancellation()
        try:
            await self._turns.acquire(self._caller, _WAIT_S, self._waiting)
        finally:
            self._waiting = None
        try:
            return await compute(text, function, *args, **kwargs)
        finally:
            self._turns.release(self._caller)
