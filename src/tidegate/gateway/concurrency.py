"""How much of one source, or of the judging thread, an actor may use at once, so that none takes
all of it.

An engine runs a few statements at a time. An actor that sends more than its share waits for its own
earlier statements, and never delays another actor. Permission is not decided here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

MOST_AT_ONCE = 6
"""Statements of one actor on one source; the engines run eight and more."""

CLOCK_S = 0.002
"""A timer may fire so much before its time."""


class ConcurrencyLimiter:
    """The statements under way on one source, by actor. Used on the event loop only.

    An actor without a statement under way may always begin one. It may begin further ones while a
    quarter of the places, or two, is free: that is kept for actors who come later.
    """

    __slots__ = (
        "_all",
        "_due_at",
        "_most",
        "_most_of_all",
        "_place",
        "_running",
        "_timer",
        "_waiting",
        "waited_s",
        "waits",
    )

    def __init__(self, most: int = MOST_AT_ONCE, place: str = "running on this source") -> None:
        """`place` completes the error of a caller that waits too long: statements are still ..."""
        self._most = most
        self._most_of_all: float = inf
        self._place = place
        self._all = 0
        self.waits = 0
        self.waited_s = 0.0
        """How many statements had to wait for their turn, and for how long in all."""
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[_Turn]] = {}
        # One timer for all who wait: most calls of a busy actor do.
        self._timer: asyncio.TimerHandle | None = None
        self._due_at: float = inf

    @property
    def running(self) -> int:
        """How many statements are under way."""
        return self._all

    @property
    def waiting(self) -> int:
        """How many statements wait for their turn."""
        return sum([not turn.done() for turns in self._waiting.values() for turn, _ in turns])

    def share(self, places: int) -> None:
        """Keep a quarter of so many places free for actors who come later, two at least."""
        self._most_of_all = places if places <= 2 else max(1, places - max(2, places // 4))

    def try_acquire(self, actor_id: str) -> bool:
        """Begin a statement if the actor's share allows it; then `release` must follow."""
        running = self._running.get(actor_id, 0)
        if running and (running >= self._most or self._all >= self._most_of_all):
            return False
        self._running[actor_id] = running + 1
        self._all += 1
        return True

    async def acquire(self, actor_id: str, timeout_s: float, cancellation: Cancellation) -> None:
        """Wait for the actor's turn; then `release` must follow.

        Raises: TidegateError SOURCE_BUSY after `timeout_s`, CALL_CANCELLED.
        """
        if self.try_acquire(actor_id):
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        began = loop.time()
        until = began + timeout_s
        self._waiting.setdefault(actor_id, deque()).append((turn, until))
        if until < self._due_at:
            self._look_at(until, loop)

        def give_up() -> None:
            if not turn.done():
                turn.set_exception(TidegateError(Code.CALL_CANCELLED, "The call was cancelled"))

        cancellation.listen(give_up)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(actor_id)  # the turn came while its caller was going
            raise
        finally:
            self.waits += 1
            self.waited_s += loop.time() - began
            cancellation.forget(give_up)

    def _look_at(self, due_at: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_at = due_at
        self._timer = loop.call_at(due_at, self._refuse_late, loop)

    def _refuse_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse those who have waited for as long as they may."""
        self._timer, self._due_at = None, inf
        now, later = loop.time() + CLOCK_S, inf
        for turns in self._waiting.values():
            for turn, until in turns:
                if turn.done():
                    continue
                if until > now:
                    later = min(later, until)
                    continue
                turn.set_exception(
                    TidegateError(
                        Code.SOURCE_BUSY,
                        f"Other statements of this caller are still {self._place}",
                        hint="Wait for them, or cancel some.",
                    )
                )
        if later < inf:
            self._look_at(later, loop)

    def release(self, actor_id: str) -> None:
        """End a statement. The waiting actor with the fewest under way has the next turn."""
        self._all -= 1
        left = self._running[actor_id] - 1
        if left:
            self._running[actor_id] = left
        else:
            del self._running[actor_id]
        if self._waiting:
            self._begin_next(actor_id)

    def _begin_next(self, released: str) -> None:
        """Give turns to those who wait, after one statement of `released` has ended."""
        everyone = self._waiting
        while everyone:
            if len(everyone) == 1:
                (actor_id,) = everyone
            else:
                actor_id = min(everyone, key=self._running_of)
            turns = everyone[actor_id]
            while turns and turns[0][0].done():
                turns.popleft()
            if turns:
                if not self.try_acquire(actor_id):
                    return  # the others have as many under way, or more
                turns.popleft()[0].set_result(None)
            if not turns:
                del everyone[actor_id]
            elif actor_id == released:
                return  # all is as before, when no caller could begin

    def _running_of(self, actor_id: str) -> int:
        return self._running.get(actor_id, 0)


_Turn = tuple[asyncio.Future[None], float]
"""What a caller waits for, and until when, by the clock of the event loop."""
