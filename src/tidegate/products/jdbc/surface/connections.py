"""The connections that callers have opened, by id. An id belongs to one session of one actor.

It ends with `close`, with its session, when it lies unused, and when its source is gone.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from weakref import WeakValueDictionary

import msgspec

from tidegate.engines.common.errors import PROCESS
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import CloseTemporary
from tidegate.products.jdbc.surface.settings import JdbcSettings
from tidegate.surfaces.shared_handles import (
    decode_handle,
    find_handle,
    forget_handle,
    keep_handle,
)
from tidegate.surfaces.tool_context import ToolContext
from tidegate.typed_values import decode_msgpack


class _Reopened(msgspec.Struct, frozen=True, array_like=True):
    """How a connection to a saved source is opened at another process."""

    source: str
    dialect: str
    types: str


class Connection:
    """One connection. `source` is the name of its source; `redact` takes what the environment holds
    out of a text. `types` is the dialect by whose driver types are named, or its substitute in
    `products/jdbc/result_types.py`. `process` is the id of its driver's process, empty where that
    is no concern."""

    def __init__(
        self,
        context: ToolContext,
        source: str,
        dialect: str,
        *,
        temporary: bool,
        redact: Callable[[str], str] = str,
        process: str = "",
        types: str = "",
    ) -> None:
        self.id = str(uuid.uuid4())
        self.actor = context.actor.id
        self.session = context.context.state_id
        self.state_id = context.new_state().id
        self.source = source
        self.dialect = dialect
        self.types = types or dialect
        self.temporary = temporary
        self.redact = redact
        self.process = process
        self.context = context
        self.timer: asyncio.TimerHandle | None = None


class ConnectionTable:
    """The connections of all callers."""

    def __init__(self, settings: JdbcSettings) -> None:
        self._settings = settings
        self._connections: dict[str, Connection] = {}
        self._opening: Counter[str] = Counter()
        """By actor: connections that are being opened."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def room(self, context: ToolContext) -> Generator[None]:
        """Keep a place for a connection that the block opens and adds. Raises: TidegateError
        ARGUMENT_INVALID if the caller has all that it may have."""
        actor = context.actor.id
        own = self._opening[actor]
        own += sum(each.actor == actor for each in self._connections.values())
        if own >= self._settings.connections:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"You have {own} connections, which is the most that you may have.",
                hint="Close one of them with `close`.",
            )
        self._opening[actor] += 1
        try:
            yield
        finally:
            self._opening[actor] -= 1
            if not self._opening[actor]:
                del self._opening[actor]

    async def add(self, connection: Connection) -> None:
        """Keep a connection until it ends. Raises: TidegateError STATE_FAILED."""
        self._insert(connection)
        how = b""
        if not connection.temporary:
            again = _Reopened(connection.source, connection.dialect, connection.types)
            how = msgspec.msgpack.encode(again)
        await keep_handle(connection.context, connection.id, connection.session, how)

    def _insert(self, connection: Connection) -> None:
        self._connections[connection.id] = connection
        state = connection.context.find_state(connection.state_id)
        if state is not None:
            state.on_close(partial(self._forget, connection.id))
        self._renew(connection)

    async def find(self, context: ToolContext, id: str) -> Connection:
        """The caller's own connection, which may be from another process. Raises: TidegateError
        SOURCE_UNKNOWN, STATE_FAILED."""
        connection = self._connections.get(id)
        if (
            connection is None
            or connection.actor != context.actor.id
            or context.find_state(connection.state_id) is None
        ):
            connection = await self._bring(context, id)
        connection.context = context
        self._renew(connection)
        return connection

    async def _bring(self, context: ToolContext, id: str) -> Connection:
        """A connection of the caller that another process has opened, opened here as well. Raises:
        TidegateError SOURCE_UNKNOWN, RESULT_GONE, STATE_FAILED."""
        found = await find_handle(context, id)
        if found is None:
            raise _invalid()
        if not found.how:
            raise found.elsewhere("connection")
        how = decode_handle(lambda body: decode_msgpack(body, _Reopened), found.how, id)
        with self.room(context):
            connection = Connection(
                context, how.source, how.dialect, temporary=False, types=how.types
            )
            connection.id = id
            self._insert(connection)
        return connection

    def only_dialect(self, context: ToolContext) -> str | None:
        """The dialect of the connection of the caller's session, if it has exactly one."""
        state = context.context.state_id
        own = [each for each in self._connections.values() if state and each.state_id == state]
        return own[0].dialect if len(own) == 1 else None

    async def close(self, connection: Connection) -> None:
        """End a connection, with its source if that was opened for it."""
        self._forget(connection.id)
        await forget_handle(connection.context, connection.id)
        if connection.temporary:
            request = CloseTemporary(connection.source)
            await connection.context.handle(request, None, bool)

    @asynccontextmanager
    async def using(self, connection: Connection) -> AsyncGenerator[None]:
        """Take what the environment holds out of the message of an error that the block raises. A
        connection whose process has ended is closed, with all that had this process: what their
        sessions held is lost.

        Raises: TidegateError SOURCE_UNKNOWN where it had ended before.
        """
        try:
            yield
        except TidegateError as error:
            error.message = connection.redact(error.message)
            if error.details.get("cause") != PROCESS or not connection.temporary:
                raise
            if error.code is Code.LIMIT_TIME and not connection.process:
                raise  # an engine of ours, which starts its process again
            lost = self._of_process(connection)
            for each in lost:
                await self._close_quietly(each)
            if error.code is Code.SOURCE_NOT_CONNECTED:
                raise _invalid() from None
            error.hint = f"{error.hint or ''} {_ended([each.id for each in lost])}".strip()
            raise

    def _of_process(self, connection: Connection) -> list[Connection]:
        """A connection and the others that live in its process, which are of the same caller."""
        others = [
            each
            for each in self._connections.values()
            if each.process and each.process == connection.process and each is not connection
        ]
        return [connection, *others]

    def order(self, context: ToolContext) -> asyncio.Lock:
        """The lock that keeps the calls of one session in their order."""
        key = context.context.state_id
        if not key:
            return asyncio.Lock()
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def _renew(self, connection: Connection) -> None:
        if connection.timer is not None:
            connection.timer.cancel()
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(self._settings.idle_s, self._expire, connection)

    def _expire(self, connection: Connection) -> None:
        task = asyncio.ensure_future(self._close_quietly(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_quietly(self, connection: Connection) -> None:
        try:
            await self.close(connection)
        except TidegateError:
            return  # it ended by itself, or the server does; its source has a lifetime as well

    def _forget(self, id: str) -> None:
        connection = self._connections.pop(id, None)
        if connection is not None and connection.timer is not None:
            connection.timer.cancel()


def _ended(ids: list[str]) -> str:
    if len(ids) == 1:
        return f"The connection {ids[0]} has ended: connect again."
    return f"The connections {', '.join(ids)} have ended, which had one process: connect again."


def _invalid() -> TidegateError:
    return TidegateError(
        Code.SOURCE_UNKNOWN,
        "Invalid connection",
        hint="Connect again: an id ends when it is closed or unused, with its session, and with the"
        " process of its driver.",
        details={"cause": "connection"},
    )
