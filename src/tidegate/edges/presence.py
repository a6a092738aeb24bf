"""Is the client of a request still there? Looked at only for calls that run for longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tidegate.types import Cancellation

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Presence(Cancellation):
    """Watches whether the client of one request is still there, once somebody wants to know.

    `watched` holds the calls that are watched: those that run for longer.
    """

    __slots__ = ("_receive", "_task", "_watched", "detached")

    def __init__(self, receive: Receive, watched: set[Presence]) -> None:
        super().__init__()
        self._receive = receive
        self._watched = watched
        self._task: asyncio.Task[None] | None = None
        self.detached = False

    def watch(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wait_for_end())
            self._watched.add(self)

    async def _wait_for_end(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._watched.discard(self)
