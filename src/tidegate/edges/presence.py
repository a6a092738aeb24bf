"""A request that is being answered: whose it is, and whether its client is still there.

Whether the client has gone is looked at only for calls that run for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tidegate.actors import Actor
from tidegate.cancellation import Cancellation

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

WATCH_AFTER_S = 0.01
"""What is answered sooner is not watched: most calls are, and a task costs more than a timer."""


class Presence(Cancellation):
    """Watches whether the client of one request is still there, once somebody wants to know.

    It is among the `present` until `end`, so that others can cancel it.
    """

    __slots__ = ("_present", "_receive", "_task", "actor", "detached")

    def __init__(self, receive: Receive, actor: Actor, present: set[Presence]) -> None:
        super().__init__()
        self._receive = receive
        self._present = present
        self._task: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self.actor = actor
        self.detached = False
        present.add(self)

    def watch(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._wait_for_end())

    async def _wait_for_end(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        self._present.discard(self)
        if self._task is not None:
            self._task.cancel()
            self._task = None
