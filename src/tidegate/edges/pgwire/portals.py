"""Prepared statements, portals and cursors of a session, and running results that a client reads
in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from tidegate.edges.pgwire.commands import Command
from tidegate.edges.pgwire.errors import refused
from tidegate.edges.pgwire.placeholders import Placed
from tidegate.errors import TidegateError
from tidegate.model.cancellation import READ_ENOUGH, Cancellation
from tidegate.model.replies import Reply
from tidegate.model.results import Column, Page
from tidegate.results.row_stream import RowChannel

MAX_EACH = 1_000
"""Prepared statements, portals and cursors that one session may hold, of each."""
MAX_HELD = 67_108_864
"""Bytes of parameters that its portals may hold."""

Rows = Sequence[Sequence[Any]]


class PreparedStatement:
    """What Parse made. `columns` None: not described yet. `types` are the oids that the client gave
    for its parameters, `inferred` those that the source names. `asks_catalog`: it is about
    PostgreSQL's catalogs of a source that has none."""

    __slots__ = ("asks_catalog", "columns", "command", "inferred", "placed", "text", "types")

    def __init__(
        self,
        text: str,
        types: tuple[int, ...],
        command: Command | None,
        placed: Placed,
        *,
        asks_catalog: bool = False,
    ) -> None:
        self.text = text
        self.asks_catalog = asks_catalog
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
        """The counts and cuts of the whole result, at its end. Raises: TidegateError."""
        reply = await self._task
        return reply.payload if isinstance(reply.payload, Page) else None

    async def hold(self) -> None:
        """Read all that is left, and keep it. Raises: TidegateError 53200 if that is too much."""
        size = sum(map(_weight, self._left))
        while not self._ended:
            count = len(self._left)
            await self._fill(count + 1)
            size += sum(map(_weight, self._left[count:]))
            if size > MAX_HELD:
                raise refused(
                    "53200",
                    f"A cursor WITH HOLD keeps {MAX_HELD:,} bytes at most.",
                    "Read it to its end before the commit, or select less.",
                )

    async def close(self) -> None:
        """End the statement. Never raises."""
        if not self._task.done():
            self.cancellation.cancel(READ_ENOUGH)
            self.channel.close()
        with suppress(TidegateError, asyncio.CancelledError):
            await self._task


def _weight(row: Sequence[Any]) -> int:
    """About how many bytes a row takes in memory."""
    return 64 + sum([len(value) if isinstance(value, (str, bytes)) else 32 for value in row])


class Portal:
    """What Bind made: a statement with its parameters, and its result while it is read. `size` is
    of the parameters, in bytes. `holds`: it is a cursor that a commit leaves open; `of_block`: the
    block that made it is open."""

    __slots__ = ("formats", "holds", "of_block", "parameters", "result", "size", "statement")

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
        self.holds = self.of_block = False
        self.result: RunningResult | None = None

    async def close(self) -> None:
        """End its result, if it has one."""
        result, self.result = self.result, None
        if result is not None:
            await result.close()


class SessionObjects:
    """What a session holds by name. A cursor is a portal that DECLARE has made."""

    def __init__(self) -> None:
        self.statements: dict[str, PreparedStatement] = {}
        self.portals: dict[str, Portal] = {}
        self.cursors: dict[str, Portal] = {}

    def statement(self, name: str) -> PreparedStatement:
        """Raises: TidegateError 26000 if there is none of that name."""
        found = self.statements.get(name)
        if found is None:
            raise refused("26000", f'There is no prepared statement "{name[:80]}".')
        return found

    def portal(self, name: str) -> Portal:
        """Raises: TidegateError 34000 if there is none of that name."""
        found = self.portals.get(name)
        if found is None:
            raise refused("34000", f'There is no portal "{name[:80]}".')
        return found

    def cursor(self, name: str) -> Portal:
        """Raises: TidegateError 34000 if there is none of that name."""
        found = self.cursors.get(name)
        if found is None:
            raise refused("34000", f'There is no cursor "{name[:80]}".')
        return found

    def check_new_statement(self, name: str) -> None:
        """Raises: TidegateError 42P05 if there is one of that name, 53400 for too many."""
        if name and name in self.statements:
            raise refused("42P05", f'The prepared statement "{name[:80]}" exists already.')
        if len(self.statements) >= MAX_EACH:
            raise refused("53400", f"A session holds {MAX_EACH} prepared statements.")

    def check_new_portal(self, name: str) -> None:
        """Raises: TidegateError 42P03 if there is one of that name, 53400 for too many."""
        if name and name in self.portals:
            raise refused("42P03", f'The portal "{name[:80]}" exists already.')
        if len(self.portals) >= MAX_EACH:
            raise refused("53400", f"A session holds {MAX_EACH} portals.")

    def check_size(self, size: int) -> None:
        """Raises: TidegateError 53200 if portals may not hold that many bytes more."""
        if size + sum([each.size for each in self.portals.values()]) > MAX_HELD:
            raise refused("53200", f"The portals of a session hold {MAX_HELD:,} bytes at most.")

    def check_new_cursor(self, name: str) -> None:
        """Raises: TidegateError 42P03 if there is one of that name, 53400 for too many."""
        if name in self.cursors:
            raise refused("42P03", f'The cursor "{name[:80]}" exists already.')
        if len(self.cursors) >= MAX_EACH:
            raise refused("53400", f"A session holds {MAX_EACH} cursors.")

    async def drop_portal(self, name: str) -> None:
        """End a portal, if there is one of that name."""
        portal = self.portals.pop(name, None)
        if portal is not None:
            await portal.close()

    async def drop_portals(self) -> None:
        """End all portals."""
        for name in tuple(self.portals):
            await self.drop_portal(name)

    async def leave_block(self, *, commit: bool) -> None:
        """The block ends: its portals do, and its cursors unless they hold what it has seen.

        Raises: TidegateError 53200, and what reading a cursor raises.
        """
        await self.drop_portals()
        for name, cursor in tuple(self.cursors.items()):
            if cursor.holds and not cursor.of_block:
                continue
            if not (commit and cursor.holds):
                await self.cursors.pop(name).close()
            elif cursor.result is not None:
                await cursor.result.hold()
            cursor.of_block = False

    async def close_cursors(self) -> None:
        """End all cursors."""
        for name in tuple(self.cursors):
            await self.cursors.pop(name).close()

    async def close(self) -> None:
        """End and forget everything."""
        await self.drop_portals()
        await self.close_cursors()
        self.statements.clear()
