"""Prepared statements and portals of a session, and running results that a client reads in
parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from tidegate.edges.pgwire.commands import Command, Placed
from tidegate.errors import TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import Reply
from tidegate.model.results import Column, Page
from tidegate.results.row_stream import RowChannel

Rows = Sequence[Sequence[Any]]


class PreparedStatement:
    """What Parse made. `columns` None: not described yet. `types` are the oids that the client gave
    for its parameters, `inferred` those that the source said."""

    __slots__ = ("columns", "command", "inferred", "placed", "text", "types")

    def __init__(
        self, text: str, types: tuple[int, ...], command: Command | None, placed: Placed
    ) -> None:
        self.text = text
        self.types = types
        self.command = command
        self.placed = placed
        self.columns: tuple[Column, ...] | None = None
        self.inferred: tuple[int, ...] = ()


class RunningResult:
    """A result that is read in parts: the statement waits in the gate while nothing is read."""

    def __init__(
        self,
        handle: Callable[[RowChannel], Awaitable[Reply]],
        cancellation: Cancellation,
    ) -> None:
        self.channel = RowChannel()
        self.cancellation = cancellation
        self._left: list[Sequence[Any]] = []
        self._task = asyncio.ensure_future(handle(self.channel))
        self._task.add_done_callback(lambda _: self.channel.end())
        self._ended = False

    @property
    def ahead(self) -> Rows:
        """Rows that have come and were not read."""
        return self._left

    async def columns(self) -> tuple[Column, ...]:
        """The columns, once the first rows or the end have come. Raises: TidegateError."""
        await self._fill(1)
        return self.channel.columns

    async def read(self, count: int | None) -> tuple[Rows, bool]:
        """What comes next, up to `count` rows, and whether there is more. No more than two chunks
        are kept, whatever `count` is. Raises: TidegateError."""
        await self._fill(1)
        rows, self._left = self._left[:count], self._left[count:] if count is not None else []
        await self._fill(1)
        return rows, bool(self._left)

    async def _fill(self, count: int) -> None:
        while len(self._left) < count and not self._ended:
            try:
                self._left += await anext(self.channel)
            except StopAsyncIteration:
                self._ended = True
        if self._ended and self._task.done():
            self._task.result()

    async def page(self) -> Page | None:
        """What is said of the whole result at its end."""
        reply = await self._task
        return reply.payload if isinstance(reply.payload, Page) else None

    async def close(self) -> None:
        """End the statement. Never raises."""
        if not self._task.done():
            self.cancellation.cancel("the portal was closed")
            self.channel.close()
        with suppress(TidegateError, asyncio.CancelledError):
            await self._task


class Portal:
    """What Bind made: a statement with its parameters, and its result while it is read. `size` is
    of the parameters, in bytes."""

    __slots__ = ("formats", "parameters", "result", "rows", "size", "statement")

    def __init__(
        self,
        statement: PreparedStatement,
        parameters: tuple[Any, ...],
        formats: tuple[int, ...],
        size: int = 0,
    ) -> None:
        self.statement = statement
        self.parameters = parameters
        self.formats = formats
        self.size = size
        self.result: RunningResult | None = None
        self.rows = 0

    async def close(self) -> None:
        """End its result, if it has one."""
        result, self.result = self.result, None
        if result is not None:
            await result.close()
