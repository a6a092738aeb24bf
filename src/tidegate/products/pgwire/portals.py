"""Prepared statements, portals and cursors of a session, and running results that a client reads
in parts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from tidegate.errors import TidegateError
from tidegate.model.cancellation import READ_ENOUGH, Cancellation
from tidegate.model.replies import Reply
from tidegate.model.results import Column, Page
from tidegate.model.sources import Source
from tidegate.products.pgwire.errors import refused
from tidegate.products.pgwire.memory_quota import SessionMemory
from tidegate.products.pgwire.parsed_commands import Command
from tidegate.products.pgwire.placeholders import Placed
from tidegate.results.row_stream import RowChannel

MAX_EACH = 1_000
"""Prepared statements, portals and cursors that one session may hold, of each."""
_STATEMENT_BYTES = 1_000
_TYPE_BYTES = 40
_COLUMN_BYTES = 200
"""About how much a statement, the type of a parameter and a described column take besides texts."""

Rows = Sequence[Sequence[Any]]


class PreparedStatement:
    """What Parse made. `columns` None: not described yet. `types` are the oids that the client gave
    for its parameters, `inferred` those that the source names. `asks_catalog`: it is about
    PostgreSQL's catalogs of a source that has none. `size` is about what it takes in memory."""

    __slots__ = (
        "asks_catalog", "columns", "command", "inferred", "is_kept", "placed", "size", "text",
        "types",
    )  # fmt: skip

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
        self.is_kept = False
        self.size = _STATEMENT_BYTES + sys.getsizeof(text) + _TYPE_BYTES * len(types)
        if placed.text is not text:
            self.size += sys.getsizeof(placed.text)


