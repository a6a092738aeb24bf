"""One question to a database for all callers who wait for its answer at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tidegate.errors import TidegateError


class SharedCheck:
    """Asks for the version of a schema.

    A caller never gets an answer to a question that was sent before it came. While one is under
    way, those who come share the next one: so 200 callers at once need two connections to the
    database, one after another, and leave the others of the pool to statements.
    """

    __slots__ = ("_asking", "_next", "_tasks")

    def __init__(self) -> None:
        self._asking = False
        self._next: asyncio.Future[str | None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, version: Callable[[], Awaitable[str]]) -> str:
        """The version now. Raises: what `version` raises."""
        if self._asking:
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            shared = await asyncio.shield(self._next)
            # Each caller gets an error of its own.
            return await version() if shared is None else shared
        self._asking = True
        try:
            return await version()
        finally:
            self._end(version)

    def _end(self, version: Callable[[], Awaitable[str]]) -> None:
        waiting, self._next = self._next, None
        self._asking = waiting is not None
        if waiting is not None:
            task = asyncio.create_task(self._ask_for(waiting, version))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask_for(
        self, waiting: asyncio.Future[str | None], version: Callable[[], Awaitable[str]]
    ) -> None:
        found: str | None = None
        try:
            found = await version()
        except TidegateError:
            found = None
        finally:
            waiting.set_result(found)
            self._end(version)
