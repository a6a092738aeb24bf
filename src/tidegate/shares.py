"""How much of one source an actor may use at once, so that nobody takes all of it.

An engine runs a few statements at a time. Who sends more than its share waits in line for its own
earlier ones, and never in front of somebody else. Decides nothing about permission.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tidegate.cancellation import Cancellation
from tidegate.errors import Code, GateError

MOST_AT_ONCE = 6
"""Statements of one actor on one source; the engines run eight and more."""


class Shares:
    """The statements under way on one source, by actor. Used on the event loop only."""

    __slots__ = ("_most", "_running", "_waiting")

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._most = most
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def enter_now(self, actor_id: str) -> bool:
        """Begin a statement if the actor's share allows it; then `leave` must follow."""
        running = self._running.get(actor_id, 0)
        if running >= self._most:
            return False
        self._running[actor_id] = running + 1
        return True

    async def enter(self, actor_id: str, timeout_s: float, cancellation: Cancellation) -> None:
        """Wait for the actor's turn; then `leave` must follow.

        Raises: GateError SOURCE_BUSY after `timeout_s`, CALL_CANCELLED.
        """
        if self.enter_now(actor_id):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(actor_id, deque())
        waiting.append(turn)

        def give_up() -> None:
            if not turn.done():
                turn.set_exception(GateError(Code.CALL_CANCELLED, "The call was cancelled"))

        cancellation.listen(give_up)
        try:
            await asyncio.wait_for(turn, timeout_s)
        except TimeoutError:
            raise GateError(
                Code.SOURCE_BUSY,
                f"{self._most} statements of yours are still running on this source",
                hint="Wait for them, or cancel some.",
            ) from None
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(actor_id)  # the turn came while its caller was going
            raise
        finally:
            cancellation.forget(give_up)

    def leave(self, actor_id: str) -> None:
        """End a statement: the actor's next one has its turn."""
        waiting = self._waiting.get(actor_id)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(actor_id, None)
        left = self._running[actor_id] - 1
        if left:
            self._running[actor_id] = left
        else:
            del self._running[actor_id]