class RunningResult:
    """A result that is read in parts: the statement waits in the gate while nothing is read."""

    def __init__(
        self,
        handle: Callable[[RowChannel], Awaitable[Reply]],
        cancellation: Cancellation,
        source: Source | None = None,
        settings: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`source` is what the statement reads, with the rules that it runs under; `settings` are
        those of its session that it runs with."""
        self.source = source
        self.settings = settings
        self.channel = RowChannel()
        self.cancellation = cancellation
        self._left: list[Sequence[Any]] = []
        self._next = 0
        self._task = asyncio.ensure_future(handle(self.channel))
        self._task.add_done_callback(lambda _: self.channel.end())
        self._ended = False

    @property
    def ahead(self) -> Rows:
        """Rows that have come and were not read."""
        return self._left[self._next :]

    async def columns(self) -> tuple[Column, ...]:
        """The columns, once the first rows or the end have come. Raises: TidegateError."""
        await self._fill(1)
        return self.channel.columns

    async def read(self, count: int | None) -> tuple[Rows, bool]:
        """What comes next, up to `count` rows, and whether there is more. No more than two chunks
        are kept, whatever `count` is. Raises: TidegateError."""
        await self._fill(1)
        end = len(self._left) if count is None else min(self._next + count, len(self._left))
        rows, self._next = self._left[self._next : end], end
        await self._fill(1)
        return rows, self._next < len(self._left)

    async def _fill(self, count: int) -> None:
        """Have so many rows that were not read, if there are."""
        if self._next == len(self._left):
            self._left, self._next = [], 0
        while len(self._left) - self._next < count and not self._ended:
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

    async def hold(self, take: Callable[[int], None]) -> None:
        """Read all that is left, and keep it. `take` counts its bytes. Raises: what that and
        reading raise."""
        counted = self._next
        while True:
            take(weight_of(self._left[counted:]))
            if self._ended:
                return
            counted = len(self._left)
            await self._fill(counted - self._next + 1)

    async def close(self) -> None:
        """End the statement. Never raises."""
        if not self._task.done():
            self.cancellation.cancel(READ_ENOUGH)
            self.channel.close()
        with suppress(TidegateError, asyncio.CancelledError):
            await self._task


def weight_of(rows: Rows) -> int:
    """About how many bytes rows take in memory."""
    return sum(map(_weight, rows))


def _weight(row: Sequence[Any]) -> int:
    """About how many bytes a row takes in memory."""
    return 64 + sum([len(value) if isinstance(value, (str, bytes)) else 32 for value in row])


class Portal:
    """What Bind made: a statement with its parameters, and its result while it is read. `size` is
    of the parameters, and of rows that are kept, in bytes. `holds`: it is a cursor that a commit
    leaves open; `of_block`: the block that made it is open."""

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

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory
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

    def keep_statement(self, name: str, statement: PreparedStatement) -> None:
        """Keep a statement under a name. Raises: TidegateError 53200."""
        self.drop_statement(name)
        self._memory.take(statement.size)
        statement.is_kept = True
        self.statements[name] = statement

    def keep_columns(self, statement: PreparedStatement, columns: tuple[Column, ...]) -> None:
        """Keep the columns that a statement was described with. Raises: TidegateError 53200."""
        more = _COLUMN_BYTES * (len(columns) - len(statement.columns or ()))
        if statement.is_kept:
            self._memory.take(more)
            statement.size += more
        statement.columns = columns

    def drop_statement(self, name: str) -> None:
        """Forget a statement, if there is one of that name."""
        statement = self.statements.pop(name, None)
        if statement is not None:
            statement.is_kept = False
            self._memory.give_back(statement.size)

    def drop_statements(self) -> None:
        """Forget all statements."""
        for name in tuple(self.statements):
            self.drop_statement(name)

    def check_new_portal(self, name: str) -> None:
        """Raises: TidegateError 42P03 if there is one of that name, 53400 for too many."""
        if name and name in self.portals:
            raise refused("42P03", f'The portal "{name[:80]}" exists already.')
        if len(self.portals) >= MAX_EACH:
            raise refused("53400", f"A session holds {MAX_EACH} portals.")

    def check_size(self, size: int) -> None:
        """Raises: TidegateError 53200 if a portal may not hold that many bytes."""
        self._memory.check(size)

    def keep_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal under a name that is free. Raises: TidegateError 53200."""
        self._memory.take(portal.size)
        self.portals[name] = portal

    def check_new_cursor(self, name: str) -> None:
        """Raises: TidegateError 42P03 if there is one of that name, 53400 for too many."""
        if name in self.cursors:
            raise refused("42P03", f'The cursor "{name[:80]}" exists already.')
        if len(self.cursors) >= MAX_EACH:
            raise refused("53400", f"A session holds {MAX_EACH} cursors.")

    def keep_cursor(self, name: str, cursor: Portal) -> None:
        """Keep a cursor under a name that is free. Raises: TidegateError 53200."""
        self._memory.take(cursor.statement.size)
        self.cursors[name] = cursor

    async def drop_cursor(self, name: str) -> None:
        """End a cursor, if there is one of that name."""
        cursor = self.cursors.pop(name, None)
        if cursor is not None:
            self._memory.give_back(cursor.statement.size + cursor.size)
            await cursor.close()

    async def _hold_rows(self, cursor: Portal, result: RunningResult) -> None:
        """Keep the rows of a cursor that outlives its block. Raises: TidegateError."""

        def take(size: int) -> None:
            self._memory.take(size)
            cursor.size += size

        await result.hold(take)

    def end_result(self, cursor: Portal) -> None:
        """A cursor has been read to its end: its rows are kept no longer."""
        self._memory.give_back(cursor.size)
        cursor.size, cursor.result = 0, None

    async def drop_portal(self, name: str) -> None:
        """End a portal, if there is one of that name."""
        portal = self.portals.pop(name, None)
        if portal is not None:
            self._memory.give_back(portal.size)
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
        of_block = [(name, each) for name, each in self.cursors.items() if each.of_block]
        for name, cursor in of_block:
            if not (commit and cursor.holds):
                await self.drop_cursor(name)
            elif cursor.result is not None:
                await self._hold_rows(cursor, cursor.result)
        for _, cursor in of_block:  # all of them, or the block is rolled back and none
            cursor.of_block = False

    async def close_cursors(self) -> None:
        """End all cursors."""
        for name in tuple(self.cursors):
            await self.drop_cursor(name)

    async def close(self) -> None:
        """End and forget everything."""
        await self.drop_portals()
        await self.close_cursors()
        self.drop_statements()
