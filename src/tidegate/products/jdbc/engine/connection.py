"""One connection of a JDBC driver, as the pool has it: a channel of a JVM."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, TypeVar

import msgspec

from tidegate.engines.worker.framed_process import retrieve
from tidegate.errors import TidegateError
from tidegate.products.jdbc.engine.errors import (
    SESSION,
    ended_connecting,
    translate,
    unconnected,
    without_account,
)
from tidegate.products.jdbc.engine.jvm.process import JvmError, JvmProcess
from tidegate.products.jdbc.engine.messages import Greeting
from tidegate.typed_values import decode_msgpack

Body = TypeVar("Body")

_LEAVES_ROWS = frozenset({"run", "fetch"})
"""What the JVM holds a statement open after."""

ABORT_S = 1.0
"""How long a driver may take to give up a connection. Then its JVM is ended, with all others, if a
statement runs there; a driver that only waits, for a host's answer, is left waiting."""


class JdbcConnection:
    """A connection that answers one request at a time (`pool.PooledConnection`)."""

    late_s: ClassVar[float] = 0.0
    grace_s: ClassVar[float] = 1.0

    def __init__(self, process: JvmProcess, product: str, user: str = "") -> None:
        """`user` is left out of errors."""
        self._process = process
        self._product = product
        self._user = user
        self._channel = process.new_channel()
        self._number = 0
        self._pending: asyncio.Future[msgspec.Raw] | None = None
        self._clear = True
        self._closing = False
        self._ran = False
        """Whether a statement ran when it was closed."""
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.greeting = Greeting()

    async def open(self, body: dict[str, Any]) -> None:
        """Connect. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL, ENGINE_MISSING."""
        try:
            self.greeting = await self._process.ask(self._channel, "connect", body, Greeting)
        except JvmError as error:
            self.close()
            raise without_account(unconnected(error.fault), self._user) from error
        except TidegateError as error:
            self.close()
            raise ended_connecting(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return not self._closing and self._process.alive

    @property
    def busy(self) -> bool:
        return self._pending is not None

    @property
    def gone(self) -> bool:
        return self._ended.done() or self._process.gone

    def check(self) -> bool:
        return not self._closing and self._process.check()

    async def ask(self, verb: str, body: Any, kind: type[Body]) -> Body:
        """Have the driver answer. Raises: TidegateError of the database, or SOURCE_UNREACHABLE if
        the JVM ended."""
        number, pending = self._process.send(self._channel, verb, body)
        self._number, self._pending = number, pending
        self._clear = verb not in _LEAVES_ROWS
        pending.add_done_callback(self._answered)
        try:
            raw = await asyncio.shield(pending)
        except JvmError as error:
            self._clear = True  # the JVM closes a statement that fails
            failure = without_account(translate(error.fault, self._product), self._user)
            if failure.details.get("cause") == SESSION:
                self.close()
            raise failure from error
        return decode_msgpack(raw, kind)

    async def interrupt(self, cause: str) -> None:
        if self._pending is not None:
            self._process.interrupt(self._channel, self._number)

    def settle_now(self) -> bool:
        return self._pending is None and self._clear

    async def settle(self) -> None:
        """Wait for the answer that is due, and have the driver close its statement."""
        while self._pending is not None:
            await asyncio.wait((self._pending,))
        if not self._clear and self.alive:
            await self.ask("close", None, type(None))

    async def reset(self) -> None:
        await self.settle()

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._ran = self.busy
        self._process.free_channel(self._channel)
        _, left = self._process.send(self._channel, "disconnect")
        left.add_done_callback(self._has_left)
        asyncio.get_running_loop().call_later(ABORT_S, self._abandon)

    async def closed(self) -> None:
        await asyncio.shield(self._ended)

    def ended(self) -> None:
        """Mark that the rows of its statement have come to their end in the JVM."""
        self._clear = True

    def _answered(self, pending: asyncio.Future[msgspec.Raw]) -> None:
        retrieve(pending)
        if self._pending is pending:
            self._pending = None

    def _has_left(self, left: asyncio.Future[msgspec.Raw]) -> None:
        retrieve(left)
        if not self._ended.done():
            self._ended.set_result(None)

    def _abandon(self) -> None:
        if self._ended.done():
            return
        if self._ran:
            self._process.close()
            return
        self._process.abandon()
        self._ended.set_result(None)
